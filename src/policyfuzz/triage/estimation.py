"""The episodes behind an estimate: first draws, then plain sampling or subset simulation, step by step."""

import math
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UnhealthyTarget
from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import SEED_END, UniformMap
from policyfuzz.core.intervals import exact_interval
from policyfuzz.core.target import Run, Target
from policyfuzz.search.algorithm import Validator
from policyfuzz.triage.estimate import PLAIN, SUBSET, Estimate, EstimateSettings, combined, short
from policyfuzz.triage.subset_simulation import FAILED, FARTHEST, Particles, SubsetSimulation

#: Plain sampling suffices if at least so many of the first draws fail, and this share of them.
_FAILURES, _COMMON = 10, 1e-3
#: Failures after which plain sampling stops: the relative error is a tenth.
_WANTED_FAILURES = 100
#: Episodes that run together.
_AT_ONCE = 256
#: Replicates that differ by more than this factor disagree.
_DISAGREE = 100.0
#: Instead of a margin of minus infinity without a failure.
_LARGEST = float(np.finfo(np.float64).max)
#: Keys of the random numbers of the first draws, and of those of plain sampling.
_FIRST_STREAM, _PLAIN_STREAM = 0, 1


class Phase(IntEnum):
    """What an estimation is doing."""

    DRAW = 0  #: the first random draws
    PLAIN = 1  #: plain sampling
    CLIMB = 2  #: subset simulation
    DONE = 3


class Why(IntEnum):
    """Why the method is plain sampling."""

    COMMON = 0  #: failures are common enough
    NO_MAP = 1  #: the input space has a sampler and no map
    NO_MARGIN = 2  #: the oracle tells none
    FLAT = 3  #: margins do not lead to a failure
    FEW_EPISODES = 4  #: the budget is too small for anything else


@dataclass(slots=True)
class Counts:
    """How far an estimation is."""

    phase: int = Phase.DRAW
    why: int = Why.COMMON
    first: int = 0  #: episodes of the first draws that were run
    batches: int = 0  #: of plain sampling
    draws: int = 0  #: random inputs whose episode could be run
    failures: int = 0  #: of these
    episodes: int = 0  #: of any kind


@dataclass(slots=True)
class Estimation:
    """An estimate in the making: `advance` runs some episodes, until it `is_done`.

    All of its state is in `counts`, `first_scores` and `climb`. What happens next follows from that, the
    settings and the target, whoever runs the episodes.
    """

    target: Target
    run: Run
    settings: EstimateSettings
    counts: Counts
    first_scores: NDArray[np.float64]  #: (replicates · first_draws,) NaN where it was not run, or cannot be
    climb: SubsetSimulation | None = None
    _validator: Validator = field(init=False)
    _first: tuple[NDArray[np.float64], Particles] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._validator = Validator(self.target.inputs, self.target.solvable)

    @classmethod
    def begin(cls, target: Target, run: Run, settings: EstimateSettings) -> "Estimation":
        """Nothing has been run."""
        scores = np.full(settings.replicates * settings.first_draws, np.nan)
        made = cls(target, run, settings, Counts(), scores)
        if target.inputs.from_uniform is None:
            made._sample_plainly(Why.NO_MAP)
        elif not settings.particles:
            made._sample_plainly(Why.FEW_EPISODES)
        return made

    @property
    def is_done(self) -> bool:
        """True if there is nothing left to do within the limit of episodes."""
        return self.counts.phase == Phase.DONE

    def advance(self) -> None:
        """Run the next episodes."""
        steps = {Phase.DRAW: self._draw, Phase.PLAIN: self._sample, Phase.CLIMB: self._climb}
        steps[Phase(self.counts.phase)]()

    def _draw(self) -> None:
        inputs, draws = self._first_draws()
        rows = slice(self.counts.first, self.counts.first + self._batch_size)
        scores = score(self.run(inputs[rows], draws.seeds[rows]))
        self.first_scores[rows] = scores
        self.counts.first += len(scores)
        self._count(scores)
        if self.counts.first == len(self.first_scores):
            self._decide(draws)

    def _decide(self, draws: Particles) -> None:
        """Choose the method by the first draws."""
        counts, scores, settings = self.counts, self.first_scores, self.settings
        known = ~np.isnan(scores)
        replicates = np.split(np.arange(len(scores)), settings.replicates)
        kept = [draws[rows[known[rows]]] for rows in replicates]
        if not all(map(len, kept)):
            raise UnhealthyTarget(
                f"only {counts.draws:,} of {len(scores):,} random episodes could be run to their end",
                "policyfuzz check shows the error",
            )
        if counts.failures >= max(_FAILURES, _COMMON * counts.draws):
            self._sample_plainly(Why.COMMON)
        elif not np.isfinite(scores).any():
            self._sample_plainly(Why.NO_MARGIN)
        else:
            self.climb = SubsetSimulation.begin(kept, settings.particles, settings.seed)
            counts.phase = Phase.CLIMB
            self._look_at_climb(self.climb)
        self._first = None

    def _climb(self) -> None:
        assert self.climb is not None  # in this phase
        self.counts.episodes += self.climb.advance(self._evaluate, self.settings.seed)
        self._look_at_climb(self.climb)

    def _look_at_climb(self, climb: SubsetSimulation) -> None:
        """End it where it has come to its end, or to nothing."""
        if climb.is_stuck.any():
            self._sample_plainly(Why.FLAT)
        elif climb.is_over or self.counts.episodes + climb.episodes_of_next_step > self.settings.limit:
            self.counts.phase = Phase.DONE

    def _sample_plainly(self, why: Why) -> None:
        self.counts.phase, self.counts.why = Phase.PLAIN, why
        self._end_sampling()

    def _sample(self) -> None:
        rng = np.random.default_rng([self.settings.seed, _PLAIN_STREAM, self.counts.batches])
        size = min(self._batch_size, self.settings.limit - self.counts.episodes)
        space, rows = self.target.inputs, np.zeros(size, np.int64)
        _, inputs = self._validator.fill(
            size, lambda count: (np.resize(rows, count), space.sample(rng, count))
        )
        self._count(score(self.run(inputs, rng.integers(0, SEED_END, size, dtype=np.uint64))))
        self.counts.batches += 1
        self._end_sampling()

    def _end_sampling(self) -> None:
        if self.counts.failures >= _WANTED_FAILURES or self.counts.episodes >= self.settings.limit:
            self.counts.phase = Phase.DONE

    def _count(self, scores: NDArray[np.float64]) -> None:
        self.counts.episodes += len(scores)
        self.counts.draws += int(np.count_nonzero(~np.isnan(scores)))
        self.counts.failures += int(np.count_nonzero(scores == FAILED))

    @property
    def _batch_size(self) -> int:
        return max(self.target.batch_size, _AT_ONCE)

    def _first_draws(self) -> tuple[NDArray[np.float64], Particles]:
        """Inputs (n, d) and particles of all first draws, one replicate after another."""
        if self._first is None:
            parts = [self._draws_of(replicate) for replicate in range(self.settings.replicates)]
            inputs, uniform, seeds = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
            self._first = inputs, Particles(uniform, seeds, self.first_scores)
        return self._first

    def _draws_of(
        self, replicate: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.uint64]]:
        """Inputs (m, d), uniform numbers (m, k) and case seeds (m,) of the first draws of `replicate`."""
        uniform_map, count = self._uniform_map, self.settings.first_draws
        rng = np.random.default_rng([self.settings.seed, _FIRST_STREAM, replicate])
        drawn = np.empty((0, uniform_map.coordinates))

        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            nonlocal drawn
            uniform = rng.random((wanted, uniform_map.coordinates))
            rows = len(drawn) + np.arange(wanted)
            drawn = np.concatenate([drawn, uniform])
            return rows, uniform_map(uniform)

        rows, inputs = self._validator.fill(count, draw)
        return inputs, drawn[rows], rng.integers(0, SEED_END, count, dtype=np.uint64)

    def _evaluate(
        self, uniform: NDArray[np.float64], seeds: NDArray[np.uint64], before: Particles
    ) -> tuple[NDArray[np.float64], int]:
        inputs, old = self._uniform_map(uniform), self._uniform_map(before.uniform)
        # an episode is a function of input and seed: the same ones need not run again
        is_same = (inputs == old).all(axis=1) & (seeds == before.seeds)
        scores = np.where(is_same, before.scores, np.nan)
        runs = np.flatnonzero(~is_same)
        runs = runs[self._validator.is_good(inputs[runs])]
        if len(runs):
            scores[runs] = score(self.run(inputs[runs], seeds[runs]))
        return scores, len(runs)

    @property
    def _uniform_map(self) -> UniformMap:
        uniform_map = self.target.inputs.from_uniform
        assert uniform_map is not None  # else nothing but plain sampling begins
        return uniform_map

    @property
    def estimate(self) -> Estimate:
        """What is known so far."""
        climb = self.climb
        if climb is None or climb.is_stuck.any():
            return self._plain_estimate()
        # random draws have shown failures, and subset simulation has not come to them yet
        if self.counts.failures and not climb.has_failures.all():
            return self._plain_estimate()
        return self._subset_estimate(climb)

    def _plain_estimate(self) -> Estimate:
        counts = self.counts
        low, high = exact_interval(counts.failures, counts.draws)
        error = (
            math.sqrt((1 - counts.failures / counts.draws) / counts.failures) if counts.failures else math.nan
        )
        return self._made(
            probability=counts.failures / max(counts.draws, 1),
            low=low,
            high=high,
            method=PLAIN,
            relative_error=error,
            is_complete=self.is_done and (self.climb is None or bool(self.climb.is_stuck.any())),
        )

    def _subset_estimate(self, climb: SubsetSimulation) -> Estimate:
        shares = climb.probabilities
        mean, low, high = combined(shares)
        if not climb.has_failures.all():
            return self._made(0.0, 0.0, high, SUBSET, math.nan, False)
        error = math.sqrt(math.expm1(float(np.var(np.log(shares), ddof=1))) / len(shares))
        return self._made(mean, low, high, SUBSET, error, True)

    def _made(
        self,
        probability: float,
        low: float,
        high: float,
        method: str,
        relative_error: float,
        is_complete: bool,
    ) -> Estimate:
        climb = self.climb if method == SUBSET else None
        same_error = (1 - probability) / (probability * relative_error**2) if relative_error > 0 else math.nan
        return Estimate(
            probability=probability,
            low=low,
            high=high,
            episodes=self.counts.episodes,
            method=method,
            replicates=0 if climb is None else self.settings.replicates,
            levels=0 if climb is None else int(climb.levels.max()),
            relative_error=relative_error,
            plain_episodes=same_error,
            is_complete=is_complete,
            of_solvable=self.target.solvable is not None,
            target=self.target.name,
            policy=self.target.policy_name,
            policy_sha256=self.target.policy_sha256,
            seed=self.settings.seed,
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        """What a reader should know about the method and its end."""
        counts, climb = self.counts, self.climb
        if counts.phase == Phase.DRAW:
            return ("a limit was reached before the first random draws were run",)
        if climb is None or climb.is_stuck.any():
            return self._why_plain()
        if climb.has_failures.all():
            shares = climb.probabilities
            if shares.max() > _DISAGREE * shares.min():
                return (
                    f"the replicates disagree, from {short(shares.min())} to {short(shares.max())}: give"
                    " it more episodes",
                )
            return ()
        nearest = f"inputs that come within a margin of {climb.thresholds.max():.4g}"
        share = short(float(climb.probabilities.mean()))
        if reached := int(climb.has_failures.sum()):
            of_all = f"{reached} of {len(climb.has_failures)} replicates reached a failure, not the others"
            return (f"{of_all}, so only a bound is given: give it more episodes",)
        if climb.is_over:
            return (f"no failure was reached: {nearest} have a probability of {share} already",)
        return (f"a limit was reached on the way: {nearest} have a probability of {share}",)

    def _why_plain(self) -> tuple[str, ...]:
        climb = self.climb
        if self.counts.why == Why.FLAT and climb is not None:
            stuck = int(np.argmax(climb.is_stuck))
            scores = climb.scores[stuck]
            nearest = float(np.min(scores, where=scores > FAILED, initial=FARTHEST))
            return (
                "the margin does not grade the way to a failure: inputs with a probability of about"
                f" {short(float(climb.probabilities[stuck]))} come to the margin {nearest:.4g}, and no step"
                " from there leads nearer",
            )
        reasons = {
            Why.COMMON: (),
            Why.NO_MAP: (
                "the input space has a sampler and no uniform_map, so that rare failures cannot be estimated",
            ),
            Why.NO_MARGIN: ("the oracle tells no margin, so that rare failures cannot be estimated",),
            Why.FEW_EPISODES: (
                f"subset simulation, for rare failures, needs at least {self.settings.fewest_episodes:,}"
                " episodes",
            ),
        }
        return reasons[Why(self.counts.why)]


def score(executions: Executions) -> NDArray[np.float64]:
    """(n,) how near each episode came to a failure: see `FAILED`, `FARTHEST` and NaN."""
    margins = np.nan_to_num(executions.verdicts.margins, nan=FARTHEST, posinf=FARTHEST, neginf=-_LARGEST)
    scores = np.where(executions.crashed, FAILED, margins)
    return np.where(executions.sound | executions.crashed, scores, np.nan)
