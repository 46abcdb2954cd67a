"""Random inputs of a target that are valid and solvable, and case seeds."""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.cases import NO_PARENT
from policyfuzz.search.validation import Validator


def draw_samples(validator: Validator, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """(count, d) Draws from the nominal distribution; what is not valid and solvable is drawn again."""

    def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return np.full(wanted, NO_PARENT, np.int64), validator.space.sample(rng, wanted)

    return validator.fill(count, draw)[1]


def draw_seeds(rng: np.random.Generator, count: int) -> NDArray[np.uint64]:
    """(count,) Case seeds."""
    return rng.integers(0, 2**63, count, dtype=np.uint64)
