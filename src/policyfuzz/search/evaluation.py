"""What the search sees of an episode: how near it came to a crash, and the cells it falls into.

In the words of quality-diversity search, nearness is the objective.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.behaviour import bounded
from policyfuzz.search.state import State, prefixed, substate

#: Cells of the input: at most 2 to the power of this.
_INPUT_BITS = 12


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
    def swapped(self) -> "Evaluations":
        """The same, where the tie-break goes first, and the distance breaks ties."""
        return replace(self, distances=self.tie_breaks, tie_breaks=self.distances)

    @property
    def cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(n,) cells of the input and (n,) of the behaviour."""
        return self.input_cells, self.behaviour_cells


@dataclass(slots=True)
class Evaluator:
    """Evaluates executions. The first ones fix the scales, so evaluations stay comparable."""

    _nearness: "Nearness | None" = None

    def evaluate(
        self, executions: Executions, unit: NDArray[np.float64], behaviour_cells: NDArray[np.int64]
    ) -> Evaluations:
        """Evaluate `executions` of inputs at `unit` (n, d) whose behaviour is in `behaviour_cells` (n,).

        Of a failed episode, all that counts is whether it crashed.
        """
        sound, count = executions.sound, len(executions)
        far = np.full(count, np.inf)
        input_cells = InputCells(unit.shape[1]).of(unit)
        evaluations = Evaluations(input_cells, behaviour_cells, far, far.copy(), executions.crashed)
        if sound.any():
            finished = executions[sound] if executions.errors else executions
            self._nearness = self._nearness or Nearness.fit(finished)
            evaluations.distances[sound], evaluations.tie_breaks[sound] = self._nearness.of(finished)
        return evaluations

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that was fixed, as arrays."""
        return prefixed("nearness.", self._nearness.state()) if self._nearness else {}

    @classmethod
    def from_state(cls, state: State) -> "Evaluator":
        """The evaluator that had this `state`; other arrays in it are ignored."""
        nearness = substate("nearness.", state)
        return cls(Nearness.from_state(nearness) if nearness else None)


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
        states = bounded(executions.states[executions.counted])
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
