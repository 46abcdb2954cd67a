"""Finds out how an environment can be started from an input.

In this order: a family whose state we know how to set; options that the environment declares for its reset
(see `options_start`); its seed.
"""

from typing import Any

from policyfuzz.core.errors import UsageError, blamed_on
from policyfuzz.environments.families import class_with_own_reset, family_start
from policyfuzz.environments.input_changes import InputChanges, changed
from policyfuzz.environments.options_start import OptionsStart, declared_options, number_option
from policyfuzz.environments.particle_worlds import find_world_start
from policyfuzz.environments.starts import SeedStart, Start, start_from_file

_AS_IT_COMES = InputChanges()


def find_start(env: Any, changes: InputChanges = _AS_IT_COMES) -> Start:
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
    family = family_start(base) if way is None else None
    options = declared_options(base) if way != "seed" and family is None else None
    return family or options or SeedStart()


def _state(base: Any) -> Start:
    start = family_start(base)
    if start is not None:
        return start
    name = type(base).__name__
    its_own = class_with_own_reset(base)
    reason = f"{its_own} has a reset of its own" if its_own else "it is of no family that we know"
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


def find_parallel_start(env: Any, changes: InputChanges) -> Start:
    """How to start `env`: particle worlds by their positions, all others as Gymnasium environments are."""
    base = env.unwrapped
    is_by_state = changes.python_file is None and changes.way in (None, "state")
    world = find_world_start(base) if is_by_state else None
    return find_start(base, changes) if world is None else changed(world, changes.of_dimensions)
