"""Coarse cells of the input and of the behaviour: what is in one cell competes, what is not need not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.executions import Executions

#: Cells of the input: at most 2 to the power of this.
_INPUT_BITS = 12
#: Cells of the behaviour: so many equally frequent bins along so many principal directions.
_DIRECTIONS, _BINS = 4, 6
BEHAVIOUR_CELLS = _BINS**_DIRECTIONS
#: Standard deviations at which a coordinate of the behaviour is cut, so that one alone cannot blur the rest.
_FAR = 10.0
#: Numbers beyond this are taken for this: their squares could not be added up.
_LARGEST = 1e100
#: A coordinate that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class InputCells:
    """A grid in the unit cube; beyond a dozen dimensions, the sides of as many random planes."""

    dimensions: int

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self._bins ** min(self.dimensions, _INPUT_BITS))

    @property
    def _bins(self) -> int:
        return max(2, int(2 ** (_INPUT_BITS / self.dimensions)))

    def of(self, unit: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) cell of each of `unit` (n, d)."""
        if self.dimensions > _INPUT_BITS:
            planes = np.random.default_rng(0).normal(size=(self.dimensions, _INPUT_BITS))
            digits = ((unit - 0.5) @ planes > 0).astype(np.int64)
        else:
            digits = np.clip((unit * self._bins).astype(np.int64), 0, self._bins - 1)
        return np.asarray(digits @ self._bins ** np.arange(digits.shape[1]))


def behaviour_of(executions: Executions) -> NDArray[np.float64]:
    """(n, 2k) what each episode did: its mean state and its last."""
    lengths = executions.lengths
    with np.errstate(invalid="ignore", over="ignore"):
        # states lie time first in memory: summed that way they round alike in any batch
        means = executions.states.sum(axis=1) / lengths[:, None]
    last = executions.states[np.arange(len(lengths)), lengths - 1]
    return tamed(np.concatenate([means, last], axis=1))


def tamed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`values` without NaN and without numbers whose squares are infinite."""
    return np.clip(np.nan_to_num(values), -_LARGEST, _LARGEST)


@dataclass(frozen=True, slots=True)
class BehaviourCells:
    """Bins along the directions in which the behaviour of random samples varied most."""

    centre: NDArray[np.float64]  #: (b,)
    directions: NDArray[np.float64]  #: (b, q) principal directions, over the spread of each coordinate
    scale: NDArray[np.float64]  #: (b,) zero where a coordinate was constant
    edges: NDArray[np.float64]  #: (bins - 1, q)

    @classmethod
    def fit(cls, behaviour: NDArray[np.float64]) -> "BehaviourCells":
        """Cells in which the samples' `behaviour` (n, b) is spread evenly."""
        centre, spread = behaviour.mean(axis=0), behaviour.std(axis=0)
        varies = spread > _CONSTANT * np.maximum(1.0, np.abs(centre))
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
        standard = _standardised(behaviour, centre, scale)
        variances, vectors = np.linalg.eigh(standard.T @ standard)
        # where nothing varied, rounding would decide on the bin
        directions = np.where(variances > _CONSTANT * len(behaviour), vectors, 0.0)[:, ::-1][:, :_DIRECTIONS]
        edges = np.quantile(standard @ directions, np.linspace(0, 1, _BINS + 1)[1:-1], axis=0)
        return cls(centre, directions, scale, edges)

    def of(self, behaviour: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) cell of each of `behaviour` (n, b)."""
        places = _standardised(behaviour, self.centre, self.scale) @ self.directions
        cells = np.zeros(len(behaviour), np.int64)
        for place, edges in zip(places.T, self.edges.T, strict=True):
            cells = cells * _BINS + np.searchsorted(edges, place)
        return cells

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {name: getattr(self, name) for name in ("centre", "directions", "scale", "edges")}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> "BehaviourCells":
        """What `state` turned into arrays."""
        return cls(state["centre"], state["directions"], state["scale"], state["edges"])


def _standardised(
    behaviour: NDArray[np.float64], centre: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.clip((behaviour - centre) * scale, -_FAR, _FAR)
