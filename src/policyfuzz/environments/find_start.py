"""Finds out how an environment can be started from an input.

In this order: a family whose state we know how to set; options that the environment declares for its reset
(see `starts`); its seed.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from policyfuzz.core.errors import UsageError, blamed_on
from policyfuzz.environments.input_changes import InputChanges, changed
from policyfuzz.environments.starts import (
    OptionsStart,
    SeedStart,
    Start,
    declared_options,
    number_option,
    start_from_file,
)

#: Where a class comes from, to the module here that knows it. Imported only when such a class turns up.
_FAMILIES: Mapping[str, str] = {
    "gymnasium.envs.classic_control": "classic_control",
    "gymnasium.envs.toy_text": "toy_text",
    "gymnasium.envs.mujoco": "mujoco",
    "gymnasium.envs.box2d.lunar_lander": "lunar_lander",
    "gymnasium.envs.box2d.bipedal_walker": "bipedal_walker",
    "minigrid": "minigrid",
}

_UNCHANGED = InputChanges()


def find_start(env: Any, changes: InputChanges = _UNCHANGED) -> Start:
    """How to start `env`: the best way there is, or the one that `changes` ask for, changed as they say."""
    base = env.unwrapped
    if changes.python_file is not None:
        return start_from_file(changes.python_file, base)
    if changes.way == "options" and declared_options(base) is None:
        return _undeclared_options(base, changes)
    with blamed_on(f"environment {type(base).__name__}"):
        start = _start(base, changes.way)
    if start.way == "seed" and set(changes.of_dimensions) - {"seed"}:
        raise UsageError(
            f"{type(base).__name__} is started by its seed alone; "
            f"it has no {', '.join(sorted(set(changes.of_dimensions) - {'seed'}))} to change",
            'if its reset takes them as options: "options;NAME=LOW..HIGH", or way = "options" in TOML',
        )
    return changed(start, changes.of_dimensions)


def _start(base: Any, way: str | None) -> Start:
    if way == "state":
        return _state(base)
    family = _family_start(base) if way is None else None
    options = declared_options(base) if way != "seed" and family is None else None
    return family or options or SeedStart()


def _state(base: Any) -> Start:
    start = _family_start(base)
    if start is not None:
        return start
    name = type(base).__name__
    overriding = _class_with_own_reset(base)
    reason = f"{overriding} has a reset of its own" if overriding else "it is of no family that we know"
    raise UsageError(
        f"nobody knows how to set the state of {name}: {reason}",
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
    return OptionsStart(options, dict(changes.fixed))


def _family_start(env: Any) -> Start | None:
    """How the family of `env` starts it; None where it has no family, or does not know this member of it.

    A class of the user's own counts as a member if it inherits from one and leaves `reset` alone: the
    state that a reset of its own prepares is not ours to overwrite.
    """
    member = _member(type(env))
    if member is None or _class_with_own_reset(env) is not None:
        return None
    family = importlib.import_module(f"policyfuzz.environments.families.{_family(member)}")
    start: Start | None = family.find(env)
    return start


def _class_with_own_reset(env: Any) -> str | None:
    """The name of the user's class that replaces the `reset` of a family, None where there is none."""
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
