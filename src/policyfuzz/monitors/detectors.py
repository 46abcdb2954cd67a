"""Ways to score what a policy sees, or what goes on inside it: arrays and one compiled loop each.

A score is larger the nearer a crash seems. A row does not depend on the others of its batch, and a number
that is NaN makes the score NaN.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.compiled import kernel

#: No detector has more numbers of a kind.
_MOST = 1 << 24
_FLOAT, _WHOLE = np.dtype(np.float64), np.dtype(np.int64)


class Detector(Protocol):
    """Scores rows of `width` numbers."""

    @property
    def width(self) -> int:
        """Numbers of a row."""
        ...

    @property
    def needs_previous(self) -> bool:
        """True if a score is of the way from the row before."""
        ...

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) scores of `rows` (n, width); `previous` (n, width) are the rows one step before."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum: the log-odds of a logistic regression."""

    weights: NDArray[np.float64]  #: (width,)
    bias: NDArray[np.float64]  #: (1,)

    needs_previous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self, weights=(_FLOAT, 1), bias=(_FLOAT, 1))
        _expect(len(self.bias) == 1, "there is one bias")

    @property
    def width(self) -> int:
        return len(self.weights)

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(_linear(rows, self.weights, self.bias))


@dataclass(frozen=True, slots=True)
class Clusters:
    """Distance to the nearest normal cluster, less that to the nearest abnormal one (as in the paper)."""

    location: NDArray[np.float64]  #: (width,)
    axes: NDArray[np.float64]  #: (p, width) what distances are measured along
    normal: NDArray[np.float64]  #: (a, p) centres
    abnormal: NDArray[np.float64]  #: (b, p) centres

    needs_previous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self, location=(_FLOAT, 1), axes=(_FLOAT, 2), normal=(_FLOAT, 2), abnormal=(_FLOAT, 2))
        has_axes = all(one.shape[1] == len(self.axes) for one in (self.normal, self.abnormal))
        _expect(self.axes.shape[1] == self.width and has_axes, "axes, centres and location fit")

    @property
    def width(self) -> int:
        return len(self.location)

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(_clusters(rows, self.location, self.axes, self.normal, self.abnormal))


@dataclass(frozen=True, slots=True)
class Trees:
    """The sum over decision trees: the log-odds of gradient boosting.

    All nodes lie in one table, children behind their parents. A leaf has feature -1.
    """

    inputs: NDArray[np.int64]  #: (1,) width of a row
    roots: NDArray[np.int64]  #: (t,) node at which each tree begins
    feature: NDArray[np.int64]  #: (m,)
    threshold: NDArray[np.float64]  #: (m,) a row goes left if its feature is not larger
    left: NDArray[np.int64]  #: (m,)
    right: NDArray[np.int64]  #: (m,)
    value: NDArray[np.float64]  #: (m,) of a leaf
    bias: NDArray[np.float64]  #: (1,)

    needs_previous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        whole = dict.fromkeys(("inputs", "roots", "feature", "left", "right"), (_WHOLE, 1))
        _check(self, **whole, threshold=(_FLOAT, 1), value=(_FLOAT, 1), bias=(_FLOAT, 1))
        count = len(self.feature)
        _expect(len(self.inputs) == len(self.bias) == 1, "there is one width and one bias")
        tables = (self.threshold, self.left, self.right, self.value)
        _expect(all(len(one) == count for one in tables), "its nodes are complete")
        _expect(bool(((self.roots >= 0) & (self.roots < count)).all()), "its trees have nodes")
        _expect(0 < self.width <= _MOST and bool((self.feature < self.width).all()), "its features exist")
        inner = self.feature >= 0
        for children in (self.left, self.right):
            # so every walk ends
            is_behind = (children > np.arange(count)) & (children < count)
            _expect(bool(is_behind[inner].all()), "children lie behind their parents")

    @property
    def width(self) -> int:
        return int(self.inputs[0])

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        table = self.feature, self.threshold, self.left, self.right, self.value
        return np.asarray(_trees(rows, self.roots, *table, self.bias[0]))


@dataclass(frozen=True, slots=True)
class Transitions:
    """How unlikely the way from the row before is: minus the log of a conditional density.

    The density is the Markov chain of the search, a mixture over a point and its increments, in the form in
    which a point is cheap to score.
    """

    location: NDArray[np.float64]  #: (width,)
    axes: NDArray[np.float64]  #: (d, width) the coordinates of a point
    limits: NDArray[np.float64]  #: (d,) to which coordinates are clipped
    moving: NDArray[np.int64]  #: (m,) coordinates whose increments count
    resting: NDArray[np.float64]  #: (d,) what a unit of movement of the other coordinates costs, squared
    whiteners: NDArray[np.float64]  #: (k, d + m, d + m) lower triangles
    offsets: NDArray[np.float64]  #: (k, d + m) whitened means
    log_norms: NDArray[np.float64]  #: (k,) of a point with its increments
    marginal_log_norms: NDArray[np.float64]  #: (k,) of a point alone
    constant: NDArray[np.float64]  #: (1,) added to the log-density

    needs_previous: ClassVar[bool] = True

    def __post_init__(self) -> None:
        vectors = ("location", "limits", "resting", "log_norms", "marginal_log_norms", "constant")
        _check(
            self,
            **dict.fromkeys(vectors, (_FLOAT, 1)),
            axes=(_FLOAT, 2),
            offsets=(_FLOAT, 2),
            whiteners=(_FLOAT, 3),
            moving=(_WHOLE, 1),
        )
        points, both = len(self.axes), len(self.axes) + len(self.moving)
        components = len(self.log_norms)
        fits = (
            self.axes.shape[1] == self.width
            and len(self.limits) == len(self.resting) == points
            and self.offsets.shape == (components, both)
            and self.whiteners.shape == (components, both, both)
            and len(self.marginal_log_norms) == components
            and len(self.constant) == 1
        )
        _expect(fits, "the sizes of its mixture fit")
        _expect(bool(((self.moving >= 0) & (self.moving < points)).all()), "its moving coordinates exist")

    @property
    def width(self) -> int:
        return len(self.location)

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        found = _transitions(
            rows,
            previous,
            self.location,
            self.axes,
            self.limits,
            self.moving,
            self.resting,
            self.whiteners,
            self.offsets,
            self.log_norms,
            self.marginal_log_norms,
        )
        return np.asarray(found - self.constant[0])


#: Name in files to the class.
DETECTORS: Mapping[str, type[Any]] = {
    "linear": Linear,
    "clusters": Clusters,
    "trees": Trees,
    "transitions": Transitions,
}


def arrays_of(detector: Detector) -> tuple[str, dict[str, NDArray[Any]]]:
    """The name of its class, and its arrays by name."""
    name = next(name for name, kind in DETECTORS.items() if type(detector) is kind)
    return name, {one.name: getattr(detector, one.name) for one in fields(DETECTORS[name])}


def detector_of(name: str, arrays: Mapping[str, NDArray[Any]]) -> Detector:
    """The detector with these `arrays`, perhaps of a stranger; raises ValueError if it cannot be one."""
    if name not in DETECTORS:
        raise ValueError(f"{name!r:.50} is no detector")
    kind = DETECTORS[name]
    wanted = [one.name for one in fields(kind)]
    if sorted(arrays) != sorted(wanted):
        raise ValueError(f"{name} has arrays {', '.join(sorted(arrays))}, expected {', '.join(wanted)}")
    found: Detector = kind(**arrays)
    return found


def _check(detector: Any, **expected: tuple[np.dtype[Any], int]) -> None:
    """Refuse arrays of another type or number of axes than `expected`, empty ones, and NaN."""
    for name, (dtype, axes) in expected.items():
        array = getattr(detector, name)
        if array.dtype != dtype or array.ndim != axes or array.size > _MOST:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, expected {dtype} with {axes} axes")
        if array.size == 0 and name != "moving":
            raise ValueError(f"{name} is empty")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite")


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"it does not hold that {what}")


@kernel
def _linear(
    rows: NDArray[np.float64], weights: NDArray[np.float64], bias: NDArray[np.float64]
) -> NDArray[np.float64]:
    scores = np.empty(rows.shape[0])
    for row in range(rows.shape[0]):
        total = bias[0]
        for place in range(rows.shape[1]):
            total += weights[place] * rows[row, place]
        scores[row] = total
    return scores


@kernel
def _clusters(
    rows: NDArray[np.float64],
    location: NDArray[np.float64],
    axes: NDArray[np.float64],
    normal: NDArray[np.float64],
    abnormal: NDArray[np.float64],
) -> NDArray[np.float64]:
    scores, point = np.empty(rows.shape[0]), np.empty(axes.shape[0])
    for row in range(rows.shape[0]):
        total = 0.0
        for axis in range(axes.shape[0]):
            value = 0.0
            for place in range(rows.shape[1]):
                value += axes[axis, place] * (rows[row, place] - location[place])
            point[axis] = value
            total += value
        scores[row] = _nearest(point, normal) - _nearest(point, abnormal)
        if math.isnan(total):
            scores[row] = np.nan
    return scores


@kernel
def _nearest(point: NDArray[np.float64], centres: NDArray[np.float64]) -> float:
    least = np.inf
    for centre in range(centres.shape[0]):
        total = 0.0
        for axis in range(point.shape[0]):
            total += (point[axis] - centres[centre, axis]) ** 2
        least = min(least, total)
    return math.sqrt(least)


@kernel
def _trees(
    rows: NDArray[np.float64],
    roots: NDArray[np.int64],
    feature: NDArray[np.int64],
    threshold: NDArray[np.float64],
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    value: NDArray[np.float64],
    bias: float,
) -> NDArray[np.float64]:
    scores = np.empty(rows.shape[0])
    for row in range(rows.shape[0]):
        total = bias
        for tree in range(roots.shape[0]):
            node = roots[tree]
            while feature[node] >= 0:
                # as scikit-learn compares
                is_left = np.float32(rows[row, feature[node]]) <= threshold[node]
                node = left[node] if is_left else right[node]
            total += value[node]
        for place in range(rows.shape[1]):
            if math.isnan(rows[row, place]):
                total = np.nan
        scores[row] = total
    return scores


@kernel
def _transitions(
    rows: NDArray[np.float64],
    previous: NDArray[np.float64],
    location: NDArray[np.float64],
    axes: NDArray[np.float64],
    limits: NDArray[np.float64],
    moving: NDArray[np.int64],
    resting: NDArray[np.float64],
    whiteners: NDArray[np.float64],
    offsets: NDArray[np.float64],
    log_norms: NDArray[np.float64],
    marginal_log_norms: NDArray[np.float64],
) -> NDArray[np.float64]:
    count, dimensions, components = rows.shape[0], axes.shape[0], log_norms.shape[0]
    both = dimensions + moving.shape[0]
    scores, change, point = np.empty(count), np.empty(dimensions), np.empty(both)
    joint, marginal = np.empty(components), np.empty(components)
    for row in range(count):
        penalty = 0.0
        for axis in range(dimensions):
            before, now = 0.0, 0.0
            for place in range(rows.shape[1]):
                before += axes[axis, place] * (previous[row, place] - location[place])
                now += axes[axis, place] * (rows[row, place] - location[place])
            limit = limits[axis]
            # NaN passes both comparisons
            before = limit if before > limit else (-limit if before < -limit else before)
            now = limit if now > limit else (-limit if now < -limit else now)
            point[axis] = before
            change[axis] = now - before
            penalty += resting[axis] * change[axis] * change[axis]
        for place in range(moving.shape[0]):
            point[dimensions + place] = change[moving[place]]
        for component in range(components):
            squares = 0.0
            for axis in range(both):
                value = -offsets[component, axis]
                for place in range(axis + 1):
                    value += whiteners[component, axis, place] * point[place]
                squares += value * value
                if axis == dimensions - 1:
                    marginal[component] = marginal_log_norms[component] - 0.5 * squares
            joint[component] = log_norms[component] - 0.5 * squares
        scores[row] = _log_sum(marginal) - _log_sum(joint) + penalty
    return scores


@kernel
def _log_sum(logs: NDArray[np.float64]) -> float:
    """The log of the sum of exp(`logs`)."""
    largest = logs[0]
    for one in logs:
        largest = one if one > largest else largest
    total = 0.0
    for one in logs:
        total += math.exp(one - largest)
    return float(largest + math.log(total))
