"""Classic control: the physical state vector."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import Angle, Dimension, InputSpace, Real
from policyfuzz.environments.gauges import Gauge
from policyfuzz.environments.starts import FirstObservation, Reset, Values
from policyfuzz.oracles.conditions import Terminated
from policyfuzz.oracles.graded import ROOM, WAY

#: Half-widths of a box of cart and pole in which one linear bang-bang controller keeps the pole up for 500
#: steps, from its corners and faces too (a test shows it). Positions as a share of the environment's own
#: limits, 2.4 m and 12 degrees. With 1.5 m, 0.7 m/s, 0.7 rad/s or 0.18 rad no controller that we tried did.
_CART_REACH, _POLE_TILT = 1.2 / 2.4, 0.15 / np.radians(12)
_CART_SPEED, _POLE_SPEED = 0.6, 0.6


@dataclass(frozen=True, slots=True)
class PhysicalState:
    """Sets `env.state` after the environment's own reset, whose other effects remain."""

    label: str
    inputs: InputSpace
    oracle: str | None
    observe: Callable[[Any], Any]  #: the observation as the environment computes it from its state
    usual_bounds: str = "wide"

    way: ClassVar[str] = "state"

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        _, info = reset(seed=seed)
        if np.shape(env.state) != values.shape:
            raise UsageError(
                f"the state of {type(env).__name__} has shape {np.shape(env.state)}, expected {values.shape}",
                hint="its class changes what the state means: describe the start in a Python file (--input)",
            )
        env.state = values.astype(env.state.dtype)
        return self.observe(env), info

    def read(self, env: Any) -> NDArray[np.float64]:
        return np.array(env.state, np.float64)


def find(env: Any) -> PhysicalState | None:
    """How to start `env`, if it is one of classic control."""
    names = (cls.__name__ for cls in type(env).__mro__)
    known = next((_KNOWN[name] for name in names if name in _KNOWN), None)
    return None if known is None else known(env)


def gauge(env: Any) -> Gauge | None:
    """How near `env` is to failing, if it can fall or has a goal."""
    names = (cls.__name__ for cls in type(env).__mro__)
    return next((_GAUGES[name] for name in names if name in _GAUGES), None)


def _cart_pole(env: Any) -> PhysicalState:
    x, theta = _CART_REACH * env.x_threshold, _POLE_TILT * env.theta_threshold_radians
    dimensions = (
        _around_zero("x", x, "m"),
        _around_zero("x_dot", _CART_SPEED, "m/s"),
        _around_zero("theta", theta, "rad"),
        _around_zero("theta_dot", _POLE_SPEED, "rad/s"),
    )
    label = "position and speed of cart and pole"
    return PhysicalState(label, InputSpace(dimensions), "terminated", _state, usual_bounds="3")


def _mountain_car(env: Any) -> PhysicalState:
    # behind the goal there is nothing to do: an episode ends where it gets there
    position = Real("position", env.min_position, env.goal_position)
    dimensions = (position, _around_zero("velocity", env.max_speed))
    return PhysicalState("position and velocity of the car", InputSpace(dimensions), "truncated", _state)


def _pendulum(env: Any) -> PhysicalState:
    dimensions = (Angle("theta"), _around_zero("theta_dot", float(env.max_speed), "rad/s"))
    label = "angle and speed of the pendulum"
    return PhysicalState(label, InputSpace(dimensions), None, lambda env: env._get_obs())


def _acrobot(env: Any) -> PhysicalState:
    dimensions = (
        Angle("theta1"),
        Angle("theta2"),
        _around_zero("theta1_dot", env.MAX_VEL_1, "rad/s"),
        _around_zero("theta2_dot", env.MAX_VEL_2, "rad/s"),
    )
    label = "angles and speeds of both links"
    return PhysicalState(label, InputSpace(dimensions), "truncated", lambda env: env._get_ob())


def _around_zero(name: str, reach: float, unit: str = "") -> Dimension:
    return Real(name, -reach, reach, unit)


def _state(env: Any) -> NDArray[np.float32]:
    return np.array(env.state, dtype=np.float32)


def _cart_room(env: Any) -> tuple[float]:
    """Distance of cart and pole to their limits, relative to these."""
    x, _, theta, _ = env.state.tolist()
    return (min(1 - abs(x) / env.x_threshold, 1 - abs(theta) / env.theta_threshold_radians),)


def _way_uphill(env: Any) -> tuple[float]:
    """From the car to the goal, where 1 is the whole range of positions behind it."""
    position = float(env.state[0])
    return (max(0.0, (env.goal_position - position) / (env.goal_position - env.min_position)),)


def _way_up(env: Any) -> tuple[float]:
    """From the tip to the height that it must reach, where 1 is the way from hanging down."""
    theta1, theta2 = env.state[:2].tolist()
    height = -math.cos(theta1) - math.cos(theta1 + theta2)
    return (max(0.0, (1 - height) / 3),)


_GAUGES: Mapping[str, Gauge] = {
    "CartPoleEnv": Gauge((ROOM,), _cart_room, Terminated()),
    "MountainCarEnv": Gauge((WAY,), _way_uphill),
    "Continuous_MountainCarEnv": Gauge((WAY,), _way_uphill),
    "AcrobotEnv": Gauge((WAY,), _way_up),
}

_KNOWN: Mapping[str, Callable[[Any], PhysicalState]] = {
    "CartPoleEnv": _cart_pole,
    "MountainCarEnv": _mountain_car,
    "Continuous_MountainCarEnv": _mountain_car,
    "PendulumEnv": _pendulum,
    "AcrobotEnv": _acrobot,
}
