"""Inputs: rows of named, typed dimensions, and their map to the unit cube."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError

#: (n, d) inputs, one per row; and (n,) the values of one dimension.
Inputs = NDArray[np.float64]
Column = NDArray[np.float64]

#: Case seeds are drawn below this: the campaign file stores them as integers with a sign.
SEED_END = 2**63

#: Default noise of a dimension, as a share of its range.
_DEFAULT_NOISE = 0.01
#: Chance that a discrete value changes when it is perturbed.
_CHANGE_PROBABILITY = 0.1
#: Draws of noise before an input is left unchanged. A single discrete dimension changes in one of ten draws,
#: so this fails less than once in a thousand times.
_TRIES_TO_CHANGE = 70


class Dimension(Protocol):
    """One named coordinate of an input, always held as float64.

    `to_unit` and `from_unit` are inverse to each other; unit coordinates of a periodic dimension
    wrap round at one.
    """

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...

    kind: ClassVar[str]
    is_periodic: ClassVar[bool]

    def to_unit(self, values: Column) -> Column:
        """Coordinates (n,) in [0, 1] of `values` (n,)."""
        ...

    def from_unit(self, unit: Column) -> Column:
        """Values (n,) at unit coordinates (n,) in [0, 1]."""
        ...

    def contains(self, values: Column) -> NDArray[np.bool_]:
        """(n,) True where this dimension can take the value."""
        ...

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        """`values` (n,) with small random noise; the result may lie outside the range."""
        ...

    def describe(self, value: float) -> str:
        """`value` for a reader, without the unit."""
        ...


@dataclass(frozen=True, slots=True)
class UniformMap:
    """Turns uniform random numbers into draws from the nominal distribution.

    What walks through an input space in proportion to how likely inputs are, walks in the cube of these
    numbers. Inputs that the constraint forbids may come out of it: they do not count.
    """

    coordinates: int  #: uniform numbers that one input takes, k
    transform: Callable[[Inputs], Inputs]  #: (n, k) numbers in [0, 1] -> (n, d) inputs

    def __call__(self, uniform: Inputs) -> Inputs:
        """Inputs (n, d) from `uniform` (n, k)."""
        return self.transform(uniform)


@dataclass(frozen=True, slots=True)
class InputSpace:
    """Rows of named, typed dimensions under a joint constraint. All methods work on n inputs at once."""

    dimensions: tuple[Dimension, ...]
    #: (n, d) -> (n,) True where the dimensions fit together; None if they always do.
    constraint: Callable[[Inputs], NDArray[np.bool_]] | None = None
    #: (rng, n) -> (n, d) the nominal distribution; None for the uniform one in the unit cube.
    sampler: Callable[[np.random.Generator, int], Inputs] | None = None
    #: The same distribution, among valid inputs, as a map; None for the uniform one, or if it is not known.
    uniform_map: UniformMap | None = None

    def __post_init__(self) -> None:
        names = [dimension.name.lower() for dimension in self.dimensions]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated or not names:
            problem = f"repeated dimension names {repeated}" if repeated else "no dimensions"
            raise UsageError(f"an input space has {problem}", hint="give every dimension a unique name")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dimensions, in order."""
        return tuple(dimension.name for dimension in self.dimensions)

    @property
    def texts(self) -> tuple[str, ...]:
        """Names, units and options of all dimensions."""
        parts = ((one.name, one.unit, *getattr(one, "options", ())) for one in self.dimensions)
        return tuple(text for part in parts for text in part)

    @property
    def periods(self) -> NDArray[np.float64]:
        """(d,) period of each unit coordinate: 1 where it wraps round, 0 where it does not."""
        return np.array([1.0 if dimension.is_periodic else 0.0 for dimension in self.dimensions])

    @property
    def from_uniform(self) -> UniformMap | None:
        """The nominal distribution as a map from uniform numbers; None where only a sampler knows it."""
        if self.uniform_map is not None or self.sampler is not None:
            return self.uniform_map
        return UniformMap(len(self.dimensions), self.from_unit)

    def sample(self, rng: np.random.Generator, count: int) -> Inputs:
        """(count, d) draws from the nominal distribution; they may break the constraint."""
        if self.sampler is not None:
            return self.sampler(rng, count)
        uniform_map = self.from_uniform
        assert uniform_map is not None  # there is no sampler
        return uniform_map(rng.random((count, uniform_map.coordinates)))

    def is_valid(self, inputs: Inputs) -> NDArray[np.bool_]:
        """(n,) True where every value is in range and the constraint holds."""
        valid = np.ones(len(inputs), np.bool_)
        for dimension, column in zip(self.dimensions, inputs.T, strict=True):
            valid &= dimension.contains(column)
        return valid if self.constraint is None else valid & self.constraint(inputs)

    def perturb(self, inputs: Inputs, rng: np.random.Generator) -> Inputs:
        """`inputs` (n, d) with small noise in every dimension; the result may be invalid.

        If noise changes nothing, as may happen in discrete dimensions, it is drawn again.
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

    def into_cube(self, unit: Inputs) -> Inputs:
        """Coordinates `unit` (n, d) inside the unit cube: periodic ones go round, others stop at its edge."""
        return np.where(self.periods > 0, unit % 1.0, np.clip(unit, 0.0, 1.0))

    def distance(self, first: Inputs, second: Inputs) -> NDArray[np.float64]:
        """(n,) Euclidean distance of rows in the unit cube, the short way round in periodic dimensions."""
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


@dataclass(frozen=True, slots=True)
class Real:
    """A number between `low` and `high`."""

    name: str
    low: float
    high: float
    unit: str = ""
    noise: float | None = None  #: half-width of small uniform noise; by default 1 % of the range

    kind: ClassVar[str] = "real"
    is_periodic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_bounds(self.name, self.low < self.high, self.low, self.high)

    def to_unit(self, values: Column) -> Column:
        return (values - self.low) / (self.high - self.low)

    def from_unit(self, unit: Column) -> Column:
        return self.low + unit * (self.high - self.low)

    def contains(self, values: Column) -> NDArray[np.bool_]:
        return (values >= self.low) & (values <= self.high)

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        noise = _DEFAULT_NOISE * (self.high - self.low) if self.noise is None else self.noise
        return values + rng.uniform(-noise, noise, len(values))

    def describe(self, value: float) -> str:
        return f"{value:.6g}"


@dataclass(frozen=True, slots=True)
class Angle:
    """A direction in radians; -pi and pi are the same."""

    name: str
    noise: float = _DEFAULT_NOISE * 2 * np.pi
    unit: str = "rad"

    kind: ClassVar[str] = "angle"
    is_periodic: ClassVar[bool] = True
    low: ClassVar[float] = -np.pi
    high: ClassVar[float] = np.pi

    def to_unit(self, values: Column) -> Column:
        return (values + np.pi) / (2 * np.pi) % 1.0

    def from_unit(self, unit: Column) -> Column:
        return unit % 1.0 * 2 * np.pi - np.pi

    def contains(self, values: Column) -> NDArray[np.bool_]:
        return np.isfinite(values)

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        noisy = values + rng.uniform(-self.noise, self.noise, len(values))
        return wrap_angle(noisy)

    def describe(self, value: float) -> str:
        return f"{value:.4f}"


class _WholeNumbers:
    """Maps the whole numbers from `low` to `high` to the centres of equal parts of [0, 1]."""

    __slots__ = ()

    def to_unit(self: Dimension, values: Column) -> Column:
        return (values - self.low + 0.5) / (self.high - self.low + 1)

    def from_unit(self: Dimension, unit: Column) -> Column:
        return np.asarray(np.minimum(self.low + np.floor(unit * (self.high - self.low + 1)), self.high))

    def contains(self: Dimension, values: Column) -> NDArray[np.bool_]:
        return np.asarray((values >= self.low) & (values <= self.high) & (values == np.round(values)))

    def describe(self, value: float) -> str:
        return f"{value:.0f}"


@dataclass(frozen=True, slots=True)
class Integer(_WholeNumbers):
    """A whole number from `low` to `high`, both included."""

    name: str
    low: int
    high: int
    unit: str = ""

    kind: ClassVar[str] = "integer"
    is_periodic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_bounds(self.name, self.low <= self.high, self.low, self.high)

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        steps = rng.choice([-1.0, 1.0], len(values))
        return np.where(rng.random(len(values)) < _CHANGE_PROBABILITY, values + steps, values)


@dataclass(frozen=True, slots=True)
class Choice(_WholeNumbers):
    """One of several named options, held as its position."""

    name: str
    options: tuple[str, ...]

    kind: ClassVar[str] = "choice"
    is_periodic: ClassVar[bool] = False
    unit: ClassVar[str] = ""
    low: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not self.options:
            raise UsageError(f"dimension {self.name!r} has nothing to choose from")

    @property
    def high(self) -> float:
        return float(len(self.options) - 1)

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        following = (values + 1) % len(self.options)
        return np.where(rng.random(len(values)) < _CHANGE_PROBABILITY, following, values)

    def describe(self, value: float) -> str:
        return self.options[int(value)]


@dataclass(frozen=True, slots=True)
class Seed(_WholeNumbers):
    """The seed of something random, a whole number from `low` to `high`, both included.

    Neighbouring seeds have nothing in common, so a changed seed is always a fresh draw.
    """

    name: str
    low: int = 0
    high: int = 2**31 - 1
    change: float = 1.0  #: chance of a fresh draw when the input is perturbed

    kind: ClassVar[str] = "seed"
    is_periodic: ClassVar[bool] = False
    unit: ClassVar[str] = ""

    def __post_init__(self) -> None:
        _check_bounds(self.name, self.low <= self.high, self.low, self.high)

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        fresh = rng.integers(self.low, self.high, len(values), endpoint=True).astype(np.float64)
        return np.where(rng.random(len(values)) < self.change, fresh, values)


def _check_bounds(name: str, is_right: bool, low: float, high: float) -> None:
    if not is_right or not np.isfinite([low, high]).all():
        raise UsageError(
            f"dimension {name!r} goes from {low} to {high}", hint="give finite bounds, low first"
        )


def wrap_angle(angle: NDArray[np.float64]) -> NDArray[np.float64]:
    """`angle` (any shape) brought into [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def is_storable(inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """(n,) True where a campaign file can hold the case of `inputs` (n, d) and `seeds` (n,)."""
    return np.asarray(np.isfinite(inputs).all(axis=1) & (seeds < SEED_END), np.bool_)
