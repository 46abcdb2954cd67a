"""Courses: that they have the obstacles which were asked for, and what the lidar sees of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("Box2D", reason="needs the extra bipedal")
pytest.importorskip("gymnasium", reason="needs the extra bipedal")

from Box2D import b2, b2PolygonShape
from gymnasium.envs.box2d.bipedal_walker import BipedalWalker

from policyfuzz.environments.families.bipedal_walker import NAMED, OBSTACLES, ScriptedTypes
from policyfuzz.targets.bipedal.lidar import DIRECTIONS, MOST_BOXES, Surfaces
from policyfuzz.targets.bipedal.terrain import CELL, CELLS, lay_course

STUMP, STAIRS, PIT = range(3)

some_examples = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**63 - 1)
types = st.lists(st.integers(0, 2), min_size=NAMED, max_size=NAMED)


def built(obstacles, seed):
    """gymnasium's environment after its own reset on this course."""
    env: Any = BipedalWalker(hardcore=True)
    env.np_random = ScriptedTypes(obstacles, seed)
    env.reset()
    return env


def boxes_of(env):
    """Rectangles in the world, in the order of their making: left, right, bottom, top."""
    shapes = [body.fixtures[0].shape for body in reversed(env.terrain)]
    corners = [np.array(shape.vertices) for shape in shapes if isinstance(shape, b2PolygonShape)]
    return [(*corner[:, 0][[2, 0]], *corner[:, 1][[0, 1]]) for corner in corners]


@some_examples
@given(types, seeds)
def test_course_is_that_of_gymnasium_when_both_are_told_the_same(obstacles, seed):
    env, rng = built(obstacles, seed), np.random.default_rng(seed)
    course = lay_course(obstacles, rng)
    assert course.heights == [float(height) for height in env.terrain_y]
    np.testing.assert_allclose(
        [(box[0][0], box[1][0]) for box in course.boxes], [box[:2] for box in boxes_of(env)], rtol=1e-6
    )


@some_examples
@given(types, seeds)
def test_world_has_the_obstacles_that_were_asked_for(obstacles, seed):
    boxes = boxes_of(built(obstacles, seed))
    starts = lay_course(obstacles, np.random.default_rng(seed)).starts
    for number, start in enumerate(starts[:NAMED]):
        until = starts[number + 1] if number + 1 < len(starts) else np.inf
        mine = [box for box in boxes if start * CELL - 1e-3 < box[0] < until * CELL - 1e-3]
        assert seen_as(mine) == obstacles[number], (number, mine)


def seen_as(boxes):
    """The type of an obstacle that is made of these rectangles."""
    sizes = [(right - left, top - bottom) for left, right, bottom, top in boxes]
    if len(sizes) == 1:
        assert sizes[0][0] == pytest.approx(sizes[0][1], rel=1e-4)
        return STUMP
    if len(sizes) == 2:
        assert sizes[0] == pytest.approx((CELL, 4 * CELL), rel=1e-4)
        return PIT
    assert sizes[0] == pytest.approx((4 * CELL, CELL), rel=1e-4)
    return STAIRS


@pytest.mark.parametrize("obstacle", range(3), ids=OBSTACLES)
def test_other_types_give_another_course_behind_them_only(obstacle):
    first = lay_course([obstacle] * NAMED, np.random.default_rng(7))
    for number in (1, 4):
        changed = [obstacle] * NAMED
        changed[number] = (obstacle + 1) % 3
        second = lay_course(changed, np.random.default_rng(7))
        start = second.starts[number]
        assert first.heights[:start] == second.heights[:start]
        assert first.boxes != second.boxes


def test_obstacles_beyond_the_named_ones_come_from_the_seed():
    stumps = [STUMP] * NAMED
    courses = [lay_course(stumps, np.random.default_rng(seed)) for seed in range(20)]
    further = [course.obstacles[NAMED:] for course in courses]
    assert {kind for some in further for kind in some} == {STUMP, STAIRS, PIT}
    assert all(course.obstacles[:NAMED] == stumps for course in courses)


@some_examples
@given(types, seeds, st.integers(0, 2**32 - 1))
def test_lidar_equals_box2d_from_anywhere(obstacles, seed, point_seed):
    env, rng = built(obstacles, seed), np.random.default_rng(point_seed)
    course = lay_course(obstacles, np.random.default_rng(seed))
    surfaces = Surfaces(1)
    surfaces.put(0, course)
    hulls = points(rng, course)
    got = surfaces.cast(hulls, np.zeros(len(hulls), np.int64))
    expected = np.array([[cast(env.world, hull, way) for way in DIRECTIONS] for hull in hulls])
    np.testing.assert_array_equal(got, expected)


def points(rng, course):
    """(n, 2) points above, below and on the ground, beyond its ends, and at corners of obstacles."""
    anywhere = np.column_stack([rng.uniform(-4, CELLS * CELL + 4, 30), rng.uniform(-3, 12, 30)])
    corners = np.array(course.boxes).reshape(-1, 2)[rng.integers(0, 4 * len(course.boxes), 15)]
    cells = rng.integers(0, CELLS, 15)
    ground = np.column_stack([cells * CELL, np.array(course.heights)[cells]])
    above = ground + np.array([0.0, 1.5])
    return np.concatenate([anywhere, corners, ground, above]).astype(np.float32)


def cast(world, hull, way):
    """Fraction at which Box2D's own ray ends that the walker's does."""

    class Nearest(b2.rayCastCallback):
        fraction = 1.0

        def ReportFixture(self, fixture, point, normal, fraction):  # noqa: N802
            if fixture.filterData.categoryBits & 1 == 0:
                return -1.0
            self.fraction = fraction
            return fraction

    ray = Nearest()
    x, y = float(hull[0]), float(hull[1])
    world.RayCast(ray, (x, y), (x + way[0], y + way[1]))
    return ray.fraction


def test_a_course_never_has_more_boxes_than_there_is_room_for():
    # steps of stairs are the densest: at most four in 16 cells, with at least five of grass between
    assert (CELLS - 20) // (12 + 5) * 4 + 4 <= MOST_BOXES
    most = [len(lay_course([STAIRS] * NAMED, np.random.default_rng(seed)).boxes) for seed in range(50)]
    assert max(most) <= MOST_BOXES
