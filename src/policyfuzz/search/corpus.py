"""The corpus: inputs worth keeping, in the order in which they were kept, drawn by their energy."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Columns of a corpus beside the inputs.
COLUMNS: Mapping[str, type] = {
    "parent": np.int64,  #: entry this one was changed from, -1 for a sample
    "case_seed": np.uint64,  #: of the episode; children may keep it
    "return": np.float64,
    "energy": np.float64,  #: the weight with which the entry is chosen; NaN until measured
    "log_density": np.float64,  #: of its state sequence when it was kept
    "distance": np.float64,  #: from a crash, see `evaluation.Nearness`
    "tie_break": np.float64,  #: decides between equal distances
    "is_crash": np.bool_,  #: True for a finding; some algorithms change findings too
    "niche": np.int64,  #: cell of its behaviour
    "root": np.int64,  #: number of the draw that its line of descent began with, -1 if not known
}
#: Values of the columns that an algorithm may leave out.
_UNUSED: Mapping[str, Any] = {
    "log_density": np.nan,
    "distance": np.nan,
    "tie_break": np.nan,
    "is_crash": False,
    "niche": 0,
    "root": -1,
}


class Corpus:
    """A growing table of entries with weighted choice. Entry numbers never change."""

    def __init__(self, dimensions: int) -> None:
        self._inputs = np.empty((64, dimensions))
        self._columns: dict[str, NDArray[Any]] = {name: np.empty(64, kind) for name, kind in COLUMNS.items()}
        self._size = 0
        self._tree: SumTree | None = None  #: of energies, built by the first `choose`

    def __len__(self) -> int:
        return self._size

    @property
    def inputs(self) -> NDArray[np.float64]:
        """(n, d) a view of all inputs."""
        return self._inputs[: len(self)]

    def column(self, name: str) -> NDArray[Any]:
        """(n,) a view of one of COLUMNS."""
        return self._columns[name][: len(self)]

    def append(self, inputs: NDArray[np.float64], columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """Add entries `inputs` (m, d) with their columns; return their numbers (m,).

        `columns` holds COLUMNS (m,). An algorithm may leave out `log_density` and those after it.
        """
        start, end = len(self), len(self) + len(inputs)
        if end > len(self._inputs):
            self._reserve(max(end, 2 * len(self._inputs)))
        self._inputs[start:end] = inputs
        for name, values in self._columns.items():
            values[start:end] = columns[name] if name in columns else _UNUSED[name]
        self._size = end
        if self._tree is not None:
            self._tree.append(_weights(columns["energy"]))
        return np.arange(start, end)

    def set_energy(self, entries: NDArray[np.int64], energy: NDArray[np.float64]) -> None:
        """Give `entries` (m,) a measured `energy` (m,)."""
        self._columns["energy"][entries] = energy
        if self._tree is not None:
            self._tree.set(entries, _weights(energy))

    def set_roots(self, entries: NDArray[np.int64], roots: NDArray[np.int64]) -> None:
        """Say which draws the lines of descent of `entries` (m,) began with."""
        self._columns["root"][entries] = roots

    def choose(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """(count,) entries drawn with probability proportional to energy."""
        if self._tree is None:
            self._tree = SumTree()
            self._tree.append(_weights(self.column("energy")))
        return self._tree.choose(rng, count)

    def _reserve(self, capacity: int) -> None:
        self._inputs = _enlarged(self._inputs, capacity)
        self._columns = {name: _enlarged(values, capacity) for name, values in self._columns.items()}


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


def _weights(energy: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isfinite(energy), energy, 0.0)


def _enlarged(values: NDArray[Any], capacity: int) -> NDArray[Any]:
    larger = np.empty((capacity, *values.shape[1:]), values.dtype)
    larger[: len(values)] = values
    return larger
