"""`reset(options=...)`: the input is passed to the environment's own reset by name.

An environment declares which options its reset takes, and within which bounds, in one of two ways:

    self.reset_options_space = gymnasium.spaces.Dict(mass=spaces.Box(0.5, 2.0), level=spaces.Discrete(3))
    metadata = {"reset_options": {"mass": (0.5, 2.0), "level": (0, 2)}}

Entries of a `Box` of any shape become dimensions `wind[0]`, `wind[1]`, ...; a `Box` is passed on as an array
of its shape and dtype, `Discrete` as a whole number. Of a pair, two whole numbers mean whole numbers, and
anything else the numbers between: write (1.0, 3.0) for those. What `info` of reset repeats under the name of
an option, or else the attribute of that name, is what the option is read back from.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import Dimension, InputSpace, Integer, Real
from policyfuzz.environments.starts import FirstObservation

_HINT = "declare a gymnasium.spaces.Dict of Box and Discrete with finite bounds"


@dataclass(frozen=True, slots=True)
class Option:
    """One entry of the options, and the dimensions that it is made of."""

    name: str
    dimensions: tuple[Dimension, ...]
    make: Callable[[NDArray[np.float64]], Any]  #: values (k,) of its dimensions to what `reset` is given


@dataclass(frozen=True, slots=True)
class OptionsStart:
    """Passes the input to `reset` as options, along with others that do not change."""

    options: tuple[Option, ...]
    constants: Mapping[str, Any] = field(default_factory=dict)
    #: What the last reset of each environment said.
    _infos: "WeakKeyDictionary[Any, dict[str, Any]]" = field(default_factory=WeakKeyDictionary)

    way: ClassVar[str] = "options"
    oracle: ClassVar[str | None] = None

    @property
    def label(self) -> str:
        return f"options of reset: {', '.join(option.name for option in self.options)}"

    @property
    def inputs(self) -> InputSpace:
        return InputSpace(tuple(dimension for option in self.options for dimension in option.dimensions))

    def begin(
        self, env: Any, reset: Callable[..., FirstObservation], values: NDArray[np.float64], seed: int
    ) -> FirstObservation:
        options = dict(self.constants)
        for option, part in zip(self.options, self._parts(values), strict=True):
            options[option.name] = option.make(part)
        observation, info = reset(seed=seed, options=options)
        self._infos[env] = info
        return observation, info

    def read(self, env: Any) -> NDArray[np.float64]:
        info = self._infos[env]
        found = [
            _numbers(info.get(option.name, getattr(env, option.name, None)), len(option.dimensions))
            for option in self.options
        ]
        return np.concatenate(found)

    def _parts(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        sizes = [len(option.dimensions) for option in self.options]
        return np.split(values, np.cumsum(sizes)[:-1])


def declared_options(env: Any) -> OptionsStart | None:
    """The options that `env` declares, None where it declares none."""
    space = getattr(env, "reset_options_space", None)
    if space is not None:
        options = tuple(_from_space(str(name), part) for name, part in _entries(space))
    else:
        pairs = (getattr(env, "metadata", None) or {}).get("reset_options") or {}
        options = tuple(_from_metadata(str(name), bounds) for name, bounds in pairs.items())
    return OptionsStart(options) if options else None


def _entries(space: Any) -> Iterator[tuple[str, Any]]:
    parts = getattr(space, "spaces", None)
    if not isinstance(parts, Mapping):
        raise UsageError(f"reset_options_space is a {type(space).__name__}, expected a Dict", _HINT)
    yield from parts.items()


def _from_space(name: str, space: Any) -> Option:
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        low = int(space.start)
        return number_option(name, low, low + int(space.n) - 1)
    if not isinstance(space, spaces.Box):
        raise UsageError(f"option {name!r} of reset is a {type(space).__name__}", _HINT)
    is_whole = np.issubdtype(space.dtype, np.integer)
    dimensions = tuple(
        Integer(_entry(name, place), int(low), int(high))
        if is_whole
        else Real(_entry(name, place), float(low), float(high))
        for place, low, high in zip(np.ndindex(space.shape), space.low.flat, space.high.flat, strict=True)
    )
    return Option(name, dimensions, lambda values: values.reshape(space.shape).astype(space.dtype))


def _entry(name: str, place: tuple[int, ...]) -> str:
    """`name[1]`, `name[1,2]`, or just `name` where a space has no axes."""
    return f"{name}[{','.join(map(str, place))}]" if place else name


def _from_metadata(name: str, bounds: Any) -> Option:
    try:
        low, high = bounds
        return number_option(name, low, high)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"option {name!r} of reset is declared as {bounds!r}",
            'write metadata["reset_options"] = {name: (low, high)}',
        ) from error


def number_option(name: str, low: float, high: float) -> Option:
    """An option that is a plain number, and a whole one if both bounds are."""
    if isinstance(low, int | np.integer) and isinstance(high, int | np.integer):
        return Option(name, (Integer(name, int(low), int(high)),), lambda values: int(values[0]))
    return Option(name, (Real(name, float(low), float(high)),), lambda values: float(values[0]))


def _numbers(value: Any, count: int) -> NDArray[np.float64]:
    """(count,) `value` as numbers, NaN where it is something else."""
    try:
        numbers = np.asarray(value, np.float64).reshape(-1)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    return numbers if len(numbers) == count else np.full(count, np.nan)
