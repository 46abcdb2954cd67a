"""How the input of an episode becomes the first state of an environment: as a seed, as options, or by code.

`OptionsStart` passes the input to the environment's own reset by name. An environment declares which options
its reset takes, and within which bounds, in one of two ways:

    self.reset_options_space = gymnasium.spaces.Dict(mass=spaces.Box(0.5, 2.0), level=spaces.Discrete(3))
    metadata = {"reset_options": {"mass": (0.5, 2.0), "level": (0, 2)}}

Entries of a `Box` of any shape become dimensions `wind[0]`, `wind[1]`, ...; a `Box` is passed on as an array
of its shape and dtype, `Discrete` as a whole number. Of a pair, two whole numbers mean whole numbers, and
anything else the numbers between: write (1.0, 3.0) for those. What `info` of reset repeats under the name of
an option, or else the attribute of that name, is what the option is read back from.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.code_files import load_file
from policyfuzz.core.errors import UsageError, blamed_on
from policyfuzz.core.inputs import Dimension, InputSpace, Integer, Real, Seed

#: What `env.reset` returns: observation and info.
FirstObservation = tuple[Any, dict[str, Any]]
#: The `reset` method of an environment.
Reset = Callable[..., FirstObservation]
#: (d,) the values of an input, or (n, d) of several.
Values = NDArray[np.float64]


class Start(Protocol):
    """One way to start an environment from a row of numbers.

    A start may also have `measure(env, seed)`, which runs the environment's own reset and gives the input
    (d,) that it amounts to, if `read` does not work without `begin`; `own_ranges`, name to lowest and highest
    value that reset draws, if they need not be measured; `usual_bounds`: see `bounds`; and
    `seed_is_situation`, True if the seed makes part of the start, such as a terrain, and no noise.
    """

    @property
    def way(self) -> str:
        """How it is done: "state", "options" or "seed"."""
        ...

    @property
    def label(self) -> str:
        """What the input is, for a reader: "position and speed of cart and pole"."""
        ...

    @property
    def inputs(self) -> InputSpace:
        """The dimensions of the input, and which of them fit together."""
        ...

    @property
    def oracle(self) -> str | None:
        """What usually counts as a crash here, in the words of `oracles.language`; None if unknown."""
        ...

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        """Start an episode of `env` at `values` (d,), and return what its own reset would.

        `env` is the innermost environment, and `reset` its own method: wrappers are outside of this and
        see what is returned here. `seed` feeds whatever `values` do not determine.
        """
        ...

    def read(self, env: Any) -> NDArray[np.float64]:
        """(d,) the input as `env` holds it right after `begin`; NaN where it cannot be read back."""
        ...


@dataclass(frozen=True, slots=True)
class SeedStart:
    """Passes the input to `reset` as its seed; the seed of the case is not used."""

    oracle: str | None = None  #: of the family, where the user prefers its seed

    way: ClassVar[str] = "seed"
    label: ClassVar[str] = "the seed of reset; a changed seed is a fresh draw, so mutation cannot climb"
    inputs: ClassVar[InputSpace] = InputSpace((Seed("seed"),))

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        return reset(seed=int(values[0]))

    def read(self, env: Any) -> NDArray[np.float64]:
        return np.full(1, np.nan)  # a seed cannot be read back


_DECLARE_HINT = "declare a gymnasium.spaces.Dict of Box and Discrete with finite bounds"


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
    note: str = ""  #: what was assumed about them
    #: What the last reset of each environment said.
    _infos: "WeakKeyDictionary[Any, dict[str, Any]]" = field(default_factory=WeakKeyDictionary)

    way: ClassVar[str] = "options"
    oracle: ClassVar[str | None] = None

    @property
    def label(self) -> str:
        names = f"options of reset: {', '.join(option.name for option in self.options)}"
        return "; ".join(filter(None, (names, self.note)))

    @property
    def inputs(self) -> InputSpace:
        return InputSpace(tuple(dimension for option in self.options for dimension in option.dimensions))

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        options = dict(self.constants)
        for option, part in zip(self.options, self._parts(values), strict=True):
            options[option.name] = option.make(part)
        observation, info = reset(seed=seed, options=options)
        self._infos[env] = info
        return observation, info

    def measure(self, env: Any, seed: int) -> NDArray[np.float64]:
        """(d,) what the options amount to when none are given; NaN where it cannot be read."""
        _, self._infos[env] = env.reset(seed=seed)
        return self.read(env)

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
        raise UsageError(f"reset_options_space is a {type(space).__name__}, expected a Dict", _DECLARE_HINT)
    yield from parts.items()


def _from_space(name: str, space: Any) -> Option:
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        low = int(space.start)
        return number_option(name, low, low + int(space.n) - 1)
    if not isinstance(space, spaces.Box):
        raise UsageError(f"option {name!r} of reset is a {type(space).__name__}", _DECLARE_HINT)
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


#: What a start of the user needs.
_PARTS = ("inputs", "begin", "read")


@dataclass(frozen=True, slots=True)
class UsersStart:
    """The user's start, with defaults for what it leaves out."""

    file: Path
    written: Any  #: has inputs, begin and read

    @property
    def way(self) -> str:
        return str(getattr(self.written, "way", "state"))

    @property
    def label(self) -> str:
        return str(getattr(self.written, "label", f"as {self.file.name} says"))

    @property
    def inputs(self) -> InputSpace:
        inputs: InputSpace = self.written.inputs
        return inputs

    @property
    def oracle(self) -> str | None:
        oracle: str | None = getattr(self.written, "oracle", None)
        return oracle

    @property
    def solvable(self) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None:
        """(n, d) -> (n,), None where the user does not say."""
        solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None
        solvable = getattr(self.written, "solvable", None)
        return solvable

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        first: FirstObservation = self.written.begin(env, reset, values, seed)
        return first

    def measure(self, env: Any, seed: int) -> NDArray[np.float64]:
        """(d,) the input that a reset of the environment amounts to; raises where it cannot be read."""
        if hasattr(self.written, "measure"):
            return np.asarray(self.written.measure(env, seed), np.float64)
        env.reset(seed=seed)
        return self.read(env)

    def read(self, env: Any) -> NDArray[np.float64]:
        return np.asarray(self.written.read(env), np.float64)


def start_from_file(file: Path, env: Any) -> Start:
    """The start that `file` describes for `env`.

    It holds a function `start(env)`, or one class that takes no arguments; either gives something that has
    `inputs`, `begin` and `read`, as `Start` explains them.
    """
    with blamed_on(f"the input file {file}"):
        module = load_file(file, "input")
        written = _written_start(file, module, env)
        missing = [part for part in _PARTS if not hasattr(written, part)]
    if missing:
        raise UsageError(
            f"the start of {file} is a {type(written).__name__} without {', '.join(missing)}",
            "it needs inputs (an InputSpace), begin(env, reset, values, seed) and read(env)",
        )
    if not isinstance(written.inputs, InputSpace):
        raise UsageError(f"inputs in {file} is a {type(written.inputs).__name__}, expected an InputSpace")
    return UsersStart(file, written)


def _written_start(file: Path, module: ModuleType, env: Any) -> Any:
    make = getattr(module, "start", None)
    if make is not None and not inspect.isclass(make):
        return make(env)
    own = [cls for cls in vars(module).values() if inspect.isclass(cls) and cls.__module__ == module.__name__]
    starts = [cls for cls in own if hasattr(cls, "begin") and hasattr(cls, "read")]
    if len(starts) != 1:
        raise UsageError(
            f"{file} has no function start, and {len(starts)} classes with begin and read",
            "write def start(env): ... that returns an object with inputs, begin and read",
        )
    return starts[0]()
