"""Which findings are distinct: a greedy packing of the unit cube."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

#: Points that are compared one by one before they are put into a tree.
_TAIL = 128


@dataclass(slots=True)
class Packing:
    """Points of the unit cube, each at least `radius` from all earlier ones.

    They are held in trees of doubling size, so that a point costs O(log^2 n) on average.
    """

    radius: float
    periods: NDArray[np.float64]  #: (d,) 1 where a coordinate wraps round, 0 where it does not
    _trees: list[KDTree] = field(init=False, default_factory=list)  #: the largest first
    _tail: list[NDArray[np.float64]] = field(init=False, default_factory=list)  #: in no tree yet

    def __len__(self) -> int:
        return sum(int(tree.n) for tree in self._trees) + len(self._tail)

    def add(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Add the points `unit` (n, d) in order where they fit; (n,) True where one did."""
        # a periodic coordinate must be below its period for the tree
        unit = np.where(self.periods > 0, unit % 1.0, unit)
        # in pieces, so that what is new is compared through a tree before long
        pieces = [self._add(unit[start : start + _TAIL]) for start in range(0, len(unit), _TAIL)]
        return np.concatenate([np.empty(0, np.bool_), *pieces])

    def _add(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        fits = self._is_free(unit)
        new: list[NDArray[np.float64]] = []
        for row in np.flatnonzero(fits).tolist():
            if new and self._is_near(unit[row], np.array(new)):
                fits[row] = False
            else:
                new.append(unit[row])
        self._tail += new
        if len(self._tail) >= _TAIL:
            self._plant()
        return fits

    def _is_free(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where no point that was added before is near `unit` (n, d)."""
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
        """True where one of `others` (m, d) is within the radius of `point` (d,)."""
        apart = np.abs(others - point)
        apart = np.where(self.periods > 0, np.minimum(apart, 1 - apart), apart)
        return bool(((apart**2).sum(axis=1) < self.radius**2).any())

    def _plant(self) -> None:
        """Put the tail into a tree, together with all trees that are no larger."""
        points, self._tail = np.array(self._tail), []
        while self._trees and self._trees[-1].n <= len(points):
            points = np.concatenate([self._trees.pop().data, points])
        self._trees.append(KDTree(points, boxsize=self.periods))
