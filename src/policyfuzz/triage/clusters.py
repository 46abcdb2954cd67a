"""Groups of points that hang together, and whether halves of the points give the same groups.

Two points are linked if each is among the nearest neighbours of the other; groups are what is linked. So a
group may have any shape, size and density. Where linked groups differ from half to half, k-means looks for
larger parts that do not.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.vq import kmeans2
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

#: Numbers of neighbours that are tried, the finest groups first.
LEVELS = (20, 25, 30, 40, 50)
#: Groups at most, and the least size of one.
MOST_GROUPS, LEAST_SIZE = 20, 5
#: Halves must agree this well, by the adjusted Rand index.
STABLE = 0.9
#: Rounds of k-means, and starts of which the best counts.
_ROUNDS, _STARTS = 50, 5
#: Times that the points are halved.
_SPLITS = 9
#: A group of one lineage must be this many times as far from others as lineages within a group usually are.
_LONE = 2.0
_USUAL = 0.9  #: the quantile that is usual
#: Points from which it is learnt which states belong together.
_WEIGHED = 800
#: States that predict each other less than this say nothing about groups.
_LEAST_WEIGHT = 0.05
#: Principal directions that are kept: so many at most, or this share of the variance.
_DIRECTIONS, _VARIANCE = 10, 0.98

Points = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of n points."""

    labels: Labels  #: (n,) from 0
    is_stable: bool  #: halves give the same groups
    agreement: float  #: adjusted Rand index between halves, the median over splits; NaN with too few points
    reason: str = ""  #: why there is one group only, or no finer ones


@dataclass(frozen=True, slots=True)
class PointSpace:
    """Turns described crashes into points: principal directions of their states, each with its weight.

    A state counts as much as it can be predicted from the others: by the nearest finding of another lineage,
    compared with any finding. What plays no part in the failure goes its own way, and counts nothing.
    """

    weights: NDArray[np.float64]  #: (k,)
    centre: NDArray[np.float64]  #: (k p,)
    directions: NDArray[np.float64]  #: (k p, q)

    @classmethod
    def fit(cls, states: NDArray[np.float64], roots: Labels) -> "PointSpace":
        """From `states` (n, k, p) of findings of lineages `roots` (n,)."""
        weights = _weights(states, roots)
        flat = (states * weights[:, None]).reshape(len(states), -1)
        centre = flat.mean(axis=0)
        _, sizes, directions = np.linalg.svd(flat - centre, full_matrices=False)
        total = float((sizes**2).sum())
        shares = np.cumsum(sizes**2) / total if total > 0 else np.ones(1)
        kept = min(int(np.searchsorted(shares, _VARIANCE)) + 1, _DIRECTIONS)
        return cls(weights, centre, directions[:kept].T)

    def points(self, states: NDArray[np.float64]) -> Points:
        """(n, q) of `states` (n, k, p)."""
        flat = (states * self.weights[:, None]).reshape(len(states), len(self.centre))
        return np.asarray((flat - self.centre) @ self.directions)


def group(points: Points, roots: Labels) -> Grouping:
    """Group `points` (n, q) of lineages `roots` (n,): the finest groups that halves agree on.

    Each half holds other lineages of every group, as near-clones would agree with themselves; a group of
    which other lineages have seen next to nothing is halved at random.
    """
    one = np.zeros(len(points), np.int64)
    if len(points) < 4 * LEAST_SIZE:
        reason = f"{len(points)} findings are too few to tell modes apart"
        return Grouping(one, is_stable=False, agreement=float("nan"), reason=reason)
    apart, best, finer = cdist(points, points), 0.0, 0
    for level in LEVELS:
        labels = linked_groups(apart, roots, level)
        count = int(labels.max()) + 1
        if count > MOST_GROUPS:
            finer = max(finer, count)
            continue
        agreement = _agreement(apart, roots, labels, level)
        if agreement >= STABLE and count > 1:
            return Grouping(labels, is_stable=True, agreement=agreement)
        if agreement >= STABLE and finer == 0:
            reason = "the findings hang together: no gap divides them"
            return Grouping(labels, is_stable=True, agreement=agreement, reason=reason)
        if count > 1:
            best, finer = max(best, agreement), max(finer, count)
    parts = _largest_stable_parts(points, roots)
    if parts is not None:
        return parts
    reason = f"no stable modes: halves of the findings agree to {best:.3f} at most, and {STABLE:g} is needed"
    return Grouping(one, is_stable=False, agreement=best, reason=reason)


def linked_groups(apart: NDArray[np.float64], roots: Labels, neighbours: int) -> Labels:
    """(n,) groups of points at distances `apart` (n, n) that mutual nearest `neighbours` link."""
    count = len(apart)
    if count <= LEAST_SIZE:
        return np.zeros(count, np.int64)
    others = np.where(np.eye(count, dtype=np.bool_), np.inf, apart)
    reach = min(neighbours, count - 1)
    near = np.argpartition(others, reach - 1, axis=1)[:, :reach]
    rows = np.repeat(np.arange(count), reach)
    links = coo_matrix((np.ones(near.size), (rows, near.ravel())), (count, count)).tocsr()
    labels = connected_components(links.multiply(links.T), directed=False)[1]
    return _without_fragments(apart, labels.astype(np.int64), roots)


def adjusted_rand(first: Labels, second: Labels) -> float:
    """Agreement of two groupings (n,) of the same points: 1 if equal, about 0 by chance (Hubert, Arabie)."""
    _, one = np.unique(first, return_inverse=True)
    _, two = np.unique(second, return_inverse=True)
    table = np.zeros((one.max(initial=0) + 1, two.max(initial=0) + 1))
    np.add.at(table, (one, two), 1.0)

    def pairs(counts: NDArray[np.float64]) -> float:
        return float((counts * (counts - 1) / 2).sum())

    both, of_one, of_two = pairs(table), pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    by_chance = of_one * of_two / max(pairs(table.sum(keepdims=True)), 1.0)
    most = (of_one + of_two) / 2
    return 1.0 if most == by_chance else (both - by_chance) / (most - by_chance)


def nearest(points: Points, others: Points) -> NDArray[np.int64]:
    """(n,) row of the nearest of `others` (m, q) to each of `points` (n, q); the first of equal ones."""
    pieces = [
        cdist(points[start : start + 512], others).argmin(axis=1) for start in range(0, len(points), 512)
    ]
    return np.concatenate([np.empty(0, np.int64), *pieces])


def _weights(states: NDArray[np.float64], roots: Labels) -> NDArray[np.float64]:
    """(k,) how well each state is predicted by the others, 1 for exactly."""
    count, width = states.shape[:2]
    if width == 1 or count < 2 * LEAST_SIZE:
        return np.ones(width)
    rows = np.linspace(0, count - 1, min(count, _WEIGHED)).astype(np.int64)
    some, lineages = states[rows], roots[rows]
    squares = np.stack([cdist(some[:, one], some[:, one], "sqeuclidean") for one in range(width)])
    is_cousin = lineages[:, None] == lineages
    if is_cousin.all():  # there is only one lineage
        is_cousin = np.eye(len(rows), dtype=np.bool_)
    total = squares.sum(axis=0)
    weights = np.zeros(width)
    for one in range(width):
        without = np.where(is_cousin, np.inf, total - squares[one])
        near = np.sqrt(squares[one][np.arange(len(rows)), without.argmin(axis=1)])
        usual = float(np.median(np.sqrt(squares[one])))
        weights[one] = 1 - float(np.median(near)) / usual if usual > 0 else 0.0
    weights = np.where(weights < _LEAST_WEIGHT, 0.0, weights)
    return weights if weights.any() else np.ones(width)


def _without_fragments(apart: NDArray[np.float64], labels: Labels, roots: Labels) -> Labels:
    """`labels` where groups that lineages alone make apart are joined, the smallest first.

    That is tiny groups, groups of one lineage that is not much farther from others than lineages usually
    are, and two groups that are no farther from each other than lineages are within both of them.
    """
    is_cousin = roots[:, None] == roots
    count = int(labels.max()) + 1
    gaps = _gaps(apart, labels, count)
    sizes = np.bincount(labels, minlength=count)
    #: (n,) distance to the nearest of another lineage in the same group; infinite where there is none
    within = np.where(is_cousin | (labels[:, None] != labels), np.inf, apart).min(axis=1)
    spread = np.array([_usual(within[labels == one]) for one in range(count)])  #: infinite for one lineage
    to_others = np.where(is_cousin, np.inf, apart).min(axis=1)
    while np.count_nonzero(sizes) > 1:
        usual = _usual(within) if np.isfinite(within).any() else _usual(to_others)
        limits = np.minimum(spread[:, None], spread)
        limits[np.isinf(spread)] = limits[:, np.isinf(spread)] = _LONE * usual
        limits[sizes < LEAST_SIZE] = np.inf
        nearest_one = gaps.argmin(axis=1)
        joins = gaps[np.arange(count), nearest_one] <= limits[np.arange(count), nearest_one]
        candidates = np.flatnonzero(joins & (sizes > 0))
        if not len(candidates):
            break
        small = int(candidates[np.lexsort((candidates, sizes[candidates]))[0]])
        other = int(nearest_one[small])
        labels = np.where(labels == small, other, labels)
        gaps[other] = gaps[:, other] = np.minimum(gaps[other], gaps[small])
        gaps[small] = gaps[:, small] = gaps[other, other] = np.inf
        sizes[other], sizes[small] = sizes[other] + sizes[small], 0
        inside = np.flatnonzero(labels == other)
        block = np.ix_(inside, inside)
        within[inside] = np.where(is_cousin[block], np.inf, apart[block]).min(axis=1)
        spread[other], spread[small] = _usual(within[inside]), np.inf
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def _gaps(apart: NDArray[np.float64], labels: Labels, count: int) -> NDArray[np.float64]:
    """(count, count) the least distance between points of two groups; infinite for a group and itself."""
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(count))
    rows = np.minimum.reduceat(apart[order], starts, axis=0)
    gaps = np.asarray(np.minimum.reduceat(rows[:, order], starts, axis=1))
    np.fill_diagonal(gaps, np.inf)
    return gaps


def _usual(distances: NDArray[np.float64]) -> float:
    """What most of the finite `distances` do not exceed; infinite if there are none."""
    finite = distances[np.isfinite(distances)]
    return float(np.quantile(finite, _USUAL)) if len(finite) else np.inf


def _agreement(apart: NDArray[np.float64], roots: Labels, labels: Labels, level: int) -> float:
    """How well halves of the points give the same linked groups."""

    def labels_from(half: NDArray[np.int64]) -> Labels:
        # half the points within the same distance
        groups = linked_groups(apart[np.ix_(half, half)], roots[half], level // 2)
        return np.asarray(groups[apart[:, half].argmin(axis=1)])

    return _agreement_of(labels_from, labels, roots)


def _largest_stable_parts(points: Points, roots: Labels) -> Grouping | None:
    """As many parts as k-means finds alike in halves of the points; None if not even two."""
    for count in range(MOST_GROUPS, 1, -1):
        labels = nearest(points, _centres(points, count))
        if np.unique(labels, return_counts=True)[1].min() < LEAST_SIZE:
            continue

        def labels_from(half: NDArray[np.int64], count: int = count) -> Labels:
            return nearest(points, _centres(points[half], count))

        agreement = _agreement_of(labels_from, labels, roots)
        if agreement >= STABLE:
            labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
            reason = "finer groups differ between halves of the findings"
            return Grouping(labels, is_stable=True, agreement=agreement, reason=reason)
    return None


def _centres(points: Points, count: int) -> Points:
    """(count, q) centres of k-means, the best of several starts."""
    rng, found = np.random.default_rng(0), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty cluster
        for _ in range(_STARTS):
            centres, labels = kmeans2(points, count, minit="++", iter=1, seed=rng)
            for _ in range(_ROUNDS - 1):
                before = centres
                centres, labels = kmeans2(points, before, minit="matrix", iter=1, check_finite=False)
                if np.array_equal(centres, before):  # further rounds would change nothing
                    break
            found.append((float(((points - centres[labels]) ** 2).sum()), centres))
    return np.asarray(min(found, key=lambda one: one[0])[1])


def _agreement_of(labels_from: Callable[[NDArray[np.int64]], Labels], labels: Labels, roots: Labels) -> float:
    """Adjusted Rand index of the groups of both halves and of all, the least; the median over splits.

    `labels_from` gives the labels of all points by the groups of half of them.
    """
    found = []
    for split in range(_SPLITS):
        is_first = _half(labels, roots, np.random.default_rng(split))
        sides = [labels_from(half) for half in (np.flatnonzero(is_first), np.flatnonzero(~is_first))]
        # halves may agree that there is one group where all points show two
        found.append(min(adjusted_rand(*sides), *(adjusted_rand(labels, side) for side in sides)))
    return float(np.median(found))


def _half(labels: Labels, roots: Labels, rng: np.random.Generator) -> NDArray[np.bool_]:
    """(n,) True for half of each group: whole lineages, or any half where that leaves a side too few."""
    is_first = np.zeros(len(labels), np.bool_)
    for one in range(int(labels.max()) + 1):
        inside = np.flatnonzero(labels == one)
        filled = [0, 0]
        for lineage in rng.permutation(np.unique(roots[inside])).tolist():
            its = inside[roots[inside] == lineage]
            side = int(filled[0] > filled[1])
            filled[side] += len(its)
            is_first[its] = side == 0
        if min(filled) < LEAST_SIZE:
            is_first[inside] = rng.permutation(len(inside)) < len(inside) // 2
    return is_first
