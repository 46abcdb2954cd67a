"""Dimensions whose noise is normal and leaves most values alone.

A mutant is valid only if every car is. With noise on all coordinates of twenty cars hardly any mutant
would be, so each coordinate changes with a small chance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.inputs import Angle, Real

Column = NDArray[np.float64]


def _sparse_noise(count: int, spread: float, chance: float, rng: np.random.Generator) -> Column:
    """(count,) normal noise with standard deviation `spread`, zero but for a share of `chance`."""
    return np.where(rng.random(count) < chance, rng.normal(0.0, spread, count), 0.0)


@dataclass(frozen=True, slots=True)
class SparseReal(Real):
    """A number that changes with probability `chance`, by normal noise of deviation `spread`."""

    spread: float = 1.0
    chance: float = 1.0

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        return values + _sparse_noise(len(values), self.spread, self.chance, rng)


@dataclass(frozen=True, slots=True)
class SparseAngle(Angle):
    """A direction that changes with probability `chance`, by normal noise of deviation `spread`."""

    spread: float = 1.0
    chance: float = 1.0

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        noisy = values + _sparse_noise(len(values), self.spread, self.chance, rng)
        return (noisy + np.pi) % (2 * np.pi) - np.pi
