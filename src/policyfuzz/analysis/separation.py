"""How well two classes are told apart by their nearest neighbours of other lineages.

Nothing here looks at a projection into the plane: those move points together and apart as they like. Lineages
are never split between what is known and what is judged, because findings of one lineage are near-clones.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from policyfuzz.search.behaviour import units_of

#: Neighbours of each class whose mean distance counts.
_NEIGHBOURS = 5
_FOLDS = 5
#: Splits into folds over which scores are averaged.
SPLITS = 10
#: Draws of lineages for an interval, and shuffles for chance.
_DRAWS, _SHUFFLES = 500, 20


@dataclass(frozen=True, slots=True)
class Scores:
    """How much each of n points looks like the positive class, judged without its own lineage."""

    values: NDArray[np.float64]  #: (n,) the higher, the more
    is_positive: NDArray[np.bool_]  #: (n,)
    lineages: NDArray[np.int64]  #: (n,)

    def area(self, positives: NDArray[np.bool_] | None = None) -> float:
        """Chance that a positive point, or one of some `positives` (n,), scores above a negative one."""
        chosen = self.is_positive if positives is None else positives
        return auc(self.values[chosen], self.values[~self.is_positive])

    def interval(self, seed: int) -> tuple[float, float]:
        """95 % interval of the area: which lineages there are is chance, and they are drawn again."""
        values, is_positive = self.values, self.is_positive
        wins = _wins(values[is_positive], values[~is_positive])
        names, groups = np.unique(self.lineages, return_inverse=True)
        rng, areas = np.random.default_rng(seed), []
        for _ in range(_DRAWS):
            times = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))[groups]
            positive, negative = times[is_positive], times[~is_positive]
            if positive.any() and negative.any():
                areas.append(positive @ wins @ negative / (positive.sum() * negative.sum()))
        if not areas:
            return math.nan, math.nan
        low, high = np.quantile(areas, [0.025, 0.975]).tolist()
        return low, high


def distances_of(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, n) distances of `points` (n, k), whose coordinates count alike."""
    scaled = standardised(points)
    return np.asarray(cdist(scaled, scaled))


def judge(
    distances: NDArray[np.float64],
    is_positive: NDArray[np.bool_],
    lineages: NDArray[np.int64],
    seed: int,
    splits: int = SPLITS,
) -> Scores | None:
    """Score n points of `lineages` (n,) by cross-validation; None with less than two lineages on a side.

    `distances` (n, n) are those of `distances_of`. A score is the mean distance to the nearest points known
    to be negative, minus that to positive ones, and the mean over several `splits` into folds: with few
    lineages a single one is luck.
    """
    rng, total = np.random.default_rng(seed), np.zeros(len(distances))
    for _ in range(splits):
        folds = _folds(is_positive, lineages, rng)
        if folds is None:
            return None
        for fold in range(int(folds.max()) + 1):
            judged, known = folds == fold, folds != fold
            if len(np.unique(is_positive[known])) < 2:  # all lineages with one of the classes are in it
                return None
            far_from = [
                _mean_distance(distances[np.ix_(judged, known & (is_positive == side))])
                for side in (False, True)
            ]
            total[judged] += far_from[0] - far_from[1]
    return Scores(total / splits, is_positive, lineages)


def chance(
    distances: NDArray[np.float64], is_positive: NDArray[np.bool_], lineages: NDArray[np.int64], seed: int
) -> float:
    """Mean area that `judge` gives for shuffled classes, arguments as there: what is not real is left."""
    rng = np.random.default_rng(seed)
    shuffled = (judge(distances, rng.permutation(is_positive), lineages, seed, 1) for _ in range(_SHUFFLES))
    areas = [scores.area() for scores in shuffled if scores is not None]
    return float(np.mean(areas)) if areas else math.nan


def auc(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> float:
    """Chance that one of `positive` (p,) is above one of `negative` (n,), equal ones half; NaN if none."""
    if not len(positive) or not len(negative):
        return math.nan
    return float(_wins(positive, negative).mean())


def purity(
    points: NDArray[np.float64], names: NDArray[np.int64], lineages: NDArray[np.int64]
) -> tuple[float, float]:
    """Share of `points` (n, k) whose nearest one of another lineage has the same name, and that of chance.

    Chance is the share of points of other lineages with the same name. NaN if there is only one lineage.
    """
    is_other = lineages[:, None] != lineages
    rows = np.flatnonzero(is_other.any(axis=1))
    if not len(rows):
        return math.nan, math.nan
    nearest = np.where(is_other, distances_of(points), np.inf)[rows].argmin(axis=1)
    is_same = names[:, None] == names
    chance = (is_same & is_other)[rows].sum(axis=1) / is_other[rows].sum(axis=1)
    return float(is_same[rows, nearest].mean()), float(chance.mean())


def standardised(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """`points` (n, k) in standard deviations; coordinates that do not vary become zero."""
    centre, scale = units_of(points)
    return np.asarray((points - centre) * scale)


def _folds(
    is_positive: NDArray[np.bool_], lineages: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """(n,) fold of each point: lineages stay whole, and each fold has some of both kinds of lineages."""
    names, groups = np.unique(lineages, return_inverse=True)
    with_positive = np.zeros(len(names), np.bool_)
    with_positive[groups[is_positive]] = True
    with_negative = np.zeros(len(names), np.bool_)
    with_negative[groups[~is_positive]] = True
    count = min(_FOLDS, int(with_positive.sum()), int(with_negative.sum()))
    if count < 2:
        return None
    of_lineage = np.empty(len(names), np.int64)
    for side in (with_positive, ~with_positive):
        places = rng.permutation(np.flatnonzero(side))
        of_lineage[places] = np.arange(len(places)) % count
    return of_lineage[groups]


def _mean_distance(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,) mean of the smallest of `distances` (m, n)."""
    count = min(_NEIGHBOURS, distances.shape[1])
    return np.asarray(np.partition(distances, count - 1, axis=1)[:, :count].mean(axis=1))


def _wins(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> NDArray[np.float64]:
    """(p, n) 1 where `positive` (p,) is above `negative` (n,), 0.5 where they are equal."""
    return np.asarray(
        (positive[:, None] > negative).astype(np.float64) + 0.5 * (positive[:, None] == negative)
    )
