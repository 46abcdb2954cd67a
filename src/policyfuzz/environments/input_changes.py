"""Bounds and values for inputs that the user has chosen, read from text or TOML, and applied to a start."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.inputs import Angle, Choice, Dimension, InputSpace, Integer, Real, Seed
from policyfuzz.environments.starts import FirstObservation, Start

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
    def inputs(self) -> InputSpace:
        original = self.original.inputs
        return InputSpace(
            self.dimensions,
            None if original.constraint is None else self._is_valid,
            None if original.sampler is None else self._draw,
        )

    @property
    def solvable(self) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None:
        """(n, k) -> (n,) what the original says of it."""
        return None if getattr(self.original, "solvable", None) is None else self._is_solvable

    def begin(
        self, env: Any, reset: Callable[..., FirstObservation], values: NDArray[np.float64], seed: int
    ) -> FirstObservation:
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
        even = InputSpace(self.dimensions).sample(rng, count)
        known = set(self.original.inputs.dimensions)
        is_new = np.array([dimension not in known for dimension in self.dimensions])
        return np.where(is_new, even, drawn)


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


WAYS = ("state", "options", "seed")

_HINT = (
    "write NAME=LOW..HIGH and NAME=VALUE with ';' between, or state, options or seed, or a .toml or .py file"
)


@dataclass(frozen=True, slots=True)
class InputChanges:
    """Which way to start an environment, and what to change of its dimensions."""

    way: str | None = None  #: "state", "options" or "seed"; None for the best available
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, float | str] = field(default_factory=dict)
    python_file: Path | None = None  #: makes the start itself

    @property
    def text(self) -> str:
        """The same as inline text, unless a Python file says it."""
        bounds = [f"{name}={low!r}..{high!r}" for name, (low, high) in self.bounds.items()]
        fixed = [f"{name}={value}" for name, value in self.fixed.items()]
        return ";".join([*([self.way] if self.way else []), *bounds, *fixed])

    @property
    def of_dimensions(self) -> dict[str, Change]:
        """Bounds and values, by the name of the dimension."""
        return {**self.bounds, **self.fixed}


def read_changes(text: str) -> InputChanges:
    """Changes from `text`: `theta=-0.1..0.1;x=0`, `seed`, `FILE.toml` or `FILE.py`."""
    path = Path(text.strip())
    if path.suffix not in (".toml", ".py"):
        return _from_text(text)
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r} to read the input from")
    return _from_toml(path) if path.suffix == ".toml" else InputChanges(python_file=path)


def _from_text(text: str) -> InputChanges:
    way: str | None = None
    bounds: dict[str, tuple[float, float]] = {}
    fixed: dict[str, float | str] = {}
    for item in filter(None, (part.strip() for part in text.split(";"))):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals and name in WAYS and way is None:
            way = name
            continue
        if not name or not value or name in bounds or name in fixed:
            problem = "twice the same name" if name in bounds or name in fixed else "no such thing"
            raise UsageError(f"cannot read {item!r} in {text!r}: {problem}", _HINT)
        low, dots, high = value.partition("..")
        if dots:
            bounds[name] = (_number(low, item), _number(high, item))
        else:
            fixed[name] = _number_or_text(value)
    return InputChanges(way, bounds, fixed)


def _number(text: str, item: str) -> float:
    number = _number_or_text(text.strip())
    if isinstance(number, str):
        raise UsageError(f"cannot read the number {text!r} in {item!r}", _HINT)
    return number


def _number_or_text(text: str) -> float | str:
    """A whole number where it is written as one, else a number, else the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _from_toml(path: Path) -> InputChanges:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    for key in content:
        if key not in ("way", "bounds", "fixed"):
            raise unknown_name(f"entry of {path}", key, ("way", "bounds", "fixed"))
    way = content.get("way")
    if way is not None and way not in WAYS:
        raise unknown_name(f"way in {path}", str(way), WAYS)
    bounds = {name: _pair(path, name, pair) for name, pair in _table(path, content, "bounds").items()}
    fixed = {name: _scalar(path, name, value) for name, value in _table(path, content, "fixed").items()}
    for name in bounds:
        if name in fixed:
            raise UsageError(f"{name} has bounds and is fixed in {path}", "keep one of the two")
    return InputChanges(way, bounds, fixed)


def _table(path: Path, content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = content.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"{key} in {path} is {table!r}, expected a table", f"write a line [{key}]")
    return table


def _pair(path: Path, name: str, pair: Any) -> tuple[float, float]:
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(value) in (int, float) for value in pair):
        raise UsageError(f"bounds of {name} in {path} are {pair!r}", f"write {name} = [low, high]")
    return pair[0], pair[1]


def _scalar(path: Path, name: str, value: Any) -> float | str:
    if not isinstance(value, int | float | str):
        raise UsageError(
            f"{name} in {path} is fixed to {value!r}", f"write {name} = 0.0, or the name of an option"
        )
    return value
