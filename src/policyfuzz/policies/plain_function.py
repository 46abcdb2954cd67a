"""Policies that are a function: of all observations at once, or of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class FunctionPolicy:
    """A function without memory, of observations (m, ...) to actions (m, ...).

    The action of a row must not depend on the other rows, nor on how many there are.
    """

    function: Callable[[NDArray[Any]], Any]

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.asarray(self.function(observations))


@dataclass(frozen=True, slots=True)
class EachAlone:
    """A function without memory, of one observation to one action."""

    function: Callable[[Any], Any]

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.array([self.function(observation) for observation in observations])
