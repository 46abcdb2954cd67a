"""The distance of a hull to the ground, against points drawn along both outlines."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.environments.families.ground import clearance, impact, outlines

some_examples = settings(max_examples=20, deadline=None, derandomize=True)
SQUARE = np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])
FLOOR = outlines([((-10.0, 0.0), (10.0, 0.0))])


def points_along(segments, count=200):
    """(m * count, 2) points on `segments` (m, 4)."""
    shares = np.linspace(0, 1, count)[:, None, None]
    return ((1 - shares) * segments[:, :2] + shares * segments[:, 2:]).reshape(-1, 2)


@some_examples
@given(st.floats(-3, 3), st.floats(0.5, 4), st.floats(-7, 7), st.integers(0, 1000))
def test_clearance_is_the_distance_between_the_nearest_points(x, y, angle, seed):
    rng = np.random.default_rng(seed)
    hull = np.array([(-0.5, -0.3), (0.6, -0.2), (0.4, 0.3), (-0.4, 0.2)])
    heights = rng.uniform(-2, 0.5, 12)
    ground = [(2.0 * number - 12, height) for number, height in enumerate(heights.tolist())]
    segments = outlines([*pairwise(ground), [(3, 0), (4, 0), (4, 2), (3, 2)]])
    got = clearance(hull, x, y, angle, segments, 50.0)
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    sides = outlines([(hull @ turn + [x, y]).tolist()])
    apart = points_along(sides, 60)[:, None] - points_along(segments)[None]
    least = np.hypot(*apart.reshape(-1, 2).T).min()
    # drawn points lie a little beside the nearest ones
    assert least - 0.04 <= got <= least + 1e-9


@pytest.mark.parametrize(
    ("y", "angle", "expected"),
    [
        (3.0, 0.0, 2.0),
        (3.0, math.pi / 4, 3 - math.sqrt(2)),
        (3.0, math.pi, 2.0),
        (1.0, 0.0, 0.0),
        (0.5, 0.0, 0.0),
        (40.0, 0.0, 5.0),
    ],
    ids=["level", "on a corner", "upside down", "touching", "in the ground", "out of reach"],
)
def test_clearance_of_a_square_over_a_floor(y, angle, expected):
    assert clearance(SQUARE, 0.0, y, angle, FLOOR, 5.0) == pytest.approx(expected)


def test_clearance_counts_a_wall_that_is_beside():
    wall = outlines([((4.0, -10.0), (4.0, 10.0))])
    assert clearance(SQUARE, 0.0, 0.0, 0.0, wall, 5.0) == pytest.approx(3.0)


def test_outlines_of_a_solid_shape_are_closed_and_of_an_edge_are_not():
    assert outlines([((0, 0), (1, 0), (1, 1)), ((5, 5), (6, 6))]).tolist() == [
        [0, 0, 1, 0],
        [1, 0, 1, 1],
        [1, 1, 0, 0],
        [5, 5, 6, 6],
    ]


def test_impact_adds_speed_and_tilt_in_their_own_units():
    assert impact(3.0, -4.0, 0.0, drop=1.25, gravity=-10.0) == pytest.approx(1.0)
    assert impact(0.0, 0.0, -math.pi, drop=1.0, gravity=-10.0) == pytest.approx(1.0)
    assert impact(0.0, 0.0, 4 * math.pi, drop=1.0, gravity=-10.0) == pytest.approx(0.0, abs=1e-9)
