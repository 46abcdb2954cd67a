"""Distances between vehicles as rectangles."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfuzz.targets.driving.scenario import (
    VEHICLE_LENGTH,
    VEHICLE_WIDTH,
    clearances,
    corners,
    rotated,
    seen_from,
)

HERE = np.zeros(3)
metres = st.floats(-30, 30)
angles = st.floats(-3.2, 3.2)
poses = st.tuples(metres, metres, angles).map(np.array)


def clearance(one, two):
    return clearances(one, two[None])[0]


@pytest.mark.parametrize(
    ("pose", "expected"),
    [
        ((VEHICLE_LENGTH + 2.0, 0.0, 0.0), 2.0),
        ((0.0, VEHICLE_WIDTH + 1.5, 0.0), 1.5),
        ((VEHICLE_LENGTH + 3.0, VEHICLE_WIDTH + 4.0, 0.0), 5.0),
        (((VEHICLE_LENGTH + VEHICLE_WIDTH) / 2 + 1.0, 0.0, np.pi / 2), 1.0),
        ((1.0, 0.5, 0.3), 0.0),
        ((0.0, 0.0, np.pi / 2), 0.0),
    ],
)
def test_clearance_of_simple_poses(pose, expected):
    assert clearance(HERE, np.array(pose)) == pytest.approx(expected)


@given(poses, poses)
def test_clearance_is_the_same_from_both_sides(one, two):
    assert clearance(one, two) == pytest.approx(clearance(two, one), abs=1e-9)


@given(poses, poses, poses)
def test_clearance_does_not_depend_on_where_the_world_begins(one, two, frame):
    def moved(pose):
        return np.array([*(rotated(pose[:2], frame[2]) + frame[:2]), pose[2] + frame[2]])

    assert clearance(moved(one), moved(two)) == pytest.approx(clearance(one, two), abs=1e-6)


@given(poses, poses)
def test_clearance_is_between_the_distances_of_circles_inside_and_around(one, two):
    apart = float(np.hypot(*(one - two)[:2]))
    found = clearance(one, two)
    assert found >= apart - np.hypot(VEHICLE_LENGTH, VEHICLE_WIDTH) - 1e-9
    assert found <= max(0.0, apart - VEHICLE_WIDTH) + 1e-9


@given(poses)
def test_corners_are_half_a_vehicle_away_in_its_own_eyes(pose):
    seen = seen_from(pose, corners(pose[None])[0])
    np.testing.assert_allclose(
        np.abs(seen), np.tile([VEHICLE_LENGTH / 2, VEHICLE_WIDTH / 2], (4, 1)), atol=1e-9
    )
