"""How near an episode came to a crash, as two numbers: the lower the nearer, the second where the first ties.

These are the oracle's margin and the return. Where the oracle cannot tell a margin they are the return and
how unusual the states were, because many tasks pay the same for every episode that survives.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.archive import tamed


@dataclass(frozen=True, slots=True)
class Nearness:
    """Decided by the first executions, so that all are measured alike."""

    has_margins: bool
    centre: NDArray[np.float64]  #: (k,) mean state of the first executions
    scale: NDArray[np.float64]  #: (k,) over their spread; zero where there was none

    @classmethod
    def fit(cls, executions: Executions) -> "Nearness":
        """What the oracle can tell, and which states are usual."""
        counted = np.arange(executions.states.shape[1]) < executions.lengths[:, None]
        states = tamed(executions.states[counted])
        spread = states.std(axis=0)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return cls(bool(np.isfinite(executions.verdicts.margins).any()), states.mean(axis=0), scale)

    def of(self, executions: Executions) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) and (n,), without NaN."""
        has_return = np.isfinite(executions.returns)
        if self.has_margins:
            return _known(executions.verdicts.margins, has_return), _known(executions.returns, has_return)
        return _known(executions.returns, has_return), _known(-self._strain(executions), has_return)

    def _strain(self, executions: Executions) -> NDArray[np.float64]:
        """(n,) how far any coordinate of any state was from the usual, in standard deviations."""
        counted = np.arange(executions.states.shape[1]) < executions.lengths[:, None]
        with np.errstate(invalid="ignore", over="ignore"):
            apart = np.abs(executions.states - self.centre) * self.scale
        return np.asarray(np.where(counted, apart.max(axis=2, initial=0.0), 0.0).max(axis=1))

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {"has_margins": np.array([self.has_margins]), "centre": self.centre, "scale": self.scale}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> "Nearness":
        """What `state` turned into arrays."""
        return cls(bool(state["has_margins"][0]), state["centre"], state["scale"])


def _known(values: NDArray[np.float64], has_return: NDArray[np.bool_]) -> NDArray[np.float64]:
    """`values` (n,); what is not known, or of an episode without a finite return, is as far as can be."""
    return np.where(np.isnan(values) | ~has_return, np.inf, values)
