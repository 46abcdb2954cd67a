"""Which findings are distinct: unlike all earlier ones, in their input and in what the episode did."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from policyfuzz.search.behaviour import DESCRIPTOR_SIZE

#: Points that are compared one by one before a tree is built of them.
_TAIL = 128
#: By how much a tree may err in a distance.
_SLACK = 1 + 1e-9


def wrapped(unit: NDArray[np.float64], periods: NDArray[np.float64]) -> NDArray[np.float64]:
    """`unit` (n, d) with periodic coordinates below their period, as a tree wants them."""
    return np.where(periods > 0, unit % 1.0, unit)


def tree_of(points: NDArray[np.float64], periods: NDArray[np.float64]) -> KDTree:
    """A tree of `points` (n, d), which are `wrapped`."""
    # with a box, every query takes twice as long
    return KDTree(points, boxsize=periods if periods.any() else None)


@dataclass(slots=True)
class DistinctSet:
    """Points of the unit cube, each at least `radius` from all earlier ones: a greedy packing.

    Trees of doubling size hold them, so that adding a point costs O(log^2 n) on average.
    """

    radius: float
    periods: NDArray[np.float64]  #: (d,) 1 where a coordinate wraps round, 0 where it does not
    _trees: list[KDTree] = field(init=False, default_factory=list)  #: the largest first
    _tail: list[NDArray[np.float64]] = field(init=False, default_factory=list)  #: points in no tree yet
    _tail_tree: KDTree | None = field(init=False, default=None)  #: of the tail, if it has not changed since

    def __len__(self) -> int:
        return sum(int(tree.n) for tree in self._trees) + len(self._tail)

    def add(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Add those of `unit` (n, d), in order, that are distinct; return (n,) True for these."""
        unit = wrapped(unit, self.periods)
        # in pieces, so that new points soon get into a tree
        pieces = [self._add(unit[start : start + _TAIL]) for start in range(0, len(unit), _TAIL)]
        return np.concatenate([np.empty(0, np.bool_), *pieces])

    def is_free(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where no point of the set is near one of `unit` (n, d)."""
        return self._is_free(wrapped(unit, self.periods))

    def insert(self, unit: NDArray[np.float64]) -> None:
        """Add `unit` (n, d), which are known to be distinct."""
        self._extend(list(wrapped(unit, self.periods)))

    def is_near(self, point: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
        """True if one of `others` (m, d) is within the radius of `point` (d,)."""
        return self._is_near(wrapped(point, self.periods), wrapped(others, self.periods))

    def _add(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        is_distinct = self._is_free(unit)
        new: list[NDArray[np.float64]] = []
        for row in np.flatnonzero(is_distinct).tolist():
            if new and self._is_near(unit[row], np.array(new)):
                is_distinct[row] = False
            else:
                new.append(unit[row])
        self._extend(new)
        return is_distinct

    def _is_free(self, unit: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where no earlier point is near `unit` (n, d)."""
        free = np.ones(len(unit), np.bool_)
        if self._tail and self._tail_tree is None:
            self._tail_tree = tree_of(np.array(self._tail), self.periods)
        tail = [] if self._tail_tree is None else [self._tail_tree]
        for tree in [*self._trees, *tail]:
            rows = np.flatnonzero(free)
            # trees round otherwise than we do: they only propose who may be near
            distances, nearest = tree.query(unit[rows], distance_upper_bound=self.radius * _SLACK)
            rows, nearest = rows[np.isfinite(distances)], nearest[np.isfinite(distances)]
            free[rows] = self._squared(unit[rows], tree.data[nearest]) >= self.radius**2
        return free

    def _is_near(self, point: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
        """True if one of `others` (m, d) is within the radius of `point` (d,)."""
        return bool((self._squared(others, point) < self.radius**2).any())

    def _squared(self, points: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) squared distances of `points` (n, d) from `others`, (n, d) or one of them (d,)."""
        apart = np.abs(points - others)
        apart = np.where(self.periods > 0, np.minimum(apart, 1 - apart), apart)
        return np.asarray((apart**2).sum(axis=1))

    def _extend(self, points: list[NDArray[np.float64]]) -> None:
        """Add `points` (d,) to the tail."""
        if points:
            self._tail += points
            self._tail_tree = None
        if len(self._tail) >= _TAIL:
            self._build_tree()

    def _build_tree(self) -> None:
        """Build a tree of the tail and all trees that are no larger."""
        points, self._tail = np.array(self._tail), []
        while self._trees and self._trees[-1].n <= len(points):
            points = np.concatenate([self._trees.pop().data, points])
        self._trees.append(tree_of(points, self.periods))


#: Difference of two behaviours, as a root mean square in standard deviations of random episodes, below which
#: they are alike.
ALIKE_BEHAVIOUR = 0.25


@dataclass(slots=True)
class DistinctFindings:
    """Findings that are unlike all earlier ones.

    Two are alike if their inputs are, or if their episodes are: then what differs between their inputs played
    no part. `radius` is the root mean square difference per dimension of the unit cube.
    """

    radius: float
    periods: NDArray[np.float64]  #: (d,) as for `DistinctSet`
    _inputs: DistinctSet = field(init=False)
    _behaviours: DistinctSet = field(init=False)

    def __post_init__(self) -> None:
        self._inputs = DistinctSet(self.radius * np.sqrt(len(self.periods)), self.periods)
        self._behaviours = DistinctSet(ALIKE_BEHAVIOUR, np.zeros(DESCRIPTOR_SIZE))

    def __len__(self) -> int:
        return len(self._inputs)

    def add(self, unit: NDArray[np.float64], descriptors: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Add those, in order, that are distinct; return (n,) True for these.

        They are at `unit` (n, d), with `descriptors` (n, q) of what their episodes did, NaN where unknown.
        """
        # in pieces, so that new points soon get into a tree
        pieces = [slice(start, start + _TAIL) for start in range(0, len(unit), _TAIL)]
        return np.concatenate(
            [np.empty(0, np.bool_), *(self._add(unit[piece], descriptors[piece]) for piece in pieces)]
        )

    def _add(self, unit: NDArray[np.float64], descriptors: NDArray[np.float64]) -> NDArray[np.bool_]:
        is_known = np.asarray(~np.isnan(descriptors).any(axis=1))
        is_distinct = self._inputs.is_free(unit)
        rows = np.flatnonzero(is_distinct & is_known)
        is_distinct[rows] = self._behaviours.is_free(descriptors[rows])
        new: list[int] = []
        for row in np.flatnonzero(is_distinct).tolist():
            known = [one for one in new if is_known[one]]
            if (new and self._inputs.is_near(unit[row], unit[new])) or (
                is_known[row] and known and self._behaviours.is_near(descriptors[row], descriptors[known])
            ):
                is_distinct[row] = False
            else:
                new.append(row)
        self.insert(unit[new], descriptors[new])
        return is_distinct

    def insert(self, unit: NDArray[np.float64], descriptors: NDArray[np.float64]) -> None:
        """Add points that are known to be distinct."""
        self._inputs.insert(unit)
        self._behaviours.insert(descriptors[~np.isnan(descriptors).any(axis=1)])
