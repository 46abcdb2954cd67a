"""Families of environments whose first state we know how to set; each has a module with `find(env)`."""

import importlib
from collections.abc import Mapping
from typing import Any

from policyfuzz.environments.starts import Start

#: Where a class comes from, to the module here that knows it. Imported only when such a class turns up.
_FAMILIES: Mapping[str, str] = {
    "gymnasium.envs.classic_control": "classic_control",
    "gymnasium.envs.toy_text": "toy_text",
    "gymnasium.envs.mujoco": "mujoco",
    "gymnasium.envs.box2d.lunar_lander": "lunar_lander",
    "gymnasium.envs.box2d.bipedal_walker": "bipedal_walker",
    "minigrid": "minigrid",
}


def family_start(env: Any) -> Start | None:
    """How the family of `env` starts it; None where it has no family, or does not know this member of it.

    A class of the user's own counts as a member if it inherits from one and leaves `reset` alone: the
    state that a reset of its own prepares is not ours to overwrite.
    """
    member = _member(type(env))
    if member is None or class_with_own_reset(env) is not None:
        return None
    family = importlib.import_module(f"{__name__}.{_family(member)}")
    start: Start | None = family.find(env)
    return start


def class_with_own_reset(env: Any) -> str | None:
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
