"""Reads which inputs the user wants to vary, and finds out how to start an environment from them.

It tries in this order: a family whose state we know how to set; options that the environment declares for its
reset (see `starts`); its seed.
"""

import importlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from policyfuzz.core.errors import UsageError, blamed_on, unknown_name
from policyfuzz.core.files import is_file, read_regular
from policyfuzz.environments.changed_start import Change, changed
from policyfuzz.environments.starts import (
    OptionsStart,
    SeedStart,
    Start,
    declared_options,
    number_option,
    start_from_file,
)

#: Module of a class to the module here that can start it, which is imported only when needed.
_FAMILIES: Mapping[str, str] = {
    "gymnasium.envs.classic_control": "classic_control",
    "gymnasium.envs.toy_text": "toy_text",
    "gymnasium.envs.mujoco": "mujoco",
    "gymnasium.envs.box2d.lunar_lander": "lunar_lander",
    "gymnasium.envs.box2d.bipedal_walker": "bipedal_walker",
    "minigrid": "minigrid",
}

WAYS = ("state", "options", "seed")
_MOST_TOML_BYTES = 1 << 20
#: Of whole numbers, which Python would otherwise take at any length.
_LARGEST = 1 << 64
_TOML_HINT = "expected way = ..., and tables [bounds] and [fixed]"

_CHANGES_HINT = (
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
        """The same as inline text; empty for a Python file."""
        bounds = [f"{name}={low!r}..{high!r}" for name, (low, high) in self.bounds.items()]
        fixed = [f"{name}={value}" for name, value in self.fixed.items()]
        return ";".join([*([self.way] if self.way else []), *bounds, *fixed])

    @property
    def of_dimensions(self) -> dict[str, Change]:
        """Bounds and values, by the name of the dimension."""
        return {**self.bounds, **self.fixed}


_UNCHANGED = InputChanges()


def find_start(env: Any, changes: InputChanges = _UNCHANGED) -> Start:
    """The best way to start `env`, or the one that `changes` name, with their bounds and values."""
    return changed(*unchanged_start(env, changes))


def unchanged_start(env: Any, changes: InputChanges = _UNCHANGED) -> tuple[Start, dict[str, Change]]:
    """As `find_start`, with all dimensions as they are, and the changes that are still to be made."""
    base = env.unwrapped
    if changes.python_file is not None:
        return start_from_file(changes.python_file, base), {}
    if changes.way == "options" and declared_options(base) is None:
        return _undeclared_options(base, changes), {}
    with blamed_on(f"environment {type(base).__name__}"):
        start = _start(base, changes.way)
    if start.way == "seed" and set(changes.of_dimensions) - {"seed"}:
        raise UsageError(
            f"{type(base).__name__} is started by its seed alone; "
            f"it has no {', '.join(sorted(set(changes.of_dimensions) - {'seed'}))} to change",
            'if its reset takes them as options: "options;NAME=LOW..HIGH", or way = "options" in TOML',
        )
    return start, changes.of_dimensions


def read_changes(text: str) -> InputChanges:
    """Changes from `text`: `theta=-0.1..0.1;x=0`, `seed`, `FILE.toml` or `FILE.py`."""
    path = Path(text.strip())
    if path.suffix not in (".toml", ".py"):
        return _from_text(text)
    if not is_file(path):
        raise UsageError(f"there is no file {str(path)!r} to read the input from")
    return _from_toml(path) if path.suffix == ".toml" else InputChanges(python_file=path)


def _start(base: Any, way: str | None) -> Start:
    if way == "state":
        return _state(base)
    family = _family_start(base) if way in (None, "seed") else None
    if way == "seed":  # which is no reason to look for other crashes
        return SeedStart(None if family is None else family.oracle)
    return family or declared_options(base) or SeedStart()


def _state(base: Any) -> Start:
    start = _family_start(base)
    if start is not None:
        return start
    name = type(base).__name__
    overriding = _class_with_own_reset(base)
    reason = f"{overriding} overrides reset" if overriding else "this kind of environment is not known"
    raise UsageError(
        f"cannot set the state of {name}: {reason}",
        "describe it in a Python file with start(env) and pass that as the input, or use options or seed",
    )


def _undeclared_options(base: Any, changes: InputChanges) -> OptionsStart:
    """Options that the user names, for an environment that does not."""
    if not changes.bounds:
        raise UsageError(
            f"{type(base).__name__} does not declare which options its reset takes",
            'name them: "options;NAME=LOW..HIGH", [bounds] in TOML, or its attribute reset_options_space',
        )
    options = tuple(number_option(name, *pair) for name, pair in changes.bounds.items())
    return OptionsStart(options, dict(changes.fixed), _whole_note(changes.bounds))


def _whole_note(bounds: Mapping[str, tuple[float, float]]) -> str:
    """Which of the options are taken to be whole numbers, and how to change that."""
    whole = [name for name, pair in bounds.items() if all(isinstance(bound, int) for bound in pair)]
    if not whole:
        return ""
    low, high = map(float, bounds[whole[0]])
    said = "is a whole number" if len(whole) == 1 else "are whole numbers"
    return (
        f"{' and '.join(whole)} {said} because both bounds are,"
        f" write {whole[0]}={low!r}..{high!r} for real numbers"
    )


def _family_start(env: Any) -> Start | None:
    """How to start `env` if it belongs to a known family, None otherwise.

    A user's class counts as a member if it inherits from one and does not override `reset`: we must not
    overwrite the state that its own reset prepares.
    """
    family = family_module(env)
    if family is None or _class_with_own_reset(env) is not None:
        return None
    start: Start | None = family.find(env)
    return start


def family_module(env: Any) -> ModuleType | None:
    """The module of the family that the innermost environment `env` belongs to, None for an unknown kind."""
    member = _member(type(env))
    if member is None:
        return None
    return importlib.import_module(f"policyfuzz.environments.families.{_family(member)}")


def _class_with_own_reset(env: Any) -> str | None:
    """The name of the user's class that replaces the `reset` of a family, None if there is none."""
    member = _member(type(env))
    if member is None:
        return None
    above = type(env).__mro__[: type(env).__mro__.index(member)]
    return next((cls.__name__ for cls in above if "reset" in vars(cls)), None)


def _member(cls: type) -> type | None:
    """The class nearest to `cls` that a family knows."""
    return next((one for one in cls.__mro__ if _family(one) is not None), None)


def _family(cls: type) -> str | None:
    module = cls.__module__
    return next((family for root, family in _FAMILIES.items() if f"{module}.".startswith(f"{root}.")), None)


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
            problem = "the name is given twice" if name in bounds or name in fixed else "no such thing"
            raise UsageError(f"cannot read {item!r} in {text!r}: {problem}", _CHANGES_HINT)
        low, dots, high = value.partition("..")
        if dots:
            bounds[name] = (_number(low, item), _number(high, item))
        else:
            fixed[name] = _number_or_text(value)
    return InputChanges(way, bounds, fixed)


def _number(text: str, item: str) -> float:
    number = _number_or_text(text.strip())
    if isinstance(number, str):
        raise UsageError(f"cannot read the number {text!r} in {item!r}", _CHANGES_HINT)
    return number


def _number_or_text(text: str) -> float | str:
    """A whole number where it is written as one, else a number, else the text."""
    for kind in (int, float):
        try:
            return _bounded(text, kind(text))
        except ValueError:
            continue
    return text


def _bounded(whose: str, number: float) -> float:
    """`number`; raises if it is one that no dimension can have."""
    if isinstance(number, int) and abs(number) > _LARGEST:
        raise UsageError(f"a number of {whose[:40]} is too large", f"write one between ±{_LARGEST}")
    return number


def _from_toml(path: Path) -> InputChanges:
    try:
        content = tomllib.loads(read_regular(path, _MOST_TOML_BYTES).decode())
    except (ValueError, RecursionError) as error:  # ValueError: no TOML, no text, or a number of 5,000 digits
        raise UsageError(f"{path} is not TOML: {error}", _TOML_HINT) from error
    for key in content:
        if key not in ("way", "bounds", "fixed"):
            raise unknown_name(f"entry of {path}", key, ("way", "bounds", "fixed"))
    way = content.get("way")
    if way is not None and way not in WAYS:
        raise unknown_name(f"way in {path}", str(way), WAYS)
    bounds = {name: _pair(path, name, pair) for name, pair in _toml_table(path, content, "bounds").items()}
    fixed = {name: _scalar(path, name, value) for name, value in _toml_table(path, content, "fixed").items()}
    for name in bounds:
        if name in fixed:
            raise UsageError(f"{name} has bounds and is fixed in {path}", "keep one of the two")
    return InputChanges(way, bounds, fixed)


def _toml_table(path: Path, content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    table = content.get(key, {})
    if not isinstance(table, dict):
        raise UsageError(f"{key} in {path} is {table!r}, expected a table", f"write a line [{key}]")
    return table


def _pair(path: Path, name: str, pair: Any) -> tuple[float, float]:
    if not isinstance(pair, list) or len(pair) != 2 or not all(type(value) in (int, float) for value in pair):
        raise UsageError(f"bounds of {name} in {path} are {pair!r}", f"write {name} = [low, high]")
    return _bounded(name, pair[0]), _bounded(name, pair[1])


def _scalar(path: Path, name: str, value: Any) -> float | str:
    if not isinstance(value, int | float | str):
        raise UsageError(
            f"{name} in {path} is fixed to {value!r}", f"write {name} = 0.0, or the name of an option"
        )
    return value if isinstance(value, str) else _bounded(name, value)
