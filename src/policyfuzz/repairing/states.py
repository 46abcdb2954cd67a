"""What a policy saw and did at the steps of episodes, and random cases to run it on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import action_numbers
from policyfuzz.core.branches import Branches
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.target import RunBranches, Runner, Target
from policyfuzz.search.strategies import make_fuzzer

#: Inputs near others are this far from them, as shares of the range of each dimension.
_NEAR = (0.002, 0.005, 0.02)
#: Random inputs that are drawn together; a larger pool begins with a smaller one.
_DRAWN_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class Cases:
    """n inputs and their case seeds."""

    inputs: NDArray[np.float64]  #: (n, d)
    seeds: NDArray[np.uint64]  #: (n,)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Cases":
        """Those at `rows`: positions, a mask or a slice."""
        return Cases(self.inputs[rows], self.seeds[rows])

    @classmethod
    def joined(cls, parts: Sequence["Cases"]) -> "Cases":
        """All `parts`, one after another."""
        return cls(
            np.concatenate([one.inputs for one in parts]), np.concatenate([one.seeds for one in parts])
        )


def random_cases(target: Target, count: int, seed: int) -> Cases:
    """`count` valid inputs of `target`, solvable ones where it tests that, drawn as every search samples."""
    fuzzer = make_fuzzer("random", target, seed=seed)
    parts = [Cases(np.empty((0, len(target.inputs.dimensions))), np.empty(0, np.uint64))]
    while sum(map(len, parts)) < count:
        drawn = fuzzer.ask(_DRAWN_AT_ONCE)
        parts.append(Cases(drawn.inputs, drawn.seeds))
    return Cases.joined(parts)[:count]


def cases_near(target: Target, cases: Cases, rng: np.random.Generator, count: int) -> Cases:
    """About `count` inputs near `cases` that `target` allows, or a few more, with their case seeds."""
    if not len(cases):
        return cases
    repeated = Cases.joined([cases] * max(1, -(-count // (len(cases) * len(_NEAR)))))
    space, unit = target.inputs, target.inputs.to_unit(repeated.inputs)
    parts = []
    for distance in _NEAR:
        moved = unit + distance * rng.standard_normal(unit.shape)
        inputs = space.from_unit(space.into_cube(moved))
        parts.append(Cases(inputs, repeated.seeds)[target.allows(inputs)])
    return Cases.joined(parts)


@dataclass(frozen=True, slots=True)
class Ends:
    """How n episodes ended."""

    crashed: NDArray[np.bool_]  #: (n,)
    sound: NDArray[np.bool_]  #: (n,) False where an error of the environment ended the episode
    steps: NDArray[np.int64]  #: (n,) of the crash
    margins: NDArray[np.float64]  #: (n,) of the oracle; NaN if it knows none
    returns: NDArray[np.float64]  #: (n,)

    def __len__(self) -> int:
        return len(self.crashed)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Ends":
        """Those at `rows`."""
        return Ends(*(getattr(self, name)[rows] for name in Ends.__slots__))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it by name, to be stored."""
        return {name: getattr(self, name) for name in Ends.__slots__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Ends":
        """What `arrays` of `arrays()` were of."""
        return cls(*(arrays[name] for name in cls.__slots__))

    @property
    def passed(self) -> NDArray[np.bool_]:
        """(n,) True where nothing went wrong."""
        return self.sound & ~self.crashed

    @classmethod
    def of(cls, executions: Executions) -> "Ends":
        """Of `executions`."""
        verdicts = executions.verdicts
        margins = verdicts.margins if len(verdicts.margins) else np.full(len(executions), np.nan)
        return cls(executions.crashed, executions.sound, verdicts.steps, margins, executions.returns)

    @classmethod
    def joined(cls, parts: Sequence["Ends"]) -> "Ends":
        """All `parts`, one after another."""
        return cls(*(np.concatenate([getattr(one, name) for one in parts]) for name in cls.__slots__))


def run_cases(run: RunBranches, cases: Cases, batch: int, branches: Branches | None = None) -> Iterator[Ends]:
    """How the episodes of `cases` end, `batch` at a time, with their `branches`."""
    for start in range(0, len(cases), batch):
        rows = slice(start, start + batch)
        some = None if branches is None else branches[rows]
        yield Ends.of(run(cases.inputs[rows], cases.seeds[rows], branches=some))


def ends_of(run: RunBranches, cases: Cases, batch: int, branches: Branches | None = None) -> Ends:
    """How the episodes of `cases` end."""
    return Ends.joined([_NO_ENDS, *run_cases(run, cases, batch, branches)])


_NO_ENDS = Ends.of(Executions.of(np.empty(0), np.empty(0, np.bool_)))


@dataclass(frozen=True, slots=True)
class States:
    """m moments of episodes at which a policy had to decide."""

    observations: NDArray[Any]  #: (m, ...) what it saw
    previous: NDArray[np.float64]  #: (m, a) what was done one step before; NaN at the first step
    actions: NDArray[np.float64]  #: (m, a) what was done, or should be

    def __len__(self) -> int:
        return len(self.observations)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "States":
        """Those at `rows`."""
        return States(self.observations[rows], self.previous[rows], self.actions[rows])

    @classmethod
    def joined(cls, parts: Sequence["States"]) -> "States":
        """All `parts`, one after another."""
        some = [one for one in parts if len(one)] or parts[:1]  # of none, nobody knows the shape
        return cls(*(np.concatenate([getattr(one, name) for one in some]) for name in cls.__slots__))


@dataclass(frozen=True, slots=True)
class Moments:
    """All states of some episodes, and where each belongs."""

    states: States
    episodes: NDArray[np.int64]  #: (m,) row of the episode
    steps: NDArray[np.int64]  #: (m,) from 1: the step that the decision leads to
    ends: Ends  #: of the episodes


def record_moments(runner: Runner, cases: Cases, batch: int, branches: Branches | None = None) -> Moments:
    """Run the episodes of `cases`, with their `branches`, and keep every decision."""
    notes: list[tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64], int]] = []
    parts = [_NO_ENDS]
    for start in range(0, len(cases), batch):
        rows = slice(start, start + batch)
        seen: dict[str, Any] = {}

        def watch(
            step: int,
            running: NDArray[np.int64],
            acted: NDArray[Any] | None,
            frame: Frame,
            seen: dict[str, Any] = seen,
            first: int = start,
        ) -> None:
            if acted is not None:
                # `seen` holds the rows of the step before, of which some have ended
                before = np.searchsorted(seen["rows"], running)
                notes.append((seen["observations"][before], action_numbers(acted), running + first, step))
            seen["rows"], seen["observations"] = running.copy(), frame.observations.copy()

        some = None if branches is None else branches[rows]
        parts.append(Ends.of(runner(cases.inputs[rows], cases.seeds[rows], watch, branches=some)))
    return _ordered(notes, Ends.joined(parts))


def _ordered(
    notes: Sequence[tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64], int]], ends: Ends
) -> Moments:
    if not notes:
        nothing = np.empty((0, 1))
        none = np.empty(0, np.int64)
        return Moments(States(nothing, nothing, nothing), none, none, ends)
    observations, actions, episodes = (np.concatenate(part) for part in list(zip(*notes, strict=True))[:3])
    steps = np.concatenate([np.full(len(rows), step, np.int64) for _, _, rows, step in notes])
    order = np.lexsort((steps, episodes))
    observations, actions, episodes, steps = (
        part[order] for part in (observations, actions, episodes, steps)
    )
    previous = np.full_like(actions, np.nan)
    goes_on = np.flatnonzero(steps > 1)
    previous[goes_on] = actions[goes_on - 1]
    return Moments(States(observations, previous, actions), episodes, steps, ends)
