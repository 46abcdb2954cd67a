"""Many walkers in lock-step, and pictures of them."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.interfaces import Frame
from policyfuzz.environments.families.bipedal_walker import ScriptedTypes, hull_reading
from policyfuzz.environments.families.ground import outlines
from policyfuzz.environments.state_names import OBSERVED
from policyfuzz.oracles.graded import IMPACT, ROOM
from policyfuzz.policies.spaces import checked_actions
from policyfuzz.targets.bipedal.lidar import Surfaces, ray_ends
from policyfuzz.targets.bipedal.terrain import CELL, CELLS, SCALE
from policyfuzz.targets.bipedal.walkers import FELT, HAS_FALLEN, Walker, X, Y, package

_MOTORS = ("hip", "knee", "other hip", "other knee")
_TORQUE = 80.0
_JOINT_SPEEDS = np.array([4.0, 6.0, 4.0, 6.0])  #: full speed of hip, knee, hip, knee, radians a second
#: The walker has arrived at the tenth cell before the end.
_GOAL = (CELLS - 10) * CELL
_FALL_REWARD = -100.0

#: Position and angle of a body.
Pose = tuple[tuple[float, float], float]


class WalkerSimulator:
    """n walkers; an action is the four motor commands in [-1, 1], taken as float64."""

    signals: ClassVar[tuple[str, ...]] = ("clear", "x", ROOM, IMPACT)
    state_names: ClassVar[tuple[str, ...]] = OBSERVED["BipedalWalker"]
    capacity: ClassVar[int | None] = None

    def __init__(self) -> None:
        package()  # raises now if the package is missing, not at the first episode
        self._walkers: list[Walker] = []
        self._surfaces = Surfaces(0)
        self._outlines: list[NDArray[np.float64]] = []  #: of the course of each walker, (m, 4)
        self._shaping = np.empty(0)  #: (n,) what the reward is the increase of
        self._obstacles: list[list[int]] = []
        self._seeds: list[int] = []
        self._lidar = np.empty((0, 10), np.float32)
        self._camera: Camera | None = None

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        count = len(inputs)
        self._walkers += [Walker() for _ in range(len(self._walkers), count)]
        self._surfaces = Surfaces(count)
        self._obstacles, self._seeds = inputs.astype(np.int64).tolist(), seeds.tolist()
        observations, x, room = np.empty((count, 24), np.float32), np.empty(count), np.empty((count, 2))
        self._outlines = []
        for row, walker in enumerate(self._walkers[:count]):
            observations[row] = walker.reset(self._obstacles[row], self._seeds[row])
            x[row] = walker.x
            self._surfaces.put(row, walker.course)
            self._outlines.append(outlines(walker.course.shapes()))
            room[row] = hull_reading(self._outlines[row], *walker.hull)
        self._shaping = _shaping(x, observations[:, 0].astype(np.float64))
        self._lidar = observations[:, FELT:].copy()
        signals = np.column_stack([np.ones(count), x, room])
        return _frame(observations, signals, np.zeros(count), np.zeros(count, np.bool_))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        actions = checked_actions(actions, len(rows), _MOTORS)
        effort = np.minimum(np.abs(actions), 1.0)
        speeds, torques = (_JOINT_SPEEDS * np.sign(actions)).tolist(), (_TORQUE * effort).tolist()
        walkers = self._walkers
        readings = np.array(
            [walkers[row].step(speeds[i], torques[i]) for i, row in enumerate(rows.tolist())], np.float64
        )
        x, is_fallen = readings[:, X], readings[:, HAS_FALLEN] > 0
        observations = np.empty((len(rows), 24), np.float32)
        observations[:, :FELT] = _in_units(readings[:, :FELT])
        observations[:, FELT:] = self._surfaces.cast(readings[:, [X, Y]].astype(np.float32), rows)
        self._lidar[rows] = observations[:, FELT:]
        shaping = _shaping(x, readings[:, 0])
        rewards = shaping - self._shaping[rows]
        self._shaping[rows] = shaping
        for joint in range(4):  # one by one: the order of additions shows in the last bit
            rewards -= 0.00035 * _TORQUE * effort[:, joint]
        is_lost = is_fallen | (x < 0)
        rewards[is_lost] = _FALL_REWARD
        signals = np.column_stack([~is_fallen, x, self._hull_readings(readings, rows)])
        return _frame(observations, signals, rewards, is_lost | (x > _GOAL))

    def _hull_readings(self, readings: NDArray[np.float64], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """(m, 2) room under the hulls and impact of a fall, from what walkers `rows` (m,) tell of a step."""
        hulls = readings[:, [X, Y, 0, 2, 3]].tolist()
        ground = (self._outlines[row] for row in rows.tolist())
        return np.array([hull_reading(below, *hull) for below, hull in zip(ground, hulls, strict=True)])

    def render(self, row: int) -> NDArray[np.uint8]:
        """The package's own picture (400, 600, 3) of walker `row`."""
        if self._camera is None:
            self._camera = Camera()
        poses, lidar = self._walkers[row].poses(), self._lidar[row]
        return self._camera.picture(self._obstacles[row], self._seeds[row], poses, lidar)


class Camera:
    """Draws walkers in a gymnasium environment that it builds itself, so that no episode can notice."""

    def __init__(self) -> None:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        self._env: Any = package().BipedalWalker(hardcore=True, render_mode="rgb_array")
        self._case: tuple[tuple[int, ...], int] | None = None

    def picture(
        self, obstacles: Sequence[int], seed: int, poses: Sequence[Pose], lidar: NDArray[np.float32]
    ) -> NDArray[np.uint8]:
        """(400, 600, 3) RGB: the course of a case, hull and legs at `poses`, rays of length `lidar` (10,)."""
        env = self._env
        if self._case != (tuple(obstacles), seed):
            self._case = tuple(obstacles), seed
            env.np_random = ScriptedTypes(obstacles, seed)
            env.reset()
        for body, (position, angle) in zip((env.hull, *env.legs), poses, strict=True):
            body.transform = position, angle
        hull = poses[0][0]
        env.scroll = hull[0] - 600 / SCALE / 5
        for ray, end in zip(env.lidar, ray_ends(hull, lidar).tolist(), strict=True):
            ray.p1, ray.p2 = hull, end
        picture: NDArray[np.uint8] = env.render()
        return picture


def _in_units(felt: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m, 14) what walkers feel in the units of the observation; operations in the order of the package."""
    values = felt.copy()
    values[:, 1] = 2.0 * values[:, 1] / 50
    values[:, 2] = 0.3 * values[:, 2] * (600 / SCALE) / 50
    values[:, 3] = 0.3 * values[:, 3] * (400 / SCALE) / 50
    values[:, [5, 10]] /= 4
    values[:, [6, 11]] += 1.0
    values[:, [7, 12]] /= 6
    return values


def _shaping(x: NDArray[np.float64], angles: NDArray[np.float64]) -> NDArray[np.float64]:
    """(m,) 300 points for the whole way, minus what a tilted hull costs."""
    return 130 * x / SCALE - 5.0 * np.abs(angles)


def _frame(
    observations: NDArray[np.float32],
    signals: NDArray[np.float64],
    rewards: NDArray[np.float64],
    ended: NDArray[np.bool_],
) -> Frame:
    return Frame(
        observations=observations,
        states=observations.astype(np.float64),
        signals=signals,
        rewards=rewards,
        ended=ended,
    )
