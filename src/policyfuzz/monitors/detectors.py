"""Ways to score what a policy sees, or what goes on inside it: arrays, and how they are packed for a kernel.

A score is larger the nearer a crash seems. A row has the same score alone and in any batch, to the last bit,
and a number that is NaN makes the score NaN.

All arrays of a detector lie in one packed array. A call of a compiled function costs about as much for each
array that it is given as a small detector takes altogether, and a score has to be cheap beside a policy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.monitors import kernels

#: No detector has more numbers of a kind.
_MOST = 1 << 24
_FLOAT, _WHOLE = np.dtype(np.float64), np.dtype(np.int64)
#: Decisions of a tree, one after another, at most.
_DEEPEST = 64


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

    def score(self, row: NDArray[np.float64], previous: NDArray[np.float64]) -> float:
        """The score of one `row` (width,); `previous` (width,) is the row one step before."""
        ...


@dataclass(frozen=True, slots=True)
class Linear:
    """A weighted sum: the log-odds of a logistic regression."""

    weights: NDArray[np.float64]  #: (width,)
    bias: NDArray[np.float64]  #: (1,)
    packed: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    needs_previous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self, weights=(_FLOAT, 1), bias=(_FLOAT, 1))
        _expect(len(self.bias) == 1, "there is one bias")
        object.__setattr__(self, "packed", np.concatenate([self.bias, self.weights]))

    @property
    def width(self) -> int:
        return len(self.weights)

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        return kernels.linear_rows(rows, self.packed)

    def score(self, row: NDArray[np.float64], previous: NDArray[np.float64]) -> float:
        return kernels.linear(row, self.packed)


@dataclass(frozen=True, slots=True)
class Clusters:
    """Distance to the nearest normal cluster, less that to the nearest abnormal one (as in the paper)."""

    location: NDArray[np.float64]  #: (width,)
    axes: NDArray[np.float64]  #: (p, width) what distances are measured along
    normal: NDArray[np.float64]  #: (a, p) centres
    abnormal: NDArray[np.float64]  #: (b, p) centres
    packed: NDArray[np.float64] = field(init=False, repr=False, compare=False)

    needs_previous: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check(self, location=(_FLOAT, 1), axes=(_FLOAT, 2), normal=(_FLOAT, 2), abnormal=(_FLOAT, 2))
        has_axes = all(one.shape[1] == len(self.axes) for one in (self.normal, self.abnormal))
        _expect(self.axes.shape[1] == self.width and has_axes, "axes, centres and location fit")
        sizes = len(self.axes), len(self.normal), len(self.abnormal)
        # a kernel goes along axes and centres side by side
        tables = self.axes.T, self.normal.T, self.abnormal.T
        object.__setattr__(self, "packed", _joined(sizes, self.location, *tables))

    @property
    def width(self) -> int:
        return len(self.location)

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        return kernels.clusters_rows(rows, self.packed)

    def score(self, row: NDArray[np.float64], previous: NDArray[np.float64]) -> float:
        return kernels.clusters(row, self.packed)


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
    packed: NDArray[np.float64] = field(init=False, repr=False, compare=False)

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
        object.__setattr__(self, "packed", self._pack())

    @property
    def width(self) -> int:
        return int(self.inputs[0])

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        return kernels.trees_rows(rows, self.packed)

    def score(self, row: NDArray[np.float64], previous: NDArray[np.float64]) -> float:
        return kernels.trees(row, self.packed)

    def _pack(self) -> NDArray[np.float64]:
        """Trees as they are walked: always as many decisions as the deepest has, a leaf leads to itself."""
        nodes = np.arange(len(self.feature))
        is_leaf = self.feature < 0
        left, right = (np.where(is_leaf, nodes, one) for one in (self.left, self.right))
        reached, depth = np.unique(self.roots), 0
        while not is_leaf[reached].all():
            reached, depth = np.unique([left[reached], right[reached]]), depth + 1
            _expect(depth <= _DEEPEST, f"a tree takes at most {_DEEPEST} decisions")
        words = np.column_stack([np.where(is_leaf, 0, self.feature), left, right]).astype(np.int64)
        numbers = np.where(is_leaf, self.value, self.threshold)
        table = np.column_stack([words.view(np.float64), numbers])
        roots = self.roots.view(np.float64)
        return _joined((len(self.roots), depth), self.bias, roots, table)


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
    packed: NDArray[np.float64] = field(init=False, repr=False, compare=False)

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
        object.__setattr__(self, "packed", self._pack())

    @property
    def width(self) -> int:
        return len(self.location)

    def scores(self, rows: NDArray[np.float64], previous: NDArray[np.float64]) -> NDArray[np.float64]:
        return kernels.transitions_rows(rows, previous, self.packed)

    def score(self, row: NDArray[np.float64], previous: NDArray[np.float64]) -> float:
        return kernels.transitions(row, previous, self.packed)

    def _pack(self) -> NDArray[np.float64]:
        """Its arrays as a kernel goes through them: axes, and rows of all components, side by side."""
        sizes = len(self.axes), len(self.moving), len(self.log_norms)
        whiteners = np.tril(self.whiteners).transpose(2, 1, 0)
        return _joined(
            sizes,
            self.constant,
            self.location,
            self.axes.T,
            self.limits,
            self.resting,
            np.ascontiguousarray(self.moving).view(np.float64),
            self.log_norms,
            self.marginal_log_norms,
            self.offsets.T,
            whiteners,
        )


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
    return name, {name: getattr(detector, name) for name in _stored(DETECTORS[name])}


def _stored(kind: type[Any]) -> list[str]:
    """Names of the arrays that make a detector."""
    return [one.name for one in fields(kind) if one.init]


def detector_of(name: str, arrays: Mapping[str, NDArray[Any]]) -> Detector:
    """The detector with these `arrays`, perhaps of a stranger; raises ValueError if it cannot be one."""
    if name not in DETECTORS:
        raise ValueError(f"{name!r:.50} is no detector")
    kind = DETECTORS[name]
    wanted = _stored(kind)
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


def _joined(sizes: tuple[int, ...], *arrays: NDArray[np.float64]) -> NDArray[np.float64]:
    """All numbers of `arrays` behind `sizes`, which keep their bits as whole numbers."""
    return np.concatenate([np.array(sizes, np.int64).view(np.float64), *(np.ravel(one) for one in arrays)])
