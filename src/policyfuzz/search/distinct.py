"""Which findings are distinct: points of the unit cube that keep a distance from all earlier ones."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

#: Points that are compared one by one before a tree is built of them.
_TAIL = 128


@dataclass(slots=True)
class DistinctSet:
    """Points of the unit cube, each at least `radius` from all earlier ones: a greedy packing.

    Trees of doubling size hold them, so that adding a point costs O(log^2 n) on average.
    """

    radius: float
    periods: NDArray[np.float64]  #: (d,) 1 where a coordinate wraps round, 0 where it does not
    _trees: list[KDTree] = field(init=False, default_factory=list)  #: the largest first
    _tail: list[NDArray[np.float64]] = field(init=False, default_factory=list)  #: points in no tree yet

    def __len__(self) -> int:
        return sum(int(tree.n) for tree in self._trees) + len(self._tail)

    def add(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Add those of `unit` (n, d), in order, that are distinct; return (n,) True for these."""
        # a periodic coordinate must be below its period for the tree
        unit = np.where(self.periods > 0, unit % 1.0, unit)
        # in pieces, so that new points soon get into a tree
        pieces = [self._add(unit[start : start + _TAIL]) for start in range(0, len(unit), _TAIL)]
        return np.concatenate([np.empty(0, np.bool_), *pieces])

    def restore(self, unit: NDArray[np.float64]) -> None:
        """Take over `unit` (n, d), which are known to be distinct, instead of what there was."""
        self._tail = []
        unit = np.where(self.periods > 0, unit % 1.0, unit)
        self._trees = [KDTree(unit, boxsize=self.periods)] if len(unit) else []

    def _add(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        is_distinct = self._is_free(unit)
        new: list[NDArray[np.float64]] = []
        for row in np.flatnonzero(is_distinct).tolist():
            if new and self._is_near(unit[row], np.array(new)):
                is_distinct[row] = False
            else:
                new.append(unit[row])
        self._tail += new
        if len(self._tail) >= _TAIL:
            self._build_tree()
        return is_distinct

    def _is_free(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where no earlier point is near `unit` (n, d)."""
        free = np.ones(len(unit), np.bool_)
        for tree in self._trees:
            rows = np.flatnonzero(free)
            free[rows] = np.isinf(tree.query(unit[rows], distance_upper_bound=self.radius)[0])
        if self._tail:
            tail = np.array(self._tail)
            rows = np.flatnonzero(free)
            free[rows] = [not self._is_near(point, tail) for point in unit[rows]]
        return free

    def _is_near(self, point: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
        """True if one of `others` (m, d) is within the radius of `point` (d,)."""
        apart = np.abs(others - point)
        apart = np.where(self.periods > 0, np.minimum(apart, 1 - apart), apart)
        return bool(((apart**2).sum(axis=1) < self.radius**2).any())

    def _build_tree(self) -> None:
        """Build a tree of the tail and all trees that are no larger."""
        points, self._tail = np.array(self._tail), []
        while self._trees and self._trees[-1].n <= len(points):
            points = np.concatenate([self._trees.pop().data, points])
        self._trees.append(KDTree(points, boxsize=self.periods))
