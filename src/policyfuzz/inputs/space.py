"""The space of inputs of a target: its dimensions, what is valid, and how to draw from it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import UsageError
from policyfuzz.inputs.dimensions import Dimension

Inputs = NDArray[np.float64]

#: Draws of noise for an input before it is left as it is. One discrete dimension alone changes once in
#: ten draws, so this fails less than once in a thousand.
_TRIES_TO_CHANGE = 70


@dataclass(frozen=True, slots=True)
class InputSpace:
    """Rows of named, typed dimensions under a joint constraint. All methods work on n inputs at once."""

    dimensions: tuple[Dimension, ...]
    #: (n, d) -> (n,) True where the dimensions fit together; by default they always do.
    constraint: Callable[[Inputs], NDArray[np.bool_]] | None = None
    #: (rng, n) -> (n, d) the nominal distribution; by default uniform in the unit cube.
    sampler: Callable[[np.random.Generator, int], Inputs] | None = None

    def __post_init__(self) -> None:
        names = [dimension.name.lower() for dimension in self.dimensions]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated or not names:
            problem = f"repeated dimension names {repeated}" if repeated else "no dimensions"
            raise UsageError(f"an input space has {problem}", hint="give every dimension a name of its own")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dimensions, in order."""
        return tuple(dimension.name for dimension in self.dimensions)

    @property
    def periods(self) -> NDArray[np.float64]:
        """(d,) period of each unit coordinate: 1 where it wraps round, 0 where it does not."""
        return np.array([1.0 if dimension.is_periodic else 0.0 for dimension in self.dimensions])

    def sample(self, rng: np.random.Generator, count: int) -> Inputs:
        """(count, d) draws from the nominal distribution; they may break the constraint."""
        if self.sampler is not None:
            return self.sampler(rng, count)
        return self.from_unit(rng.random((count, len(self.dimensions))))

    def is_valid(self, inputs: Inputs) -> NDArray[np.bool_]:
        """(n,) True where every value is in range and the constraint holds."""
        valid = np.ones(len(inputs), np.bool_)
        for dimension, column in zip(self.dimensions, inputs.T, strict=True):
            valid &= dimension.contains(column)
        return valid if self.constraint is None else valid & self.constraint(inputs)

    def perturb(self, inputs: Inputs, rng: np.random.Generator) -> Inputs:
        """`inputs` (n, d) with small noise in every dimension; the result may be invalid.

        Noise that changes nothing, as it may in discrete dimensions, is drawn again.
        """
        noise = [dimension.perturb for dimension in self.dimensions]
        changed = self._map(noise, inputs, rng)
        for _ in range(_TRIES_TO_CHANGE):
            same = np.flatnonzero((changed == inputs).all(axis=1))
            if len(same) == 0:
                break
            changed[same] = self._map(noise, inputs[same], rng)
        return changed

    def to_unit(self, inputs: Inputs) -> Inputs:
        """Coordinates (n, d) of `inputs` (n, d) in the unit cube."""
        return self._map([dimension.to_unit for dimension in self.dimensions], inputs)

    def from_unit(self, unit: Inputs) -> Inputs:
        """Inputs (n, d) at coordinates `unit` (n, d) of the unit cube."""
        return self._map([dimension.from_unit for dimension in self.dimensions], unit)

    def distance(self, first: Inputs, second: Inputs) -> NDArray[np.float64]:
        """(n,) Euclidean distance of rows in the unit cube, the short way round where it wraps."""
        apart = np.abs(self.to_unit(first) - self.to_unit(second))
        apart = np.where(self.periods > 0, np.minimum(apart, 1.0 - apart), apart)
        return np.asarray(np.sqrt((apart**2).sum(axis=1)))

    def describe(self, row: Inputs) -> dict[str, str]:
        """One input (d,) for a reader: name to value with its unit."""
        return {
            dimension.name: f"{dimension.describe(float(value))} {dimension.unit}".strip()
            for dimension, value in zip(self.dimensions, row, strict=True)
        }

    @staticmethod
    def _map(functions: list[Callable[..., Inputs]], inputs: Inputs, *arguments: object) -> Inputs:
        columns = [function(column, *arguments) for function, column in zip(functions, inputs.T, strict=True)]
        return np.column_stack(columns)
