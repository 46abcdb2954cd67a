"""The seed of `reset` as the only input: always to be had, and the least one can say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.inputs import InputSpace, Seed
from policyfuzz.simulators.gym.start import FirstObservation


@dataclass(frozen=True, slots=True)
class SeedStart:
    """Passes the input to `reset` as its seed; the seed of the case is not used."""

    way: ClassVar[str] = "seed"
    label: ClassVar[str] = "the seed of reset; a changed seed is a fresh draw, so mutation cannot climb"
    oracle: ClassVar[str | None] = None
    inputs: ClassVar[InputSpace] = InputSpace((Seed("seed"),))

    def begin(
        self, env: Any, reset: Callable[..., FirstObservation], values: NDArray[np.float64], seed: int
    ) -> FirstObservation:
        return reset(seed=int(values[0]))

    def read(self, env: Any) -> NDArray[np.float64]:
        return np.full(1, np.nan)  # what became of a seed cannot be told from outside
