"""Is a finding the luck of one case seed? Runs it with others, where the seed makes noise."""

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
_ROUNDS, _ROUND_RUNS = 2, 8
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
    emitter: int  #: that proposed it
    rounds: int = 0  #: begun
    left: int = 0  #: runs of this round that are not over
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
    _waiting: Cases = field(init=False)  #: `parents` are finding numbers
    _trials: dict[int, _Trial] = field(init=False, default_factory=dict)  #: by finding number

    def __post_init__(self) -> None:
        self._waiting = Cases.none(self.dimensions)

    def __len__(self) -> int:
        """Findings whose trial is not over."""
        return len(self._trials)

    @property
    def waiting(self) -> int:
        """Runs that wait."""
        return len(self._waiting)

    def add(self, finding: Finding, emitter: int) -> None:
        """Begin the trial of `finding`, which `emitter` proposed."""
        parent = NO_PARENT if finding.parent is None else finding.parent
        self._trials[finding.id] = _Trial(parent, emitter)
        self._begin_round(finding.id, finding.input)

    def _begin_round(self, number: int, row: NDArray[np.float64]) -> None:
        trial = self._trials[number]
        rng = np.random.default_rng([self.seed, 2, number, trial.rounds])
        trial.rounds, trial.left = trial.rounds + 1, _ROUND_RUNS
        seeds = rng.integers(0, SEED_END, _ROUND_RUNS, dtype=np.uint64)
        inputs, numbers = np.repeat(row[None], _ROUND_RUNS, axis=0), np.full(_ROUND_RUNS, number, np.int64)
        new = Cases.of(Purpose.RESEED, inputs, seeds, numbers)
        self._waiting = Cases.concatenate([self._waiting, new])

    def take(self, count: int) -> Cases:
        """Up to `count` cases to run."""
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    def learn(self, cases: Cases, executions: Executions) -> list[TrialResult]:
        """Count the runs of `cases`; return the trials that are over."""
        is_known, over = executions.sound | executions.crashed, []
        for row, number in enumerate(cases.parents.tolist()):
            trial = self._trials[number]
            trial.left -= 1
            trial.runs += int(is_known[row])
            trial.crashes += int(executions.crashed[row])
            if trial.left:
                continue
            if trial.crashes and trial.rounds < _ROUNDS:
                self._begin_round(number, cases.inputs[row])
                continue
            del self._trials[number]
            parent, emitter = np.array([trial.parent], np.int64), np.array([trial.emitter], np.int64)
            case = Cases.of(Purpose.MUTANT, cases.inputs[[row]], cases.seeds[[row]], parent).by(emitter)
            over.append(TrialResult(number, trial.runs, trial.crashes, case))
        return over

    def state(self) -> dict[str, NDArray[Any]]:
        """As arrays: the cases that wait, and the trials that are not over."""
        rows = [[number, *astuple(trial)] for number, trial in sorted(self._trials.items())]
        trials = np.array(rows, np.int64).reshape(len(rows), 1 + len(_Trial.__dataclass_fields__))
        return {**self._waiting.state("waiting."), "trials": trials}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `state`."""
        self._waiting = Cases.from_state(state, "waiting.", self.dimensions)
        self._trials = {number: _Trial(*rest) for number, *rest in state["trials"].tolist()}
        if not set(self._waiting.parents.tolist()) <= self._trials.keys():
            raise ValueError("findings wait for other case seeds that are not on trial")
