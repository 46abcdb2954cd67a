"""The parents of a corpus that runs out, as in the published code: each has so many children, then leaves."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.state import State

#: One in so many parents gets a child in one batch: if most did, energy would choose nothing.
_PARENTS_PER_CHILD = 16


@dataclass(slots=True)
class ParentPool:
    """Corpus entries that may still be changed, with the number of children that each may still have.

    A parent waits for the result of a child before it has the next one, so that lines of descent are as long
    as they would be with one episode at a time.
    """

    children: int  #: of each parent
    _entries: NDArray[np.int64] = field(init=False)  #: (m,) in the order in which they came
    _left: NDArray[np.int64] = field(init=False)  #: (m,) children that each may still have
    _waits: NDArray[np.bool_] = field(init=False)  #: (m,) True while its child is being run

    def __post_init__(self) -> None:
        self._entries, self._left = np.empty(0, np.int64), np.empty(0, np.int64)
        self._waits = np.empty(0, np.bool_)

    def __len__(self) -> int:
        """Parents, those that wait for a child included."""
        return len(self._entries)

    def add(self, entries: NDArray[np.int64]) -> None:
        """Make `entries` (n,) parents."""
        self._entries = np.concatenate([self._entries, entries])
        self._left = np.concatenate([self._left, np.full(len(entries), self.children)])
        self._waits = np.concatenate([self._waits, np.zeros(len(entries), np.bool_)])

    def take(self, rng: np.random.Generator, energy: NDArray[np.float64], count: int) -> NDArray[np.int64]:
        """(n,) up to `count` different parents, drawn one after another with chances given by their energy.

        `energy` (e,) is that of all corpus entries. Parents without any come last, in random order. Each of
        those taken waits for the result of its child.
        """
        free = np.flatnonzero(~self._waits)
        count = min(count, -(-len(free) // _PARENTS_PER_CHILD))
        weights = energy[self._entries[free]]
        # the order of exponential waiting times is that of draws without replacement
        with np.errstate(divide="ignore"):
            times = rng.standard_exponential(len(free)) / np.where(np.isfinite(weights), weights, 0.0)
        taken = free[np.lexsort((rng.random(len(free)), times))[:count]]
        self._waits[taken] = True
        self._left[taken] -= 1
        return self._entries[taken]

    def settle(self, parents: NDArray[np.int64], leaves: NDArray[np.bool_]) -> None:
        """Let `parents` (n,) whose children have run go on; those that `leaves` (n,) names are gone.

        So are those that have had all of their children.
        """
        self._waits &= ~np.isin(self._entries, parents)
        gone = np.isin(self._entries, parents[leaves]) | ((self._left <= 0) & ~self._waits)
        self._entries, self._left, self._waits = self._entries[~gone], self._left[~gone], self._waits[~gone]

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {"entries": self._entries, "left": self._left, "waits": self._waits}

    def restore(self, state: State) -> None:
        """Continue from a `state`."""
        self._entries, self._left = state["entries"], state["left"]
        self._waits = state["waits"].astype(np.bool_)
