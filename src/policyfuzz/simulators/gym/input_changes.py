"""What the user wants of the input, as text on the command line, a TOML file or a Python file."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from policyfuzz.errors import UsageError, unknown_name
from policyfuzz.simulators.gym.changed_start import Change

WAYS = ("state", "options", "seed")

_HINT = (
    "write NAME=LOW..HIGH and NAME=VALUE with ';' between, or state, options or seed, or a .toml or .py file"
)


@dataclass(frozen=True, slots=True)
class InputChanges:
    """Which way to start an environment, and what to change of its dimensions."""

    way: str | None = None  #: "state", "options" or "seed"; None for the best that is to be had
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
