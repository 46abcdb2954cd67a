"""Weighted choice among many in logarithmic time."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


class SumTree:
    """Non-negative weights of a growing list; every inner node holds the sum of its two children.

    Sums are recomputed from the children and never adjusted, so the tree depends on the weights only,
    not on the order in which they came.
    """

    def __init__(self) -> None:
        self._levels = [np.zeros(1)]  #: leaves first, the root last
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self._levels[-1][0])

    @property
    def weights(self) -> NDArray[np.float64]:
        """(n,) all weights."""
        return self._levels[0][: self._size].copy()

    def append(self, weights: NDArray[np.float64]) -> None:
        """Add `weights` (m,) at the end."""
        start, self._size = self._size, self._size + len(weights)
        while self._size > len(self._levels[0]):
            self._grow()
        self._levels[0][start : self._size] = weights
        first, last = start, self._size - 1
        for below, above in pairwise(self._levels):
            first, last = first >> 1, last >> 1
            children = below[2 * first : 2 * last + 2]
            above[first : last + 1] = children[::2] + children[1::2]

    def set(self, positions: NDArray[np.int64], weights: NDArray[np.float64]) -> None:
        """Give `positions` (m,) new `weights` (m,)."""
        self._levels[0][positions] = weights
        for below, above in pairwise(self._levels):
            positions = np.unique(positions >> 1)
            above[positions] = below[2 * positions] + below[2 * positions + 1]

    def choose(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """(count,) positions drawn with probability proportional to weight; uniform if all are zero."""
        if self.total <= 0:
            return rng.integers(0, self._size, count)
        points = rng.random(count) * self.total
        positions = np.zeros(count, np.int64)
        for level in reversed(self._levels[:-1]):
            positions <<= 1
            left = level[positions]
            # rounding may push a point past the last weight: never step into an empty half
            goes_right = (points >= left) & (level[positions + 1] > 0)
            points = np.where(goes_right, points - left, points)
            positions += goes_right
        return positions

    def _grow(self) -> None:
        """Double the number of leaves."""
        self._levels = [np.concatenate([level, np.zeros_like(level)]) for level in self._levels]
        self._levels.append(self._levels[-1][:1] + self._levels[-1][1:])
