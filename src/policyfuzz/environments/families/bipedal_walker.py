"""BipedalWalker: the obstacles of the hardcore course, or the first push of the plain one."""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import Choice, InputSpace, Real
from policyfuzz.environments.families import agreed, answered_draws, family_class, overridden
from policyfuzz.environments.families.ground import Corners, Ground, clearance, impact
from policyfuzz.environments.gauges import Gauge
from policyfuzz.environments.starts import FirstObservation, Reset, Values
from policyfuzz.oracles.conditions import Reward
from policyfuzz.oracles.graded import IMPACT, ROOM

MODULE = "gymnasium.envs.box2d.bipedal_walker"
OBSTACLES = ("stump", "stairs", "pit")
#: Obstacles that an input names. A course holds 9 to 19 of them with types at random; further ones are
#: of the type that the seed gives.
NAMED = 15
#: Noise as in the paper: each obstacle changes to the next type with probability 0.1.
OBSTACLE_INPUTS = InputSpace(tuple(Choice(f"obstacle{number}", OBSTACLES) for number in range(1, NAMED + 1)))
#: The environment takes 100 points for a fall or for walking out backwards, and for nothing else.
_FALL = "reward<=-99.5 as fall"
#: Corners of the hull (5, 2), and metres under it when the walker stands on straight legs, as in the package.
_HULL = np.array([(-30, 9), (6, 9), (34, 1), (34, -8), (-30, -8)]) / 30.0
_STANDING = (2 * 34 - 8) / 30.0
_GRAVITY = 10.0
#: Boxes of one obstacle are less than this apart, in cells; there are five cells of grass between two.
_BESIDE = 4.0
#: Momentum after the first step tells the push to this share of its range: by then the feet rub the ground,
#: which takes or gives up to 0.07 of 10 N.
_PRECISION = 1e-2


def find(env: Any) -> "ObstacleStart | PushStart | None":
    """How to start `env`, if it is a BipedalWalker."""
    family = family_class(env, MODULE)
    if family is None:
        return None
    constants = sys.modules[family.__module__]
    if env.hardcore:
        return ObstacleStart(constants)
    push = constants.INITIAL_RANDOM
    return PushStart(constants, InputSpace((Real("push", -push, push, "N"),)))


def gauge(env: Any) -> Gauge | None:
    """How near `env` is to a fall, if it is a BipedalWalker."""
    family = family_class(env, MODULE)
    if family is None:
        return None
    constants = sys.modules[family.__module__]
    ground = Ground(lambda env: env.terrain, _terrain)
    start = constants.TERRAIN_STEP * constants.TERRAIN_STARTPAD / 2

    def read(env: Any) -> tuple[float, float]:
        hull = env.hull
        (x, y), (x_speed, y_speed) = hull.position, hull.linearVelocity
        room, hardness = hull_reading(ground.of(env), x, y, hull.angle, x_speed, y_speed)
        return min(room, x / start), hardness  # walking out backwards is a failure too

    return Gauge((ROOM, IMPACT), read, Reward("<=", -100.0))


def hull_reading(
    ground: NDArray[np.float64], x: float, y: float, angle: float, x_speed: float, y_speed: float
) -> tuple[float, float]:
    """Room between hull and `ground` (m, 4), where 1 is a walker on straight legs, and impact of a fall."""
    room = clearance(_HULL, x, y, angle, ground, _STANDING) / _STANDING
    return room, impact(x_speed, y_speed, angle, _STANDING, _GRAVITY)


def _terrain(env: Any) -> Iterator[Corners]:
    """The edges of the ground and the boxes on it."""
    return (body.fixtures[0].shape.vertices for body in env.terrain)


class ScriptedTypes:
    """A generator for gymnasium's own reset: obstacle types of the input, all else as the seed has it."""

    def __init__(self, obstacles: Sequence[int], seed: int | np.random.Generator) -> None:
        self._types = iter(obstacles)
        self._rng = np.random.default_rng(seed)
        self.uniform, self.random = self._rng.uniform, self._rng.random

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rng, name)

    def integers(self, low: int, high: int | None = None, **options: Any) -> Any:
        """A number from `low` to below `high`; types are the only numbers from 1 to 3."""
        drawn = self._rng.integers(low, high, **options)
        return next(self._types, int(drawn) - 1) + 1 if (low, high) == (1, 4) else drawn


class _ScriptedPush:
    """A generator for gymnasium's own reset: the push of the input, all else as the seed has it."""

    def __init__(self, push: float, push_range: float, generator: np.random.Generator) -> None:
        self._push, self._range, self._generator = push, push_range, generator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generator, name)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Any = None) -> Any:
        """Draw even the push, so that later draws are those of the seed."""
        drawn = self._generator.uniform(low, high, size)
        return self._push if (low, high, size) == (-self._range, self._range, None) else drawn


def _whole(inputs: InputSpace) -> dict[str, tuple[float, float]]:
    """What a reset draws where the input is all that it can draw."""
    return {side.name: (side.low, side.high) for side in inputs.dimensions}


@dataclass(frozen=True, slots=True)
class ObstacleStart:
    """Types of the first obstacles, as positions in OBSTACLES."""

    constants: Any  #: the module of gymnasium

    way = "state"
    label = "types of the obstacles; their sizes, the gaps, the ground and the first push come from the seed"
    oracle = _FALL
    seed_is_situation = True
    inputs = OBSTACLE_INPUTS
    own_ranges = _whole(OBSTACLE_INPUTS)

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        obstacles: list[int] = values.astype(np.int64).tolist()
        return _begin(env, reset, lambda generator: ScriptedTypes(obstacles, generator), seed)

    def read(self, env: Any) -> Values:
        """Types as they were built; NaN for obstacles behind the end of the course."""
        types = np.full(NAMED, np.nan)
        built = _built_types(env, self.constants.TERRAIN_STEP)[:NAMED]
        types[: len(built)] = built
        return types


@dataclass(frozen=True, slots=True)
class PushStart:
    """The force on the hull in the first step."""

    constants: Any  #: the module of gymnasium
    inputs: InputSpace
    _asked: "WeakKeyDictionary[Any, Values]" = field(default_factory=WeakKeyDictionary)

    way = "state"
    label = "first push of the hull; the ground comes from the seed"
    oracle = _FALL
    seed_is_situation = True

    @property
    def own_ranges(self) -> dict[str, tuple[float, float]]:
        """The push is one of its own draws."""
        return _whole(self.inputs)

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        self._asked[env] = values.copy()
        push, push_range = float(values[0]), self.constants.INITIAL_RANDOM
        return _begin(env, reset, lambda generator: _ScriptedPush(push, push_range, generator), seed)

    def read(self, env: Any) -> Values:
        momentum = sum(body.mass * body.linearVelocity.x for body in (env.hull, *env.legs))
        tolerance = np.array([2 * self.constants.INITIAL_RANDOM * _PRECISION])
        return agreed(np.array([momentum * self.constants.FPS]), self._asked[env], tolerance)


def _begin(
    env: Any,
    reset: Reset,
    answering: Callable[[np.random.Generator], Any],
    seed: int,
) -> FirstObservation:
    # a world that was used before orders its contacts otherwise, and rounding follows
    env.world = type(env.world)()
    env.terrain = []
    with overridden(env, np_random=answered_draws(type(env), answering)):
        return reset(seed=seed)


def _built_types(env: Any, cell: float) -> list[int]:
    """Positions in OBSTACLES of the obstacles whose boxes stand on the course, from the start on."""
    shapes = [body.fixtures[0].shape for body in env.terrain]
    corners = [np.array(shape.vertices) / cell for shape in shapes if len(shape.vertices) > 2]
    boxes = sorted((*box.min(axis=0).tolist(), *np.ptp(box, axis=0).tolist()) for box in corners)
    types: list[int] = []
    end = -np.inf
    for left, _, width, height in boxes:
        if left - end > _BESIDE:
            types.append(_type(round(width), round(height)))
        end = left + width
    return types


def _type(width: int, height: int) -> int:
    """Stumps are square, steps lie and the sides of a pit stand."""
    return 0 if width == height else 1 if width > height else 2
