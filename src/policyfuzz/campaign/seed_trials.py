"""Is a finding the luck of one case seed? Runs it with others, where the seed makes noise."""

from collections import deque
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import SEED_END
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.store.records import Finding

#: Rounds of a trial at most, and other case seeds of a round; if none of the first crashes, that is all.
_ROUNDS, ROUND_RUNS = 2, 8
#: Share of them that must crash, and how many times as likely as a random draw a finding must be to crash.
_LEAST_SHARE, _LEAST_RATIO = 1 / 8, 2.0


#: Stands for the emitter of a finding that has been rewarded already, before noise was known.
REWARDED = -1


def holds(crashes: int, runs: int, random_rate: float) -> bool:
    """True if a finding is more than luck: it crashes with other case seeds, and not as random draws do.

    `random_rate` is the share of random draws that crash, NaN if it is not known.
    """
    needed = _LEAST_SHARE if np.isnan(random_rate) else max(_LEAST_SHARE, _LEAST_RATIO * random_rate)
    return runs == 0 or crashes / runs >= min(needed, 1.0)


@dataclass(slots=True)
class _Trial:
    """The runs of one finding so far."""

    parent: int  #: corpus entry that the finding was changed from, or NO_PARENT
    emitter: int  #: that proposed it, or REWARDED
    rounds: int = 0  #: begun
    given: int = 0  #: runs of this round that were given out
    done: int = 0  #: runs of this round that are over
    runs: int = 0  #: that could be run to their end
    crashes: int = 0  #: of these


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A trial that is over."""

    finding: int
    runs: int
    crashes: int
    case: Cases  #: the finding as the search proposed it


@dataclass(slots=True)
class SeedTrials:
    """The queue of findings that are run with other case seeds."""

    dimensions: int
    seed: int  #: of the campaign
    _trials: dict[int, _Trial] = field(init=False, default_factory=dict)  #: by finding number
    _inputs: dict[int, NDArray[np.float64]] = field(init=False, default_factory=dict)  #: (d,) of the same
    _queue: deque[int] = field(init=False, default_factory=deque)  #: findings with runs to give out

    def __len__(self) -> int:
        """Findings whose trial is not over."""
        return len(self._trials)

    @property
    def waiting(self) -> int:
        """Runs that wait."""
        return ROUND_RUNS * len(self._queue) - (self._trials[self._queue[0]].given if self._queue else 0)

    def add(self, finding: Finding, emitter: int) -> None:
        """Begin the trial of `finding`, which `emitter` proposed."""
        parent = NO_PARENT if finding.parent is None else finding.parent
        self._trials[finding.id], self._inputs[finding.id] = _Trial(parent, emitter), finding.input
        self._begin_round(finding.id)

    def _begin_round(self, number: int) -> None:
        trial = self._trials[number]
        trial.rounds, trial.given, trial.done = trial.rounds + 1, 0, 0
        self._queue.append(number)

    def take(self, count: int) -> Cases:
        """Up to `count` cases to run; their `parents` are finding numbers."""
        taken = [Cases.none(self.dimensions)]
        while self._queue and count > 0:
            number = self._queue[0]
            trial, start = self._trials[number], self._trials[number].given
            trial.given = min(start + count, ROUND_RUNS)
            runs, count = trial.given - start, count - (trial.given - start)
            rng = np.random.default_rng([self.seed, 2, number, trial.rounds])
            seeds = rng.integers(0, SEED_END, ROUND_RUNS, dtype=np.uint64)[start : trial.given]
            inputs = np.repeat(self._inputs[number][None], runs, axis=0)
            taken.append(Cases.of(Purpose.RESEED, inputs, seeds, np.full(runs, number, np.int64)))
            if trial.given == ROUND_RUNS:
                self._queue.popleft()
        return Cases.concatenate(taken)

    def learn(self, cases: Cases, executions: Executions) -> list[TrialResult]:
        """Count the runs of `cases`; return the trials that are over."""
        is_known, over = executions.sound | executions.crashed, []
        for row, number in enumerate(cases.parents.tolist()):
            trial = self._trials[number]
            trial.done += 1
            trial.runs += int(is_known[row])
            trial.crashes += int(executions.crashed[row])
            if trial.done < ROUND_RUNS:
                continue
            if trial.crashes and trial.rounds < _ROUNDS:
                self._begin_round(number)
                continue
            del self._trials[number], self._inputs[number]
            parent, emitter = np.array([trial.parent], np.int64), np.array([trial.emitter], np.int64)
            case = Cases.of(Purpose.MUTANT, cases.inputs[[row]], cases.seeds[[row]], parent).by(emitter)
            over.append(TrialResult(number, trial.runs, trial.crashes, case))
        return over

    def state(self) -> dict[str, NDArray[Any]]:
        """As arrays: the trials that are not over, their inputs, and which of them have runs to give out."""
        numbers = sorted(self._trials)
        rows = [[number, *astuple(self._trials[number])] for number in numbers]
        inputs = np.array([self._inputs[number] for number in numbers], np.float64)
        return {
            "trials": np.array(rows, np.int64).reshape(len(rows), 1 + len(_Trial.__dataclass_fields__)),
            "inputs": inputs.reshape(len(rows), self.dimensions),
            "queue": np.array(self._queue, np.int64),
        }

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `state`."""
        rows, inputs = state["trials"].tolist(), state["inputs"]
        if inputs.shape != (len(rows), self.dimensions) or not np.isfinite(inputs).all():
            raise ValueError("the inputs of findings on trial do not fit")
        self._trials = {number: _Trial(*rest) for number, *rest in rows}
        self._inputs = {row[0]: one for row, one in zip(rows, inputs.astype(np.float64), strict=True)}
        self._queue = deque(state["queue"].tolist())
        if not set(self._queue) <= self._trials.keys():
            raise ValueError("findings wait for other case seeds that are not on trial")
