"""Climbers: a few local searches at a time, each from a start of its own towards a crash."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Climbers at a time.
CLIMBERS = 16
#: Children without progress after which a climber starts anew elsewhere.
_PATIENCE = 48
#: Scale of the first steps, and its range; it grows with success and shrinks without (one-fifth rule).
_FIRST, _SMALLEST, _LARGEST = 0.05, 1e-4, 0.5
_GROWTH, _SHRINKAGE = 1.5, 0.9
_NOWHERE = -1


@dataclass(slots=True)
class Climbers:
    """Where each climber is: always at an entry of the corpus."""

    entries: NDArray[np.int64] = field(default_factory=lambda: np.full(CLIMBERS, _NOWHERE))
    #: Where it was before; children of that may still be under way.
    previous: NDArray[np.int64] = field(default_factory=lambda: np.full(CLIMBERS, _NOWHERE))
    scales: NDArray[np.float64] = field(default_factory=lambda: np.full(CLIMBERS, _FIRST))
    failures: NDArray[np.int64] = field(default_factory=lambda: np.zeros(CLIMBERS, np.int64))

    @property
    def stranded(self) -> NDArray[np.int64]:
        """(m,) climbers that want a new start: they have none, have arrived or are stuck."""
        return np.flatnonzero((self.entries == _NOWHERE) | (self.failures > _PATIENCE))

    def start(
        self, climbers: NDArray[np.int64], entries: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Let `climbers` (m,) start at `entries` (m,)."""
        self.entries[climbers], self.previous[climbers] = entries, _NOWHERE
        self.scales[climbers] = _FIRST * np.exp(rng.normal(size=len(climbers)))
        self.failures[climbers] = 0

    def is_current(self, climbers: NDArray[np.int64], parents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n,) True where a child of `parents` (n,) still concerns its climber, which may have left."""
        here, before = self.entries[climbers], self.previous[climbers]
        return np.asarray((parents == here) | (parents == before))

    def arrive(self, climber: int) -> None:
        """It has found a crash, and starts anew elsewhere."""
        self.entries[climber] = self.previous[climber] = _NOWHERE

    def move(self, climber: int, entry: int) -> None:
        """It goes on from a better `entry`."""
        self.previous[climber], self.entries[climber] = self.entries[climber], entry
        self.scales[climber] = min(self.scales[climber] * _GROWTH, _LARGEST)
        self.failures[climber] = 0

    def fail(self, climber: int, children: int) -> None:
        """None of its latest `children` was any better."""
        self.failures[climber] += children
        self.scales[climber] = max(self.scales[climber] * _SHRINKAGE**children, _SMALLEST)

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {name: getattr(self, name) for name in ("entries", "previous", "scales", "failures")}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> "Climbers":
        """What `state` turned into arrays."""
        return cls(state["entries"], state["previous"], state["scales"], state["failures"])
