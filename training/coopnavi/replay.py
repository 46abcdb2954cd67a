"""The memory of past steps that MADDPG learns from."""

import numpy as np
from numpy.typing import NDArray

#: World (18), forces (6), world afterwards without the landmarks (12), reward (1).
_WIDTH = 18 + 6 + 12 + 1

Floats = NDArray[np.float32]


class Replay:
    """A ring of the latest steps."""

    def __init__(self, capacity: int) -> None:
        self.steps: Floats = np.zeros((capacity, _WIDTH), np.float32)
        self.written = 0  #: since the beginning

    def add(
        self,
        worlds: NDArray[np.float64],
        forces: NDArray[np.float64],
        after: NDArray[np.float64],
        rewards: NDArray[np.float64],
    ) -> None:
        """Remember n steps: worlds (n, 18), forces (n, 6), worlds afterwards (n, 18), rewards (n,)."""
        rows = (self.written + np.arange(len(worlds))) % len(self.steps)
        self.steps[rows] = np.column_stack([worlds, forces, after[:, :12], rewards])
        self.written += len(worlds)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Random steps: worlds, forces, worlds afterwards, rewards."""
        rows = rng.integers(0, min(self.written, len(self.steps)), count)
        steps = self.steps[rows]
        after = np.hstack([steps[:, 24:36], steps[:, 12:18]])
        return steps[:, :18], steps[:, 18:24], after, steps[:, 36]
