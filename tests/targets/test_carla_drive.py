"""State and reward of a drive, in numbers."""

import numpy as np
import pytest

from policyfuzz.targets.carla.drive import STATE, Motion, near, reward, state

NOWHERE = np.empty((0, 2))


def motion(position=(0.0, 0.0, 0.0), yaw=0.0, velocity=(0.0, 0.0, 0.0), acceleration=(0.0, 0.0, 0.0)):
    forward = np.array([np.cos(yaw), np.sin(yaw)])
    return Motion(np.array(position), forward, np.array(velocity), np.array(acceleration))


def test_a_state_has_seventeen_values_in_the_order_of_their_names():
    ego = motion((1.0, 2.0, 3.0), 0.0, (4.0, 5.0, 6.0), (7.0, 8.0, 9.0))
    values = state(ego, np.array([10.0, 11.0]), 4, np.array([[6.0, 1.0], [2.0, 5.0]]))
    named = dict(zip(STATE, values.tolist(), strict=True))
    assert len(STATE) == 17
    assert [named["node_x"], named["node_y"], named["command"]] == [10.0, 11.0, 4.0]
    assert [named["forward_x"], named["forward_y"]] == [1.0, 0.0]
    assert [named[f"velocity_{axis}"] for axis in "xyz"] == [4.0, 5.0, 6.0]
    assert [named[f"acceleration_{axis}"] for axis in "xyz"] == [7.0, 8.0, 9.0]
    assert [named[axis] for axis in "xyz"] == [1.0, 2.0, 3.0]
    assert [named["near_ahead"], named["near_right"], named["near_count"]] == [3.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("yaw", "ahead", "right"),
    [(0.0, 10.0, 3.0), (np.pi / 2, 3.0, -10.0), (np.pi, -10.0, -3.0)],
    ids=["towards x", "towards y", "towards -x"],
)
def test_offsets_of_near_vehicles_turn_with_the_car(yaw, ahead, right):
    # y is to the right of x
    got = near(motion((5.0, 5.0, 0.0), yaw), np.array([[15.0, 8.0]]))
    np.testing.assert_allclose(got, [ahead, right, 1.0], atol=1e-12)


def test_vehicles_far_away_are_not_near():
    assert near(motion(), np.array([[31.9, 0.0], [32.1, 0.0], [0.0, -400.0]]))[2] == 1
    np.testing.assert_array_equal(near(motion(), NOWHERE), 0.0)
    np.testing.assert_array_equal(near(motion(), np.array([[100.0, 0.0]])), 0.0)


def test_a_standing_car_looks_along_its_yaw():
    ego = Motion.at_rest(np.array([1.0, 2.0, 3.0, np.pi / 2]))
    np.testing.assert_allclose(ego.forward, [0.0, 1.0], atol=1e-12)
    assert ego.speed == 0.0


def test_speed_counts_all_three_axes():
    assert motion(velocity=(2.0, 3.0, 6.0)).speed == 7.0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0.7, 7.0, 7.0, False, False), 0.7),
        ((-0.7, 7.0, 7.0, False, False), -0.7),
        ((0.0, 8.0, 6.0, False, False), 0.4),
        ((0.0, 6.0, 8.0, False, False), -0.4),
        ((0.5, 6.0, 6.0, True, False), 0.5 - 600.0),
        ((0.5, 6.0, 6.0, False, True), 0.5 - 6.0),
        ((0.5, 6.0, 6.0, True, True), 0.5 - 606.0),
        ((500.0, 0.0, 0.0, False, False), 10.0),
        ((-500.0, 0.0, 0.0, False, False), -10.0),
    ],
    ids=["on", "back", "faster", "slower", "crash", "marking", "both", "jump on", "jump back"],
)
def test_reward_of_a_tick(arguments, expected):
    assert reward(*arguments) == pytest.approx(expected)
