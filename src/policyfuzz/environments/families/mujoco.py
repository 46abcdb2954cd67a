"""MuJoCo environments: positions and velocities of the joints around the initial pose."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.inputs import InputSpace
from policyfuzz.environments.families import family_class, overridden
from policyfuzz.environments.families.mujoco_joints import Coordinate, Part, coordinates
from policyfuzz.environments.gauges import Gauge
from policyfuzz.environments.starts import FirstObservation, Reset, Values
from policyfuzz.oracles.conditions import Terminated
from policyfuzz.oracles.graded import ROOM

MODULE = "gymnasium.envs.mujoco"
_BASE = f"{MODULE}.mujoco_env"
#: Bodies may overlap by this much more than in the initial pose, in metres: MuJoCo's contacts are soft, and
#: feet stand a little in the ground.
_DEPTH = 0.01
#: A window, and a method that may have been replaced on the object.
_NOT_COPIED = ("mujoco_renderer", "reset")
#: Environments that end when the pole has fallen, with no word for it.
_FALLING = (f"{MODULE}.inverted_pendulum", f"{MODULE}.inverted_double_pendulum")


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
    usual_bounds = "5"
    label = "joint positions and velocities around the initial pose"

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        qpos, qvel = self.pose.state(values)
        return begin_at(env, reset, qpos, qvel, seed)[0]

    def read(self, env: Any) -> Values:
        return self.pose.values(env.data.qpos, env.data.qvel)


def _oracle(env: Any) -> str | None:
    """A fall is the end of the episode where the environment has a rule for it that is switched on."""
    is_falling = any(family_class(env, module) for module in _FALLING)
    has_rule = hasattr(type(env), "is_healthy") and getattr(env, "_terminate_when_unhealthy", False)
    return "terminated" if is_falling or has_rule else None


def gauge(env: Any) -> Gauge | None:
    """How near `env` is to a fall, if it has a rule for that, which is switched on and known here."""
    if family_class(env, f"{MODULE}.inverted_double_pendulum"):
        return Gauge((ROOM,), _tip_room, Terminated())
    if family_class(env, f"{MODULE}.inverted_pendulum"):
        return Gauge((ROOM,), HealthyRanges((Bounds(1, -0.2, 0.2, 0.0),)), Terminated())
    places = next((places for module, places in _BOUNDED.items() if family_class(env, module)), None)
    if places is None or _oracle(env) is None:
        return None
    usual = env.init_qpos
    bounds = []
    for name, place in places.items():
        low, high = getattr(env, name)
        bounds.append(Bounds(place, low, high, float(usual[place])))
    return Gauge((ROOM,), HealthyRanges(tuple(bounds), getattr(env, _STATE_RANGE, None)), Terminated())


#: Environments with a rule for falls, to the names of ranges and the position (of qpos) that each bounds.
_BOUNDED: Mapping[str, Mapping[str, int]] = {
    f"{MODULE}.hopper_v": {"_healthy_z_range": 1, "_healthy_angle_range": 2},
    f"{MODULE}.walker2d_v": {"_healthy_z_range": 1, "_healthy_angle_range": 2},
    f"{MODULE}.ant_v": {"_healthy_z_range": 2},
    f"{MODULE}.humanoid_v": {"_healthy_z_range": 2},
}
#: Of a hopper: it bounds every position behind the first two, and every velocity.
_STATE_RANGE = "_healthy_state_range"
#: Height of the tip of a double pendulum that stands, and the one at which it has fallen.
_TIP_UP, _TIP_FALLEN = 1.2, 1.0


def _tip_room(env: Any) -> tuple[float]:
    return ((float(env.data.site_xpos[0][2]) - _TIP_FALLEN) / (_TIP_UP - _TIP_FALLEN),)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range within which a position is healthy."""

    place: int  #: in qpos
    low: float
    high: float
    usual: float  #: in the initial pose

    def room(self, value: float) -> float:
        """Distance of `value` to the nearer end of the range, relative to that of the initial pose."""
        below, above = self.usual - self.low, self.high - self.usual
        if not (below > 0 and above > 0):  # a range around another pose
            below = above = (self.high - self.low) / 2
        # of an infinite range, NaN is inf / inf
        ends = ((value - self.low) / below, (self.high - value) / above)
        return min((end for end in ends if not math.isnan(end)), default=math.nan)


@dataclass(frozen=True, slots=True)
class HealthyRanges:
    """Room between the positions of an environment and the ends of their healthy ranges."""

    bounds: tuple[Bounds, ...]
    state: tuple[float, float] | None = None  #: range of all other positions and of all velocities

    def __call__(self, env: Any) -> tuple[float]:
        """How much is left of the least, 1 in the initial pose."""
        qpos = env.data.qpos
        room = min(one.room(float(qpos[one.place])) for one in self.bounds)
        if self.state is not None:
            low, high = self.state
            state = qpos[2:].tolist() + env.data.qvel.tolist()
            room = min(room, min(min(state) - low, high - max(state)) / ((high - low) / 2))
        return (room,)


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


def begin_at(env: Any, reset: Reset, qpos: Values, qvel: Values, seed: int) -> tuple[FirstObservation, bool]:
    """What the environment's own `reset` gives when it sets this state, and whether it has set any.

    It sets the state once, before the first observation: MuJoCo's solvers start from their last solution.
    """
    own, calls = type(env), []

    def set_state(env: Any, *drawn: Any, **named: Any) -> None:
        calls.append((drawn, named))
        own.set_state(env, qpos, qvel)

    with overridden(env, set_state=set_state):
        first = reset(seed=seed)
    return first, bool(calls)


@dataclass(frozen=True, slots=True)
class Trial:
    """A private copy of an environment, and how deep its bodies overlap in the initial pose."""

    env: Any
    idle: NDArray[Any] | None  #: the action of doing nothing; None if unknown
    deepest: float

    @classmethod
    def of(cls, env: Any) -> "Trial | None":
        """A trial for `env`; None where its reset does not set the state, or does not work."""
        private = _private_copy(env)
        try:
            _, is_set = begin_at(private, private.reset, env.init_qpos.copy(), env.init_qvel.copy(), 0)
        except Exception:  # whatever it is, episodes will show it
            return None
        return cls(private, _idle_action(env), _overlap(private.data)) if is_set else None

    def is_start(self, qpos: Values, qvel: Values) -> bool:
        """True where nothing overlaps too much and the episode is not over after a step of doing nothing."""
        env = self.env
        try:
            begin_at(env, env.reset, qpos, qvel, 0)
            if _overlap(env.data) > self.deepest + _DEPTH:
                return False
            return self.idle is None or not env.step(self.idle)[2]
        except Exception:  # an environment that fails is for an episode to show
            return True


def _overlap(data: Any) -> float:
    """Depth of the deepest contact, in metres."""
    return max(0.0, -float(data.contact.dist.min())) if data.ncon else 0.0


def _idle_action(env: Any) -> NDArray[Any] | None:
    space = env.action_space
    if not hasattr(space, "low"):
        return None
    return np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)


def _private_copy(env: Any) -> Any:
    """A copy of `env` that shares nothing with it and has no window."""
    private = object.__new__(type(env))
    memo = {id(env): private}
    for name, value in vars(env).items():
        if name not in _NOT_COPIED:
            vars(private)[name] = _copied(value, memo)
    private.mujoco_renderer = private.render_mode = None
    return private


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # locks, windows, handles of other programs: nothing that a trial changes
        return value
