"""Many searches at once: each asks for a few episodes at a time, and all that they ask for runs together.

A search is a generator that yields trials and is sent their results, so it reads as if it were alone. What
it finds out depends on nothing else that runs beside it.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.branches import Branches, Segment
from policyfuzz.core.target import RunBranches

Found = TypeVar("Found")

#: What a search does instead of the policy in one episode.
Branch = tuple[Segment, ...]
#: Searches that are under way at the same time.
_AT_ONCE = 64
#: Episodes that are run together at most: their states are in memory all at once.
_EPISODES_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Trial:
    """One episode that a search asks for."""

    row: NDArray[np.float64]  #: (d,) the input
    case_seed: int
    branch: Branch = ()
    is_long: bool = False  #: continued beyond the horizon


@dataclass(frozen=True, slots=True)
class Result:
    """What a search gets to know about one episode."""

    survived: bool  #: no crash, and nothing went wrong
    crash_step: int  #: NONE where there is none
    episode_return: float
    margin: float  #: of the oracle; NaN if it knows none


#: Yields trials, is sent their results in the same order, and returns what it found.
Search = Generator[list[Trial], list[Result], Found]


def run_together(
    searches: Iterable[Search[Found]], run: RunBranches, run_longer: RunBranches, width: int
) -> Iterator[tuple[int, Found]]:
    """Position and finding of each of `searches`, as they end; actions have `width` numbers.

    `run` gets one batch in each round, and `run_longer` the trials that go on beyond the horizon.
    """
    waiting = enumerate(searches)
    active: dict[int, tuple[Search[Found], list[Trial]]] = {}
    while True:
        while len(active) < _AT_ONCE and (pair := next(waiting, None)) is not None:
            number, search = pair
            try:
                active[number] = search, next(search)
            except StopIteration as stop:
                yield number, stop.value
        if not active:
            return
        results = iter(
            _run_all([one for _, asked in active.values() for one in asked], run, run_longer, width)
        )
        for number, (search, asked) in list(active.items()):
            try:
                active[number] = search, search.send([next(results) for _ in asked])
            except StopIteration as stop:
                del active[number]
                yield number, stop.value


def _run_all(trials: Sequence[Trial], run: RunBranches, run_longer: RunBranches, width: int) -> list[Result]:
    """The results of `trials`, in their order."""
    results: dict[int, Result] = {}
    for is_long, runner in ((False, run), (True, run_longer)):
        places = [place for place, trial in enumerate(trials) if trial.is_long == is_long]
        for start in range(0, len(places), _EPISODES_AT_ONCE):
            some = places[start : start + _EPISODES_AT_ONCE]
            results |= zip(some, _run_some([trials[place] for place in some], runner, width), strict=True)
    return [results[place] for place in range(len(trials))]


def _run_some(trials: Sequence[Trial], run: RunBranches, width: int) -> list[Result]:
    executions = run(
        np.array([trial.row for trial in trials]),
        np.array([trial.case_seed for trial in trials], np.uint64),
        branches=Branches.of([trial.branch for trial in trials], width),
    )
    verdicts = executions.verdicts
    return [
        Result(*row)
        for row in zip(
            (executions.sound & ~executions.crashed).tolist(),
            verdicts.steps.tolist(),
            executions.returns.tolist(),
            verdicts.margins.tolist(),
            strict=True,
        )
    ]
