"""Could the crash have been avoided? A ladder of things to do instead, the cheapest first.

A branch of the episode is a witness if it passes three checks: it does not crash within the horizon, it earns
no less than nearby passing episodes do, and it still does not crash when the episode goes on well beyond the
horizon. What it does ends at the horizon at the latest unless a longer hold was found to be needed; then the
policy acts again, so a witness that leaves a hopeless situation behind only delays.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.branches import Segment
from policyfuzz.core.target import Target
from policyfuzz.search.algorithm import Validator
from policyfuzz.store.triage_records import DELAYS_ONLY, NONE_FOUND, WITNESS, Avoidance
from policyfuzz.triage.candidates import Candidates, CrossEntropy, amount_of_change, branch_words
from policyfuzz.triage.trials import Branch, Result, Search, Trial

#: Nearby inputs that are run for their returns: these many at first, and so many more while too few pass.
_FIRST_NEIGHBOURS, _MORE_NEIGHBOURS, _MOST_NEIGHBOURS = 2, 1, 10
#: This many returns of passing neighbours show how much returns vary.
_ENOUGH_NEIGHBOURS = 3
#: This share of what a crash costs is no difference between two returns.
_SLIGHT = 0.01
#: A branch that leaves the policy alone in all but this share of the steps goes on with the task as it did.
_LITTLE_CHANGE = 0.1
#: Draws of a neighbour that may be invalid before fewer are run.
_DRAWS_PER_NEIGHBOUR = 8
#: Episodes that are kept for checks while candidates are tried.
_FOR_CHECKS = 8
#: Candidates of a rung at most.
_RUNG = 8
#: Noise on the policy's actions: what is tried first, and the range of what is tried later.
_FIRST_NOISE, _LEAST_NOISE, _LARGEST_NOISE = 0.15, 0.01, 0.5


@dataclass(frozen=True, slots=True)
class Crash:
    """An episode that crashes."""

    row: NDArray[np.float64]  #: (d,) the input
    case_seed: int
    step: int  #: of the crash
    kind: str  #: of crash, as the oracle names it
    episode_return: float  #: NaN if it is not known


@dataclass(frozen=True, slots=True)
class WitnessSettings:
    """How much is tried for each finding."""

    episodes: int = 64  #: for the verdict, at most
    longer: int = 3  #: a witness must hold for this many times the horizon
    disturbances: int = 8  #: small ones, to see how fragile the crash is
    point_episodes: int = 80  #: for disturbances and point of no return, at most
    seed: int = 0  #: of all random draws


def rng_of(crash: Crash, settings: WitnessSettings, purpose: int) -> np.random.Generator:
    """The generator of one `crash` for one `purpose`, whatever else is looked at."""
    words = np.frombuffer(np.ascontiguousarray(crash.row).tobytes(), np.uint32).tolist()
    return np.random.default_rng([settings.seed, purpose, crash.case_seed, *words])


@dataclass(slots=True)
class Neighbours:
    """What passing episodes near a crash earn."""

    crash_return: float  #: of the episode that crashes
    tried: int = 0
    returns: list[float] = field(default_factory=list)  #: of those that passed

    @property
    def usual_return(self) -> float:
        """What they earn at least, NaN if none passed: the lowest return less the spread of all.

        A further draw falls below that about once in twenty times if there are three, so it is a low quantile
        that few episodes can give. A hundredth of what the crash costs is no difference either: neighbours
        are other situations, and where a crash costs much, they may earn a little more or less for that.
        """
        if not self.returns:
            return math.nan
        lowest = min(self.returns)
        slight = _SLIGHT * max(0.0, lowest - self.crash_return) if math.isfinite(self.crash_return) else 0.0
        return lowest - (max(self.returns) - lowest) - slight

    @property
    def is_known(self) -> bool:
        """True if there are enough, or no more will be run."""
        return len(self.returns) >= _ENOUGH_NEIGHBOURS or self.tried >= _MOST_NEIGHBOURS

    def accept(self, episode_return: float) -> bool:
        """True if an episode earns enough, or nobody knows how much that is."""
        return not episode_return < self.usual_return


class WitnessSearch:
    """Looks for a witness of one crash, and counts the episodes that this takes."""

    def __init__(self, crash: Crash, target: Target, settings: WitnessSettings) -> None:
        assert target.actions is not None
        self._crash, self._target, self._settings = crash, target, settings
        self._space, self._horizon = target.actions, target.horizon
        self._rng = rng_of(crash, settings, 1)
        self._candidates = Candidates(self._space, self._horizon, max(1, crash.step))
        self._delaying: Avoidance | None = None
        self.neighbours = Neighbours(crash.episode_return)
        self.episodes = 0

    def run(self) -> Search[Avoidance]:
        """Climb the ladder until there is a witness or the budget is spent."""
        for rung in self._rungs():
            found = yield from self._try(rung)
            if found is not None:
                return found
        entropy = CrossEntropy(self._candidates)
        while self._left(_FOR_CHECKS) > 0:
            proposals = [entropy.draw(self._rng) for _ in range(_RUNG)]
            scores: list[float] = []
            found = yield from self._try([entropy.branch(one) for one in proposals], scores)
            if found is not None:
                return found
            entropy.learn(proposals[: len(scores)], scores)
        return replace(self._delaying or Avoidance(NONE_FOUND, 0), episodes=self.episodes)

    def _rungs(self) -> Iterator[list[Branch]]:
        """Candidates in the order in which they are tried."""
        propose, rng = self._candidates, self._rng
        held = [propose.held(macro.numbers) for macro in propose.macros[: 2 + _RUNG]]
        shares = np.geomspace(_LEAST_NOISE, _LARGEST_NOISE, _RUNG).tolist()
        # among choices, noise is another choice at one step, and a short window does more
        noise = [] if self._space.is_whole.all() else [propose.noise(rng, _FIRST_NOISE)]
        yield [*held[:2], *propose.late_windows(rng, 2 - len(noise)), *noise]
        yield [*propose.late_windows(rng, 3), propose.window(rng), propose.noise(rng, _FIRST_NOISE)]
        yield held[2:]
        yield propose.held_later(_RUNG)
        yield [propose.window(rng) for _ in range(_RUNG)]
        yield [propose.noise(rng, share) for share in shares]

    def _try(self, rung: Sequence[Branch], scores: list[float] | None = None) -> Search[Avoidance | None]:
        """A witness among the candidates of `rung`, if there is one; adds how good each was to `scores`."""
        rung = rung[: self._left(_FOR_CHECKS)]
        results = yield from self._ask([self._trial(branch) for branch in rung])
        if scores is not None:
            scores += [-math.inf if one.survived else _score(one) for one in results]
        survivors = [pair for pair in zip(rung, results, strict=True) if pair[1].survived]
        survivors.sort(key=lambda pair: amount_of_change(pair[0], self._space, self._horizon))
        for branch, result in survivors:
            found = yield from self._check(branch, result)
            if found is not None:
                return found
        return None

    def _check(self, branch: Branch, result: Result) -> Search[Avoidance | None]:
        """The witness that `branch` is, if it passes the checks that are left."""
        long = None
        if self.neighbours.tried == 0:
            (long,) = yield from self._ask([self._long(branch)], neighbours=_FIRST_NEIGHBOURS)
        while not self._accepts(branch, result) and not self.neighbours.is_known and self._left() > 0:
            yield from self._ask([], neighbours=_MORE_NEIGHBOURS)
        if not self._accepts(branch, result) or (long is None and self._left() <= 0):
            return None
        if long is None:
            (long,) = yield from self._ask([self._long(branch)])
        if long.survived:
            return self._avoidance(WITNESS, branch, result, self._settings.longer * self._horizon)
        return (yield from self._hold_otherwise(branch, result, long))

    def _hold_otherwise(self, branch: Branch, result: Result, long: Result) -> Search[Avoidance | None]:
        """After `branch` only delayed the crash, the same for a longer or a shorter time."""
        is_first = self._delaying is None
        if is_first:
            self._delaying = self._avoidance(DELAYS_ONLY, branch, result, max(0, long.crash_step))
        if not is_first or len(branch) != 1 or branch[0].stop <= self._horizon:
            return None
        crash, last = self._crash.step, self._settings.longer * self._horizon + 1
        stops = sorted({last, crash + 1, (crash + self._horizon) // 2}, reverse=True)
        others = [(replace(branch[0], stop=stop),) for stop in stops if stop > branch[0].start]
        return (yield from self._try(others))

    def _accepts(self, branch: Branch, result: Result) -> bool:
        """True if the return is high enough, or if nobody knows what is, for all that should be tried."""
        if self.neighbours.returns or self.neighbours.is_known:
            return self.neighbours.accept(result.episode_return)
        change = amount_of_change(branch, self._space, self._horizon)
        return change <= _LITTLE_CHANGE * max(1, self._crash.step)

    def _ask(self, trials: list[Trial], neighbours: int = 0) -> Search[list[Result]]:
        """Results of `trials`; runs some `neighbours` beside them."""
        near = self._near(min(neighbours, self._left() - len(trials)))
        if not trials and not near:
            self.neighbours.tried += neighbours
            return []
        results = yield trials + [Trial(row, self._crash.case_seed) for row in near]
        self.episodes += len(results)
        self.neighbours.tried += neighbours
        self.neighbours.returns += [one.episode_return for one in results[len(trials) :] if one.survived]
        return results[: len(trials)]

    def _near(self, count: int) -> list[NDArray[np.float64]]:
        """At most `count` valid, solvable inputs (d,) that differ a little from that of the crash."""
        if count <= 0:
            return []
        inputs = self._target.inputs
        repeated = np.repeat(self._crash.row[None], count * _DRAWS_PER_NEIGHBOUR, axis=0)
        drawn = inputs.perturb(repeated, self._rng)
        return list(drawn[Validator(inputs, self._target.solvable).is_good(drawn)][:count])

    def _trial(self, branch: Branch) -> Trial:
        return Trial(self._crash.row, self._crash.case_seed, branch)

    def _long(self, branch: Branch) -> Trial:
        return Trial(self._crash.row, self._crash.case_seed, branch, is_long=True)

    def _left(self, kept: int = 0) -> int:
        """Episodes that may still be run if some are `kept`."""
        return max(0, self._settings.episodes - kept - self.episodes)

    def _avoidance(self, verdict: str, branch: tuple[Segment, ...], result: Result, steps: int) -> Avoidance:
        return Avoidance(
            verdict=verdict,
            episodes=self.episodes,
            branch=branch,
            words=branch_words(branch, self._space, self._horizon),
            steps=steps,
            episode_return=result.episode_return,
            usual_return=self.neighbours.usual_return,
        )


def _score(result: Result) -> float:
    """How near a crashing episode was to passing: by the oracle's margin, or else by how late it crashed."""
    return float(result.crash_step) if math.isnan(result.margin) else result.margin
