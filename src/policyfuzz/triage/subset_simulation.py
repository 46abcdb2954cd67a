"""Subset simulation: the probability of a rare failure as a product of likely steps towards it.

Particles are drawn from the nominal distribution. Those farthest from a failure, by the oracle's margin, are
replaced again and again by copies of others, which then walk by Metropolis steps that never leave the level
reached so far. Each level multiplies the probability by the share that stayed. Several replicates, which
share nothing but the batches in which their episodes run, show how far the result may be off.

A level keeps what is strictly nearer than its threshold, and the product uses the share that was really
kept. So ties cost precision and no truth, and the mean over replicates is (nearly) unbiased.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import SEED_END

#: Scores of particles: margins, FAILED for a failure, FARTHEST where the oracle does not know, and NaN for
#: what does not count: inputs that are invalid or unsolvable, and episodes that could not be run.
FAILED, FARTHEST = -np.inf, np.inf

#: Share of the particles that a level keeps.
KEPT = 0.6
#: Metropolis steps of each copy at a level.
STEPS = 12
#: Nothing is looked for below this probability.
FLOOR = 1e-9

#: Steps are made in all coordinates, or in a random choice of them, and each kind has its own size: a power
#: of two from 1 down to that of a sheet as thin as FLOOR. Where it begins:
_KINDS, _SMALLEST_SIZE, _FIRST_SIZE = 2, -34.0, -2.0
#: Single steps are longer and shorter than that, by a standard deviation of this many powers of two.
_SPREAD = 1.5
#: Share of the steps whose size is any, whatever has worked so far.
_ANY_SIZE = 0.1
#: Sizes change until this share of the steps is accepted.
_ACCEPTED = 0.3
#: Share of the steps that draw a new case seed, and share of these that leave the input as it is.
_NEW_SEED, _SAME_INPUT = 0.1, 0.5
#: Key of the random numbers of the steps.
_STREAM = 2
#: Share of accepted steps at a level below which particles do not move, and copies stay copies.
_STUCK = 0.01


@dataclass(frozen=True, slots=True)
class Particles:
    """n inputs with their case seeds, and how near each of them comes to a failure."""

    uniform: NDArray[np.float64]  #: (n, k) in the cube of uniform numbers
    seeds: NDArray[np.uint64]  #: (n,) case seeds
    scores: NDArray[np.float64]  #: (n,)

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Particles":
        """The particles at `rows`: positions or a mask."""
        return Particles(self.uniform[rows], self.seeds[rows], self.scores[rows])


class Evaluate(Protocol):
    """Runs episodes."""

    def __call__(
        self, uniform: NDArray[np.float64], seeds: NDArray[np.uint64], before: Particles
    ) -> tuple[NDArray[np.float64], int]:
        """Scores (n,) of particles that were `before` and moved to `uniform` (n, k) and `seeds` (n,).

        And how many episodes that took.
        """
        ...


@dataclass(slots=True)
class SubsetSimulation:
    """r replicates of n particles each. Plain arrays, so that it can be stored at any step."""

    uniform: NDArray[np.float64]  #: (r, n, k) particles in the cube of uniform numbers
    seeds: NDArray[np.uint64]  #: (r, n) their case seeds
    scores: NDArray[np.float64]  #: (r, n)
    walks: NDArray[np.bool_]  #: (r, n) True for copies, which move at this level
    thresholds: NDArray[np.float64]  #: (r,) particles stay strictly below
    log_probabilities: NDArray[np.float64]  #: (r,) of what is below the threshold
    is_done: NDArray[np.bool_]  #: (r,) True where most particles fail, or nothing more can be done
    is_stuck: NDArray[np.bool_]  #: (r,) True where no particle is nearer to a failure than another
    sizes: NDArray[np.float64]  #: (r, 2) of the steps of each kind, as powers of two
    accepted: NDArray[np.int64]  #: (r,) steps at this level
    levels: NDArray[np.int64]  #: (r,) thresholds so far
    step: NDArray[np.int64]  #: (1,) steps of all particles so far

    @classmethod
    def empty(cls, replicates: int, particles: int, width: int) -> "SubsetSimulation":
        """Before anything is drawn, of inputs that take `width` uniform numbers."""
        return cls(
            uniform=np.zeros((replicates, particles, width)),
            seeds=np.zeros((replicates, particles), np.uint64),
            scores=np.zeros((replicates, particles)),
            walks=np.zeros((replicates, particles), np.bool_),
            thresholds=np.full(replicates, FARTHEST),
            log_probabilities=np.zeros(replicates),
            is_done=np.zeros(replicates, np.bool_),
            is_stuck=np.zeros(replicates, np.bool_),
            sizes=np.full((replicates, _KINDS), _FIRST_SIZE),
            accepted=np.zeros(replicates, np.int64),
            levels=np.zeros(replicates, np.int64),
            step=np.zeros(1, np.int64),
        )

    @classmethod
    def begin(cls, draws: list[Particles], particles: int, seed: int) -> "SubsetSimulation":
        """From the random `draws` of each replicate, all of which count.

        The first threshold keeps about `particles` of them, so it costs no steps.
        """
        made = cls.empty(len(draws), particles, draws[0].uniform.shape[1])
        rng = np.random.default_rng([seed, _STREAM, 0])
        for replicate, drawn in enumerate(draws):
            made._next_level(replicate, drawn, particles, rng)
        return made

    @property
    def is_over(self) -> bool:
        """True if no replicate has anything left to do."""
        return bool((self.is_done | self.is_stuck).all())

    @property
    def episodes_of_next_step(self) -> int:
        """Episodes that the next step takes at most."""
        return int(np.count_nonzero(self._moving()))

    @property
    def has_failures(self) -> NDArray[np.bool_]:
        """(r,) True where a replicate has arrived: most of its particles fail."""
        return np.asarray(self.is_done & (self.scores == FAILED).any(axis=1))

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """(r,) of a failure, where a replicate has arrived; elsewhere of coming as near to one as it did."""
        share = np.where(self.has_failures, (self.scores == FAILED).mean(axis=1), 1.0)
        return np.asarray(np.exp(self.log_probabilities) * share)

    def advance(self, evaluate: Evaluate, seed: int) -> int:
        """Make one step of all particles that move, and perhaps begin the next level; the episodes run."""
        number = int(self.step[0]) + 1
        rng = np.random.default_rng([seed, _STREAM, number])
        rows = np.nonzero(self._moving())
        before = Particles(self.uniform[rows], self.seeds[rows], self.scores[rows])
        uniform, kinds = self._propose(rows[0], before.uniform, rng)
        is_new = rng.random(len(before)) < _NEW_SEED
        seeds = np.where(is_new, rng.integers(0, SEED_END, len(before), dtype=np.uint64), before.seeds)
        stays = is_new & (rng.random(len(before)) < _SAME_INPUT)
        uniform = np.where(stays[:, None], before.uniform, uniform)
        scores, episodes = evaluate(uniform, seeds, before)
        is_accepted = scores < self.thresholds[rows[0]]  # NaN is not
        # a new seed may be why a step is refused, whatever its size
        self._adapt(rows[0][~is_new], kinds[~is_new], is_accepted[~is_new])
        self.accepted += np.bincount(rows[0][is_accepted], minlength=len(self.accepted))
        taken = rows[0][is_accepted], rows[1][is_accepted]
        self.uniform[taken], self.seeds[taken] = uniform[is_accepted], seeds[is_accepted]
        self.scores[taken] = scores[is_accepted]
        self.step[0] = number
        if number % STEPS == 0:
            for replicate in np.flatnonzero(~(self.is_done | self.is_stuck)).tolist():
                self._end_level(replicate, rng)
        return episodes

    def _moving(self) -> NDArray[np.bool_]:
        is_over: NDArray[np.bool_] = self.is_done | self.is_stuck
        return np.asarray(self.walks & ~is_over[:, None])

    def _end_level(self, replicate: int, rng: np.random.Generator) -> None:
        steps = STEPS * int(np.count_nonzero(self.walks[replicate]))
        if self.accepted[replicate] < _STUCK * steps:
            self.is_stuck[replicate] = True
            return
        particles = Particles(self.uniform[replicate], self.seeds[replicate], self.scores[replicate])
        self._next_level(replicate, particles, round(KEPT * len(particles)), rng)

    def _next_level(self, replicate: int, drawn: Particles, kept: int, rng: np.random.Generator) -> None:
        """Choose the next threshold, which leaves about `kept` of `drawn`, and copy what is below it."""
        threshold = next_threshold(drawn.scores, kept)
        size = self.seeds.shape[1]
        if threshold == FAILED or self.log_probabilities[replicate] < np.log(FLOOR):
            rows = np.arange(size)  # most of them fail: this is the end
            self.is_done[replicate] = True
        else:
            below = np.flatnonzero(drawn.scores < threshold)
            if len(below) == 0:
                self.is_stuck[replicate] = True
                below = np.arange(len(drawn))
            else:
                self.log_probabilities[replicate] += np.log(len(below) / len(drawn))
                self.thresholds[replicate] = threshold
                self.levels[replicate] += 1
            rows = _filled(below, size, rng)
            self.walks[replicate] = np.arange(size) >= len(below)
        chosen = drawn[rows]
        self.uniform[replicate], self.seeds[replicate] = chosen.uniform, chosen.seeds
        self.scores[replicate], self.accepted[replicate] = chosen.scores, 0

    def _propose(
        self, replicates: NDArray[np.int64], uniform: NDArray[np.float64], rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Where particles at `uniform` (n, k) may go next, and the kinds (n,) of these steps.

        Steps are reflected at the sides of the cube, so each is as likely as the way back.
        """
        count, width = uniform.shape
        kinds = rng.integers(0, _KINDS, count)
        chance = np.where(kinds == 0, 1.0, np.maximum(rng.random(count), 1 / width))
        moves = rng.random(uniform.shape) < chance[:, None]
        usual = self.sizes[replicates, kinds] + _SPREAD * rng.standard_normal(count)
        is_any = rng.random(count) < _ANY_SIZE
        sizes = 2.0 ** np.where(is_any, rng.uniform(_SMALLEST_SIZE, 0.0, count), usual)
        steps = np.minimum(sizes, 1.0)[:, None] * rng.standard_normal(uniform.shape)
        moved = np.where(moves, uniform + steps, uniform)
        return np.abs((moved + 1) % 2 - 1), np.asarray(kinds, np.int64)

    def _adapt(
        self, replicates: NDArray[np.int64], kinds: NDArray[np.int64], is_accepted: NDArray[np.bool_]
    ) -> None:
        """Make steps longer where more are accepted than wanted, and else shorter."""
        place = replicates * _KINDS + kinds
        tries = np.bincount(place, minlength=self.sizes.size)
        excess = np.bincount(place, is_accepted - _ACCEPTED, self.sizes.size)
        change = excess / np.maximum(tries, 1)
        self.sizes = np.clip(self.sizes + change.reshape(self.sizes.shape), _SMALLEST_SIZE, 0.0)


def next_threshold(scores: NDArray[np.float64], kept: int) -> float:
    """The threshold below which about `kept` of `scores` (n,) lie; FAILED if as many fail.

    If so many are equal that none or few lie below, they all stay, unless there is nothing above them.
    """
    ordered = np.sort(scores)
    threshold = ordered[min(kept, len(ordered) - 1)]
    above = ordered[ordered > threshold]
    if threshold > FAILED and np.count_nonzero(ordered < threshold) < kept / 2 and len(above):
        return float(above[0])
    return float(threshold)


def _filled(rows: NDArray[np.int64], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """(size,) some of `rows`, or all of them and then copies, each as often as others, or once more."""
    shuffled = rng.permutation(rows)
    if len(rows) >= size:
        return shuffled[:size]
    copies = np.resize(shuffled, size - len(rows))
    return np.concatenate([rows, copies])
