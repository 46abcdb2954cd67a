"""MuJoCo environments: positions and velocities of the joints around the initial pose."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz import extras
from policyfuzz.inputs import InputSpace
from policyfuzz.simulators.gym.families.mujoco_joints import Coordinate, Part, coordinates
from policyfuzz.simulators.gym.families.mujoco_trial import Trial, begin_at
from policyfuzz.simulators.gym.families.own_reset import family_class
from policyfuzz.simulators.gym.start import FirstObservation

MODULE = "gymnasium.envs.mujoco"
_BASE = f"{MODULE}.mujoco_env"


@dataclass(frozen=True, slots=True)
class Placing:
    """Where an environment puts things in its own reset."""

    ranges: Mapping[str, tuple[float, float] | None]  #: by joint; None: always at one place
    is_possible: Callable[[NDArray[np.float64]], bool]  #: of qpos (nq,)


_PLACINGS: Mapping[str, Placing] = {
    f"{MODULE}.reacher": Placing(
        {"target_x": (-0.2, 0.2), "target_y": (-0.2, 0.2)},
        lambda qpos: bool(np.hypot(*qpos[-2:]) < 0.2),
    ),
    f"{MODULE}.pusher": Placing(
        {"obj_slidey": (-0.3, 0.0), "obj_slidex": (-0.2, 0.2), "goal_slidey": None, "goal_slidex": None},
        lambda qpos: bool(np.hypot(*(qpos[-4:-2] - qpos[-2:])) > 0.17),
    ),
}
#: Environments that end when the pole has fallen, with no word for it.
_FALLING = (f"{MODULE}.inverted_pendulum", f"{MODULE}.inverted_double_pendulum")

Values = NDArray[np.float64]


def find(env: Any) -> "PoseStart | None":
    """How to start `env`, if it is a MujocoEnv whose own reset sets the state through `set_state`."""
    if family_class(env, _BASE) is None:
        return None
    engine = extras.load("mujoco", "mujoco")
    placing = next((placing for module, placing in _PLACINGS.items() if family_class(env, module)), None)
    chosen = coordinates(env, placing.ranges if placing else {})
    trial = Trial.of(env)
    if not chosen or trial is None:
        return None
    pose = _Pose(chosen, env.init_qpos.copy(), env.init_qvel.copy(), engine)

    def is_start(values: Values) -> bool:
        qpos, qvel = pose.state(values)
        return (placing is None or placing.is_possible(qpos)) and trial.is_start(qpos, qvel)

    def constraint(inputs: Values) -> NDArray[np.bool_]:
        return np.array([is_start(values) for values in inputs], np.bool_)

    space = InputSpace(tuple(coordinate.dimension for coordinate in chosen), constraint)
    return PoseStart(pose, space, _oracle(env))


@dataclass(frozen=True, slots=True)
class _Pose:
    """Turns inputs into states and back."""

    chosen: tuple[Coordinate, ...]
    initial_qpos: Values
    initial_qvel: Values
    engine: ModuleType

    def state(self, values: Values) -> tuple[Values, Values]:
        """Positions (nq,) and velocities (nv,) at `values` (d,); what they do not name is as usual."""
        qpos, qvel = self.initial_qpos.copy(), self.initial_qvel.copy()
        turns: dict[int, Values] = {}
        for coordinate, value in zip(self.chosen, values.tolist(), strict=True):
            if coordinate.part is Part.TURN:
                turns.setdefault(coordinate.address, np.zeros(3))[coordinate.axis] = value
            else:
                (qpos if coordinate.part is Part.POSITION else qvel)[coordinate.address] = value
        for address, turn in turns.items():
            self.engine.mju_quatIntegrate(qpos[address : address + 4], turn, 1.0)
        return qpos, qvel

    def values(self, qpos: Values, qvel: Values) -> Values:
        """(d,) the input at this state."""
        values = np.empty(len(self.chosen))
        turn = np.empty(3)
        for number, coordinate in enumerate(self.chosen):
            address = coordinate.address
            if coordinate.part is Part.TURN:
                quaternion = slice(address, address + 4)
                self.engine.mju_subQuat(turn, qpos[quaternion], self.initial_qpos[quaternion])
                values[number] = turn[coordinate.axis]
            else:
                values[number] = (qpos if coordinate.part is Part.POSITION else qvel)[address]
        return values


@dataclass(frozen=True, slots=True)
class PoseStart:
    """Joint positions and velocities, handed to the environment where its reset sets its own."""

    pose: _Pose
    inputs: InputSpace
    oracle: str | None

    way = "state"
    label = "joint positions and velocities around the initial pose"

    def begin(
        self, env: Any, reset: Callable[..., FirstObservation], values: Values, seed: int
    ) -> FirstObservation:
        qpos, qvel = self.pose.state(values)
        return begin_at(env, reset, qpos, qvel, seed)[0]

    def read(self, env: Any) -> Values:
        return self.pose.values(env.data.qpos, env.data.qvel)


def _oracle(env: Any) -> str | None:
    """A fall is the end of the episode where the environment has a rule for it that is switched on."""
    is_falling = any(family_class(env, module) for module in _FALLING)
    has_rule = hasattr(type(env), "is_healthy") and getattr(env, "_terminate_when_unhealthy", False)
    return "terminated" if is_falling or has_rule else None
