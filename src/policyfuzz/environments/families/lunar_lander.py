"""LunarLander: the first push, the pose and the terrain, through the draws of its own reset."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.environments.families import agreed, answered_draws, family_class, overridden
from policyfuzz.environments.families.ground import Corners, Ground, clearance, impact
from policyfuzz.environments.gauges import Gauge
from policyfuzz.environments.starts import FirstObservation, Reset, Values
from policyfuzz.oracles.conditions import Reward
from policyfuzz.oracles.graded import IMPACT, ROOM

MODULE = "gymnasium.envs.box2d.lunar_lander"
#: Heights that a reset draws; it then levels those around the pad, and the ground is their moving mean.
_HEIGHTS = 12
_FREE = (0, 1, 2, 8, 9, 10, 11)
_SMOOTHING = 0.33
#: Half-widths of the pose around the environment's own, in metres and radians; its own reset has one pose.
#: A simple controller lands from 99 of 100 draws.
_ASIDE, _UP, _TILT = 2.0, 1.0, 0.3
#: What Box2D gives back is right to this share of a range.
_PRECISION = 1e-5


def find(env: Any) -> "LanderStart | None":
    """How to start `env`, if it is a LunarLander."""
    family = family_class(env, MODULE)
    if family is None:
        return None
    constants = sys.modules[family.__module__]
    return LanderStart(constants, _inputs(constants))


def gauge(env: Any) -> Gauge | None:
    """How near `env` is to a crash, if it is a LunarLander."""
    family = family_class(env, MODULE)
    if family is None:
        return None
    constants = sys.modules[family.__module__]
    hull = np.array(constants.LANDER_POLY) / constants.SCALE
    width, height = constants.VIEWPORT_W / constants.SCALE, constants.VIEWPORT_H / constants.SCALE
    standing = constants.LEG_DOWN / constants.SCALE + hull[:, 1].min()
    # the pad is at a quarter of the height, and the first state is at the top
    reading = _HullReading(Ground(lambda env: env.moon, _moon), hull, float(standing), width, 0.75 * height)
    return Gauge((ROOM, IMPACT), reading, Reward("<=", -100.0))


def _moon(env: Any) -> Iterator[Corners]:
    """The edges of the ground."""
    return (fixture.shape.vertices for fixture in env.moon.fixtures)


@dataclass(frozen=True, slots=True)
class _HullReading:
    """Room of the hull: to the ground, where 1 is what the legs keep it above; and to the sides of the field.

    Legs give way, so a hard or slanting landing brings the hull nearer to the ground than a safe one.
    """

    ground: Ground
    hull: NDArray[np.float64]  #: (6, 2) its corners
    standing: float  #: metres under the hull of a lander at rest
    width: float  #: of the field
    drop: float  #: metres from the first state to the pad

    def __call__(self, env: Any) -> tuple[float, float]:
        lander = env.lander
        (x, y), (x_speed, y_speed), angle = lander.position, lander.linearVelocity, lander.angle
        below = clearance(self.hull, x, y, angle, self.ground.of(env), self.standing) / self.standing
        aside = 1 - abs(x - self.width / 2) / (self.width / 2)
        return min(below, aside), impact(x_speed, y_speed, angle, self.drop, env.gravity)


@dataclass(frozen=True, slots=True)
class LanderStart:
    """Push x, y; pose x, height, angle; then the heights of the free chunks of terrain."""

    constants: Any  #: the module of gymnasium
    inputs: InputSpace
    _asked: "WeakKeyDictionary[Any, tuple[Values, Values]]" = field(default_factory=WeakKeyDictionary)

    way = "state"
    usual_bounds = "own"
    label = "first push, pose and terrain; engine dispersion and wind come from the seed"
    #: The environment takes 100 points for a crash or for leaving the field, and for nothing else.
    oracle = "reward<=-99.5 as crash"

    @property
    def own_ranges(self) -> dict[str, tuple[float, float]]:
        """Push and terrain are its own draws; its pose never varies."""
        own = {side.name: (side.low, side.high) for side in self.inputs.dimensions}
        return own | dict.fromkeys(("x", "height", "angle"), (0.0, 0.0))

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        constants, own = self.constants, type(env)
        poses: list[Values] = []

        def answering(generator: np.random.Generator) -> _ScriptedDraws:
            return _ScriptedDraws(generator, constants.INITIAL_RANDOM, values[:2], values[5:])

        def step(env: Any, action: Any) -> Any:
            # the reset ends with a step, and nothing has moved before it
            if not poses:
                _place(env, *values[2:5].tolist())
                poses.append(_pose(env, constants))
            return own.step(env, action)

        with overridden(env, np_random=answered_draws(own, answering), step=step):
            first = reset(seed=seed)
        self._asked[env] = values.copy(), poses[0] if poses else _pose(env, constants)
        return first

    def read(self, env: Any) -> Values:
        asked, pose = self._asked[env]
        measured = np.concatenate([_push(env, self.constants), pose, _terrain(env)])
        tolerance = np.array([_PRECISION * (side.high - side.low) for side in self.inputs.dimensions])
        if env.enable_wind:  # blows in the first step as well
            tolerance[0] += abs(env.wind_power)
        return agreed(measured, asked, tolerance)


def _inputs(constants: Any) -> InputSpace:
    push, highest = constants.INITIAL_RANDOM, constants.VIEWPORT_H / constants.SCALE / 2
    return InputSpace(
        (
            Real("push x", -push, push, "N"),
            Real("push y", -push, push, "N"),
            Real("x", -_ASIDE, _ASIDE, "m"),
            Real("height", -_UP, _UP, "m"),
            Real("angle", -_TILT, _TILT, "rad"),
            *(Real(f"terrain{number}", 0.0, highest, "m") for number in _FREE),
        )
    )


class _ScriptedDraws:
    """The generator of a reset: terrain and push of the input, all else as the seed has it."""

    def __init__(
        self, generator: np.random.Generator, push_range: float, push: Values, heights: Values
    ) -> None:
        self._generator = generator
        self._push_range = push_range
        self._push: Iterator[float] = iter(push.tolist())
        self._heights = heights

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
        """Draw even what the input gives, so that later draws are those of the seed."""
        drawn = self._generator.uniform(low, high, size)
        if np.shape(drawn) == (_HEIGHTS,):
            drawn[list(_FREE)] = self._heights
        elif (low, high, size) == (-self._push_range, self._push_range, None):
            return next(self._push, drawn)
        return drawn


def _place(env: Any, aside: float, up: float, angle: float) -> None:
    """Move the lander with its legs as one rigid body."""
    if (aside, up, angle) == (0.0, 0.0, 0.0):
        return
    x, y = env.lander.position
    cos, sin = math.cos(angle), math.sin(angle)
    for body in (env.lander, *env.legs):
        away, above = body.position.x - x, body.position.y - y
        position = x + aside + cos * away - sin * above, y + up + sin * away + cos * above
        body.transform = position, body.angle + angle


def _pose(env: Any, constants: Any) -> Values:
    """(3,) where the lander is from its usual start."""
    x, y = env.lander.position
    width, height = constants.VIEWPORT_W / constants.SCALE, constants.VIEWPORT_H / constants.SCALE
    return np.array([x - width / 2, y - height, env.lander.angle])


def _push(env: Any, constants: Any) -> Values:
    """(2,) the force of the first step: what momentum there is, less that of the weight."""
    bodies = (env.lander, *env.legs)
    mass = sum(body.mass for body in bodies)
    momentum = sum(body.mass * np.array(body.linearVelocity) for body in bodies)
    return np.asarray(momentum * constants.FPS - mass * np.array(env.world.gravity))


def _terrain(env: Any) -> Values:
    """(7,) the drawn heights whose moving mean is the ground that was built; infinite if it cannot be."""
    edges = [fixture.shape.vertices for fixture in env.moon.fixtures][1:]
    points = dict(point for edge in edges for point in edge)
    ground = np.array([points[x] for x in sorted(points)])
    if len(ground) != _HEIGHTS - 1:
        return np.full(len(_FREE), np.inf)
    smoothing = np.zeros((len(ground), _HEIGHTS))
    for number in range(len(ground)):
        smoothing[number, [number - 1, number, number + 1]] = _SMOOTHING
    level = np.full(_HEIGHTS, float(env.helipad_y))
    level[list(_FREE)] = 0.0
    free = smoothing[:, list(_FREE)]
    return np.asarray(np.linalg.lstsq(free, ground - smoothing @ level, rcond=None)[0])
