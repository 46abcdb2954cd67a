"""One walker of gymnasium in its own Box2D world, with a shorter step that gives the same bits."""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.targets.bipedal.terrain import CELL, Course, lay_course, skip_clouds

#: Seconds of a step, and iterations of Box2D's velocity and position solvers in it.
_STEP = (1.0 / 50, 6 * 30, 2 * 30)

#: What a walker feels: the first numbers of the observation, not yet in its units.
FELT = 14
#: Behind that `Walker.step` tells where the hull is, and whether it has touched the ground.
X, Y, HAS_FALLEN = FELT, FELT + 1, FELT + 2


@cache
def package() -> Any:
    """The module of gymnasium that holds the environment."""
    extras.load("Box2D", "bipedal")
    return extras.load("gymnasium.envs.box2d.bipedal_walker", "bipedal")


class Walker:
    """gymnasium's environment object: reset by its own code on a course that we lay, stepped by ours."""

    def __init__(self) -> None:
        self._box2d = extras.load("Box2D", "bipedal")
        self._env = package().BipedalWalker(hardcore=True)
        self._env._generate_terrain = self._build_ground
        self._env._generate_clouds = self._skip_clouds
        self._static = self._box2d.b2BodyDef(type=self._box2d.b2_staticBody)
        self._obstacles: list[int] = []
        self.course = Course([], [], [], [])

    def reset(self, obstacles: list[int], seed: int) -> NDArray[np.float32]:
        """Begin an episode; returns the first observation (24,)."""
        env = self._env
        self._obstacles = obstacles
        # a world that was used before orders its contacts otherwise, and rounding follows
        env.world = self._box2d.b2World()
        env.terrain = []
        env.np_random = np.random.default_rng(seed)
        observation: NDArray[np.float32] = env.reset()[0]
        self._advance_world = env.world.Step
        self._hull, self._joints = env.hull, tuple(env.joints)
        self._feet = env.legs[1], env.legs[3]
        # both are views of the body's own numbers
        self._position, self._velocity = env.hull.position, env.hull.linearVelocity
        self._speeds = [joint.motorSpeed for joint in env.joints]
        return observation

    @property
    def x(self) -> float:
        """Where the hull is."""
        return float(self._position.x)

    @property
    def hull(self) -> tuple[float, float, float, float, float]:
        """Position, angle and velocity of the hull."""
        position, velocity = self._position, self._velocity
        return position.x, position.y, self._hull.angle, velocity.x, velocity.y

    def step(self, speeds: list[float], torques: list[float]) -> tuple[float, ...]:
        """Drive the four joints for one step; returns FELT numbers, then x, y and whether it has fallen."""
        joints = self._joints
        if speeds != self._speeds:
            self._speeds = speeds
            for joint, speed in zip(joints, speeds, strict=True):
                joint.motorSpeed = speed
        for joint, torque in zip(joints, torques, strict=True):
            joint.maxMotorTorque = torque
        self._advance_world(*_STEP)
        position, velocity, hull = self._position, self._velocity, self._hull
        hip0, knee0, hip1, knee1 = joints
        foot0, foot1 = self._feet
        return (
            hull.angle,
            hull.angularVelocity,
            velocity.x,
            velocity.y,
            hip0.angle,
            hip0.speed,
            knee0.angle,
            knee0.speed,
            foot0.ground_contact,
            hip1.angle,
            hip1.speed,
            knee1.angle,
            knee1.speed,
            foot1.ground_contact,
            position.x,
            position.y,
            self._env.game_over,
        )

    def poses(self) -> list[tuple[tuple[float, float], float]]:
        """Position and angle of the hull and the four parts of the legs."""
        bodies = (self._hull, *self._env.legs)
        return [((body.position.x, body.position.y), body.angle) for body in bodies]

    def _skip_clouds(self) -> None:
        skip_clouds(self._env.np_random)

    def _build_ground(self, hardcore: bool) -> None:
        """Stands in for the package's method: the same bodies in the same order, in a third of the time."""
        env = self._env
        self.course = lay_course(self._obstacles, env.np_random)
        create, static = env.world.CreateBody, self._static
        static.fixtures, shape = env.fd_polygon, env.fd_polygon.shape
        for box in self.course.boxes:
            shape.vertices = box
            create(static)
        static.fixtures, shape = env.fd_edge, env.fd_edge.shape
        points = [(cell * CELL, height) for cell, height in enumerate(self.course.heights)]
        for start, end in pairwise(points):
            shape.vertex1, shape.vertex2 = start, end
            create(static)
