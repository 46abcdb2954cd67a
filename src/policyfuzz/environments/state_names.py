"""Names of what an environment observes and of what can be done in it, for plots and words."""

from collections.abc import Mapping
from typing import Any

import numpy as np

#: Class of Gymnasium to the names of its observations.
OBSERVED: Mapping[str, tuple[str, ...]] = {
    "CartPoleEnv": ("position", "velocity", "angle", "angular velocity"),
    "PendulumEnv": ("cos angle", "sin angle", "angular velocity"),
    "MountainCarEnv": ("position", "velocity"),
    "Continuous_MountainCarEnv": ("position", "velocity"),
    "AcrobotEnv": (
        *("cos angle 1", "sin angle 1", "cos angle 2", "sin angle 2"),
        *("angular velocity 1", "angular velocity 2"),
    ),
    "LunarLander": (
        *("x", "y", "velocity x", "velocity y", "angle", "angular velocity"),
        *("left leg on ground", "right leg on ground"),
    ),
    "BipedalWalker": (
        *("hull angle", "hull angular velocity", "velocity x", "velocity y"),
        *("hip 1 angle", "hip 1 speed", "knee 1 angle", "knee 1 speed", "leg 1 on ground"),
        *("hip 2 angle", "hip 2 speed", "knee 2 angle", "knee 2 speed", "leg 2 on ground"),
        *(f"lidar {number}" for number in range(10)),
    ),
}
#: Class of Gymnasium to the names of its actions: of its choices, or of the numbers of one.
_KNOWN_ACTIONS: Mapping[str, tuple[str, ...]] = {
    "CartPoleEnv": ("push left", "push right"),
    "MountainCarEnv": ("push left", "rest", "push right"),
    "Continuous_MountainCarEnv": ("push",),
    "AcrobotEnv": ("torque left", "rest", "torque right"),
    "PendulumEnv": ("torque",),
    "LunarLander": ("rest", "left engine", "main engine", "right engine"),
    "BipedalWalker": ("hip 1", "knee 1", "hip 2", "knee 2"),
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
    "BlackjackEnv": ("stick", "hit"),
    "MiniGridEnv": ("turn left", "turn right", "forward", "pick up", "drop", "toggle", "done"),
}
#: Parts of an observation of MuJoCo environments that are named by joint, or left out.
_JOINTS = ("skipped_qpos", "qpos", "qvel")


def state_names(env: Any, record: np.dtype[Any]) -> tuple[str, ...]:
    """A name for each number of an observation, which is stored as `record`; empty where they have none."""
    if record.names is not None:
        return tuple(_record_names(record, ""))
    base = env.unwrapped
    shape = env.observation_space.shape
    if shape is None or len(shape) != 1 or getattr(base.observation_space, "shape", None) != shape:
        return ()  # a wrapper has changed what the numbers mean
    known = next((OBSERVED[kind.__name__] for kind in type(base).__mro__ if kind.__name__ in OBSERVED), ())
    names = known or _joint_names(base, shape[0])
    return names if len(names) == shape[0] else ()


def action_names(env: Any, count: int) -> tuple[str, ...]:
    """Names of `count` choices or numbers of an action of `env`; empty where they have none."""
    kinds = (kind.__name__ for kind in type(env.unwrapped).__mro__)
    known = next((_KNOWN_ACTIONS[kind] for kind in kinds if kind in _KNOWN_ACTIONS), ())
    return known if len(known) == count else ()


def _record_names(record: np.dtype[Any], prefix: str) -> list[str]:
    """Names of all numbers of a dictionary, key after key."""
    names: list[str] = []
    for name, (part, *_) in (record.fields or {}).items():
        whole = f"{prefix}{name}"
        if part.names is not None:
            names += _record_names(part, f"{whole}.")
        elif part.base.kind != "O":
            places = np.ndindex(part.shape) if part.shape else [()]
            names += [f"{whole}[{','.join(map(str, place))}]" if place else whole for place in places]
    return names


def _joint_names(env: Any, count: int) -> tuple[str, ...]:
    """Names for `count` numbers that are positions and velocities of joints; empty if they are not."""
    model = getattr(env, "model", None)
    if model is None or not hasattr(model, "jnt_qposadr"):
        return ()
    positions, velocities = [""] * model.nq, [""] * model.nv
    for number in range(model.njnt):
        name = model.joint(number).name or f"joint {number}"
        _name_all(positions, model.jnt_qposadr, number, name)
        _name_all(velocities, model.jnt_dofadr, number, f"{name} velocity")
    layout = getattr(env, "observation_structure", None) or {}
    skipped = layout.get("skipped_qpos", max(model.nq + model.nv - count, 0))
    names = [*positions[skipped:], *velocities]
    others = [
        f"{what} {place}" for what, size in layout.items() if what not in _JOINTS for place in range(size)
    ]
    return (*names, *others) if skipped < model.nq else ()


def _name_all(names: list[str], starts: Any, number: int, name: str) -> None:
    """Name the numbers of joint `number`, from where it starts to where the next one does."""
    first = int(starts[number])
    end = int(starts[number + 1]) if number + 1 < len(starts) else len(names)
    for place in range(first, end):
        names[place] = name if end - first == 1 else f"{name} {place - first}"
