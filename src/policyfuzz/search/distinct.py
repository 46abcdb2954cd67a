"""Which findings are distinct: a greedy packing of the unit cube."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

#: Representatives that are compared one by one before they join the tree.
_TAIL = 256


@dataclass(slots=True)
class Packing:
    """Points of the unit cube, each at least `radius` from all earlier ones. O(log n) per point."""

    radius: float
    periods: NDArray[np.float64]  #: (d,) 1 where a coordinate wraps round, 0 where it does not
    _points: NDArray[np.float64] = field(init=False)
    _tree: KDTree | None = field(init=False, default=None)
    _in_tree: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._points = np.empty((0, len(self.periods)))

    def __len__(self) -> int:
        return len(self._points)

    def add(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Add the points `unit` (n, d) in order where they fit; (n,) True where one did."""
        # a periodic coordinate must be below its period for the tree
        unit = np.where(self.periods > 0, unit % 1.0, unit)
        return np.array([self._add_one(point) for point in unit], np.bool_)

    def _add_one(self, point: NDArray[np.float64]) -> bool:
        if self._tree is not None and np.isfinite(
            self._tree.query(point, distance_upper_bound=self.radius)[0]
        ):
            return False
        apart = np.abs(self._points[self._in_tree :] - point)
        apart = np.where(self.periods > 0, np.minimum(apart, 1 - apart), apart)
        if (np.sqrt((apart**2).sum(axis=1)) < self.radius).any():
            return False
        self._points = np.vstack([self._points, point])
        if len(self) - self._in_tree > max(_TAIL, self._in_tree):
            self._tree = KDTree(self._points, boxsize=self.periods)
            self._in_tree = len(self)
        return True
