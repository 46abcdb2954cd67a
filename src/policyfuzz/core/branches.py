"""Branches: episodes that follow the policy up to some step, and then do something else for a while."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import ActionSpace, action_numbers, with_numbers
from policyfuzz.core.errors import UsageError
from policyfuzz.core.interfaces import Policy

#: No episode is longer.
_LAST_STEP = 2**31


@runtime_checkable
class RemembersActions(Protocol):
    """A policy whose next action depends on the last one, so that it must know what was really done."""

    def executed(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> None:
        """`actions` (m, ...) were executed in episodes `rows` (m,), whatever `act` returned just before."""
        ...


@dataclass(frozen=True, slots=True)
class Segment:
    """One other action, from one step to another."""

    start: int  #: the first step with it, from 1
    stop: int  #: the step after the last
    numbers: tuple[float, ...]  #: (a,) NaN where the policy's own number stays
    is_added: bool = False  #: the numbers are added to the policy's own, as `ActionSpace.added` does


@dataclass(frozen=True, slots=True)
class Branches:
    """How n episodes depart from what the policy does, in up to s segments each; later ones win."""

    starts: NDArray[np.int64]  #: (n, s) the first step of each segment, from 1
    stops: NDArray[np.int64]  #: (n, s) the step after the last; not above the start: no segment
    numbers: NDArray[np.float64]  #: (n, s, a) NaN where the policy's own number stays
    is_added: NDArray[np.bool_]  #: (n, s) True where numbers are added to the policy's own

    @classmethod
    def of(cls, episodes: Sequence[Sequence[Segment]], width: int) -> "Branches":
        """The segments of each of n `episodes`, for actions of `width` numbers."""
        most = max((len(segments) for segments in episodes), default=0)
        starts, stops = np.zeros((2, len(episodes), most), np.int64)
        numbers = np.full((len(episodes), most, width), np.nan)
        is_added = np.zeros((len(episodes), most), np.bool_)
        for row, segments in enumerate(episodes):
            for place, one in enumerate(segments):
                if len(one.numbers) != width or not (
                    0 <= one.start <= _LAST_STEP and 0 <= one.stop <= _LAST_STEP
                ):
                    raise UsageError(
                        f"a branch gives {len(one.numbers)} numbers from step {one.start} to {one.stop}",
                        f"an action has {width} numbers; is this branch of another target?",
                    )
                starts[row, place], stops[row, place] = one.start, one.stop
                numbers[row, place], is_added[row, place] = one.numbers, one.is_added
        return cls(starts, stops, numbers, is_added)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Branches":
        """The branches at `rows`: positions, a mask or a slice."""
        return Branches(*(part[rows] for part in self.arrays))

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """All of it, in the order of the constructor."""
        return self.starts, self.stops, self.numbers, self.is_added


class SteeredPolicy:
    """Asks a policy, and does what `branches` say instead where they say something.

    The policy acts again when a segment is over; it sees what came of it, and is told what was done if it
    remembers actions.
    """

    def __init__(self, policy: Policy, branches: Branches, space: ActionSpace) -> None:
        self._policy, self._all, self._space = policy, branches, space
        self._branches, self._begun = branches[:0], 0
        self._step = 0

    def begin(self, count: int) -> None:
        self._policy.begin(count)
        # a simulator that cannot hold all episodes at once gets some after the others
        self._branches = self._all[self._begun : self._begun + count]
        self._begun += count
        self._step = 0

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        own = self._policy.act(observations, rows)
        self._step += 1
        branches = self._branches
        is_active = (branches.starts[rows] <= self._step) & (self._step < branches.stops[rows])
        if not is_active.any():
            return own
        numbers = action_numbers(own)
        for place in np.flatnonzero(is_active.any(axis=0)).tolist():
            here = np.flatnonzero(is_active[:, place])
            given = branches.numbers[rows[here], place]
            is_added = branches.is_added[rows[here], place][:, None]
            more = self._space.added(numbers[here], given)
            chosen = np.where(is_added, more, self._space.allowed(given))
            numbers[here] = np.where(np.isnan(given), numbers[here], chosen)
        actions = own.copy()
        changed = is_active.any(axis=1)
        actions[changed] = with_numbers(own[changed], numbers[changed])
        if isinstance(self._policy, RemembersActions):
            self._policy.executed(actions, rows)
        return actions
