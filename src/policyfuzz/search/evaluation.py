"""What the search sees of an episode: how near it came to a crash, and the cells it falls into.

In the words of quality-diversity search, nearness is the objective, and cells of the input and of the
behaviour are the measures.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.algorithm import State, prefixed, substate

#: Behaviours seen before their cells are laid out.
_FIRST_BEHAVIOURS = 64
#: Cells of the input: at most 2 to the power of this.
_INPUT_BITS = 12
#: Cells of the behaviour: this many equally frequent bins along each of this many principal directions.
_DIRECTIONS, _BINS = 4, 6
BEHAVIOUR_CELLS = _BINS**_DIRECTIONS
#: Standard deviations at which a coordinate of the behaviour is cut off, so that one cannot blur the rest.
_CUT_OFF = 10.0
#: Larger numbers are clipped to this one: their squares could overflow.
_LARGEST = 1e100
#: A coordinate that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class Evaluations:
    """What the search sees of n episodes."""

    input_cells: NDArray[np.int64]  #: (n,)
    behaviour_cells: NDArray[np.int64]  #: (n,)
    distances: NDArray[np.float64]  #: (n,) from a crash, see `Nearness`
    tie_breaks: NDArray[np.float64]  #: (n,) decide between equal distances
    crashed: NDArray[np.bool_]  #: (n,)

    def __getitem__(self, rows: NDArray[Any]) -> "Evaluations":
        """The episodes at `rows`."""
        return Evaluations(
            self.input_cells[rows],
            self.behaviour_cells[rows],
            self.distances[rows],
            self.tie_breaks[rows],
            self.crashed[rows],
        )

    @property
    def cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(n,) cells of the input and (n,) of the behaviour."""
        return self.input_cells, self.behaviour_cells


@dataclass(slots=True)
class Evaluator:
    """Evaluates executions. The first ones fix the scales, so evaluations stay comparable."""

    _nearness: "Nearness | None" = None
    _cells: "BehaviourCells | None" = None
    _behaviours: NDArray[np.float64] | None = field(default=None)  #: seen while there are no cells

    def evaluate(self, executions: Executions, unit: NDArray[np.float64]) -> Evaluations:
        """Evaluate `executions` of inputs at `unit` (n, d); of a failed episode only whether it crashed."""
        sound, count = executions.sound, len(executions)
        cells, far = np.zeros(count, np.int64), np.full(count, np.inf)
        input_cells = InputCells(unit.shape[1]).of(unit)
        evaluations = Evaluations(input_cells, cells, far, far.copy(), executions.crashed)
        if sound.any():
            finished = executions[sound] if executions.errors else executions
            self._nearness = self._nearness or Nearness.fit(finished)
            cells[sound] = self._behaviour_cells(finished)
            evaluations.distances[sound], evaluations.tie_breaks[sound] = self._nearness.of(finished)
        return evaluations

    def _behaviour_cells(self, executions: Executions) -> NDArray[np.int64]:
        """(n,) cells of the behaviour, all zero until enough was seen to lay them out."""
        behaviour = behaviour_of(executions)
        if self._cells is None:
            seen = behaviour if self._behaviours is None else np.concatenate([self._behaviours, behaviour])
            if len(seen) < _FIRST_BEHAVIOURS:
                self._behaviours = seen
                return np.zeros(len(executions), np.int64)
            self._cells, self._behaviours = BehaviourCells.fit(seen), None
        return self._cells.of(behaviour)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that was fixed, as arrays."""
        state = prefixed("nearness.", self._nearness.state()) if self._nearness else {}
        if self._cells is not None:
            state |= prefixed("cells.", self._cells.state())
        elif self._behaviours is not None:
            state["behaviours"] = self._behaviours
        return state

    @classmethod
    def from_state(cls, state: State) -> "Evaluator":
        """The evaluator that had this `state`; other arrays in it are ignored."""
        nearness, cells = substate("nearness.", state), substate("cells.", state)
        return cls(
            Nearness.from_state(nearness) if nearness else None,
            BehaviourCells.from_state(cells) if cells else None,
            None if cells else state.get("behaviours"),
        )


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near an episode came to a crash, as two numbers: the lower the nearer; the second breaks ties.

    They are the oracle's margin and the return. An oracle without margins leaves the return and how unusual
    the states were, because many tasks pay the same for every episode that survives.
    """

    has_margins: bool
    centre: NDArray[np.float64]  #: (k,) mean state of the first executions
    scale: NDArray[np.float64]  #: (k,) one over their spread; zero for a constant coordinate

    @classmethod
    def fit(cls, executions: Executions) -> "Nearness":
        """Note whether the oracle gives margins, and which states are usual."""
        states = _bounded(executions.states[executions.counted])
        spread = states.std(axis=0)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return cls(bool(np.isfinite(executions.verdicts.margins).any()), states.mean(axis=0), scale)

    def of(self, executions: Executions) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) distances and (n,) tie-breaks, without NaN; infinite for an unknown value."""
        has_return = np.isfinite(executions.returns)
        if self.has_margins:
            pair = executions.verdicts.margins, executions.returns
        else:
            pair = executions.returns, -self._unusualness(executions)
        first, second = (np.where(np.isnan(values) | ~has_return, np.inf, values) for values in pair)
        return first, second

    def _unusualness(self, executions: Executions) -> NDArray[np.float64]:
        """(n,) largest deviation of any coordinate of any state, in standard deviations."""
        with np.errstate(invalid="ignore", over="ignore"):
            deviations = np.abs(executions.states - self.centre) * self.scale
        return np.asarray(np.where(executions.counted, deviations.max(axis=2, initial=0.0), 0.0).max(axis=1))

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {"has_margins": np.array([self.has_margins]), "centre": self.centre, "scale": self.scale}

    @classmethod
    def from_state(cls, state: State) -> "Nearness":
        """The nearness that had this `state`."""
        return cls(bool(state["has_margins"][0]), state["centre"], state["scale"])


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
        """(n,) cell of each row of `unit` (n, d)."""
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
    return _bounded(np.concatenate([means, last], axis=1))


@dataclass(frozen=True, slots=True)
class BehaviourCells:
    """Bins along the directions in which the behaviour of random samples varied most."""

    centre: NDArray[np.float64]  #: (b,)
    directions: NDArray[np.float64]  #: (b, q) principal directions of the standardised behaviour
    scale: NDArray[np.float64]  #: (b,) one over the spread; zero for a constant coordinate
    edges: NDArray[np.float64]  #: (bins - 1, q)

    @classmethod
    def fit(cls, behaviour: NDArray[np.float64]) -> "BehaviourCells":
        """Cells over which the samples' `behaviour` (n, b) is spread evenly."""
        centre, spread = behaviour.mean(axis=0), behaviour.std(axis=0)
        varies = spread > _CONSTANT * np.maximum(1.0, np.abs(centre))
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
        standard = _standardised(behaviour, centre, scale)
        variances, vectors = np.linalg.eigh(standard.T @ standard)
        # rounding would choose the bin along a direction in which nothing varied
        directions = np.where(variances > _CONSTANT * len(behaviour), vectors, 0.0)[:, ::-1][:, :_DIRECTIONS]
        edges = np.quantile(standard @ directions, np.linspace(0, 1, _BINS + 1)[1:-1], axis=0)
        return cls(centre, directions, scale, edges)

    def of(self, behaviour: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) cell of each row of `behaviour` (n, b)."""
        places = _standardised(behaviour, self.centre, self.scale) @ self.directions
        cells = np.zeros(len(behaviour), np.int64)
        for place, edges in zip(places.T, self.edges.T, strict=True):
            cells = cells * _BINS + np.searchsorted(edges, place)
        return cells

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {name: getattr(self, name) for name in ("centre", "directions", "scale", "edges")}

    @classmethod
    def from_state(cls, state: State) -> "BehaviourCells":
        """The cells that had this `state`."""
        return cls(state["centre"], state["directions"], state["scale"], state["edges"])


def _standardised(
    behaviour: NDArray[np.float64], centre: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.clip((behaviour - centre) * scale, -_CUT_OFF, _CUT_OFF)


def _bounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`values` without NaN, clipped so that their squares stay finite."""
    return np.clip(np.nan_to_num(values), -_LARGEST, _LARGEST)
