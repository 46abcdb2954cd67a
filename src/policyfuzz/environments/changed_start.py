"""A start whose input has other bounds, or fixed values in place of some dimensions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.inputs import Angle, Choice, Dimension, InputSpace, Integer, Real, Seed, UniformMap
from policyfuzz.environments.starts import FirstObservation, Reset, Start, Values

#: What a dimension is changed to: a pair of bounds, one number, or the name of one option.
Change = tuple[float, float] | float | str


def changed(start: Start, changes: Mapping[str, Change]) -> Start:
    """`start` with other bounds, or with values in place of dimensions, by the names of these."""
    if not changes:
        return start
    for name in changes:
        if name not in start.inputs.names:
            raise unknown_name("dimension of the input", name, start.inputs.names)
    dimensions: list[Dimension] = []
    for dimension in start.inputs.dimensions:
        change = changes.get(dimension.name)
        if change is None:
            dimensions.append(dimension)
        elif isinstance(change, tuple) and change[0] != change[1]:
            dimensions.append(_with_bounds(dimension, *change))
    if not dimensions:
        raise UsageError(
            f"all dimensions of the input are fixed: {', '.join(start.inputs.names)}",
            "leave one of them free",
        )
    return ChangedStart(start, tuple(dimensions), _template(start.inputs, changes))


@dataclass(frozen=True, slots=True)
class ChangedStart:
    """Another start whose input (d,) is completed from (k,) free values."""

    original: Start
    dimensions: tuple[Dimension, ...]  #: the k free ones
    template: NDArray[np.float64]  #: (d,) the fixed values, NaN for free ones

    @property
    def way(self) -> str:
        return self.original.way

    @property
    def label(self) -> str:
        fixed = [
            f"{dimension.name} = {dimension.describe(value)}"
            for dimension, value in zip(self.original.inputs.dimensions, self.template.tolist(), strict=True)
            if not np.isnan(value)
        ]
        return "; ".join([self.original.label, *fixed])

    @property
    def oracle(self) -> str | None:
        return self.original.oracle

    @property
    def seed_is_situation(self) -> bool:
        return bool(getattr(self.original, "seed_is_situation", False))

    @property
    def fixed_values(self) -> dict[str, float]:
        """The values of the dimensions that are fixed."""
        pairs = zip(self.original.inputs.names, self.template.tolist(), strict=True)
        return {name: value for name, value in pairs if not np.isnan(value)}

    @property
    def inputs(self) -> InputSpace:
        original = self.original.inputs
        return InputSpace(
            self.dimensions,
            None if original.constraint is None else self._is_valid,
            None if original.sampler is None else self._draw,
            self._uniform_map(original),
        )

    @property
    def solvable(self) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None:
        """(n, k) -> (n,) what the original says of it."""
        return None if getattr(self.original, "solvable", None) is None else self._is_solvable

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        return self.original.begin(env, reset, self._complete(values[None])[0], seed)

    def read(self, env: Any) -> NDArray[np.float64]:
        return self.original.read(env)[self._free]

    @property
    def _free(self) -> NDArray[np.bool_]:
        return np.isnan(self.template)

    def _complete(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inputs (n, d) of the original from free values (n, k)."""
        complete = np.tile(self.template, (len(inputs), 1))
        complete[:, self._free] = inputs
        return complete

    def _is_valid(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        constraint = self.original.inputs.constraint
        assert constraint is not None
        return constraint(self._complete(inputs))

    def _is_solvable(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        answer: NDArray[np.bool_] = getattr(self.original, "solvable")(self._complete(inputs))  # noqa: B009
        return answer

    def _draw(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """(count, k) as the original draws them, and evenly where the bounds are new."""
        drawn = self.original.inputs.sample(rng, count)[:, self._free]
        return np.where(self._is_new, InputSpace(self.dimensions).sample(rng, count), drawn)

    @property
    def _is_new(self) -> NDArray[np.bool_]:
        """(k,) True where the bounds are new."""
        known = set(self.original.inputs.dimensions)
        return np.array([dimension not in known for dimension in self.dimensions], np.bool_)

    def _uniform_map(self, original: InputSpace) -> UniformMap | None:
        """What `_draw` draws, as a map; None where the `original` has none, or draws evenly."""
        old = original.uniform_map
        if old is None:
            return None

        def transform(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
            drawn = old(uniform[:, : old.coordinates])[:, self._free]
            return np.where(self._is_new, even.from_unit(uniform[:, old.coordinates :]), drawn)

        even = InputSpace(self.dimensions)
        return UniformMap(old.coordinates + len(self.dimensions), transform)


def _template(inputs: InputSpace, changes: Mapping[str, Change]) -> NDArray[np.float64]:
    template = np.full(len(inputs.dimensions), np.nan)
    for place, dimension in enumerate(inputs.dimensions):
        change = changes.get(dimension.name)
        if isinstance(change, tuple) and change[0] == change[1]:
            change = change[0]
        if change is not None and not isinstance(change, tuple):
            template[place] = _value(dimension, change)
    return template


def _with_bounds(dimension: Dimension, low: float, high: float) -> Dimension:
    """`dimension` from `low` to `high`, with noise of the same share of its range."""
    name = dimension.name
    if isinstance(dimension, Choice):
        raise UsageError(
            f"{name} is a choice and has no bounds, given {low} to {high}",
            f"fix it: {name}={dimension.options[0]}; options: {', '.join(dimension.options)}",
        )
    if isinstance(dimension, Integer):
        return Integer(name, _whole(name, low), _whole(name, high), dimension.unit)
    if isinstance(dimension, Seed):
        return Seed(name, _whole(name, low), _whole(name, high), dimension.change)
    if isinstance(dimension, Real | Angle):
        share = None if dimension.noise is None else dimension.noise / (dimension.high - dimension.low)
        return Real(
            name, float(low), float(high), dimension.unit, None if share is None else share * abs(high - low)
        )
    raise UsageError(f"the bounds of {name}, a {type(dimension).__name__}, cannot be changed")


def _value(dimension: Dimension, given: float | str) -> float:
    """`given` as a value of `dimension`."""
    if isinstance(dimension, Choice):
        if given not in dimension.options:
            raise unknown_name(f"option of {dimension.name}", str(given), dimension.options)
        return float(dimension.options.index(str(given)))
    if isinstance(given, str) or not np.isfinite(given):
        raise UsageError(f"{dimension.name} is set to {given!r}, expected a number")
    return float(_whole(dimension.name, given) if isinstance(dimension, Integer | Seed) else given)


def _whole(name: str, value: float) -> int:
    if not np.isfinite(value) or value != int(value):
        raise UsageError(f"{name} takes whole numbers, given {value}")
    return int(value)
