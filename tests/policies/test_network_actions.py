import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.spaces import rescaled, to_actions


def test_the_first_of_the_highest_scores_wins():
    actions = to_actions(
        np.array([[1.0, 2.0, 0.0], [3.0, 3.0, 3.0], [-np.inf, -5.0, -np.inf]]), spaces.Discrete(3)
    )
    np.testing.assert_array_equal(actions, [1, 0, 1])
    assert actions.dtype == np.int64


def test_scores_count_from_the_start_of_the_space_and_actions_do_not():
    space = spaces.Discrete(3, start=-1)
    np.testing.assert_array_equal(to_actions(np.array([[0.0, 0.0, 9.0]]), space), [1])
    np.testing.assert_array_equal(to_actions(np.array([[1], [-1]]), space), [1, -1])


@pytest.mark.parametrize("outputs", [np.array([2, 0]), np.array([[2.0], [0.0]]), np.array([[[2]], [[0]]])])
def test_one_column_is_the_action_itself(outputs):
    np.testing.assert_array_equal(to_actions(outputs, spaces.Discrete(3)), [2, 0])


@pytest.mark.parametrize("value", [0.5, 3, -1])
def test_a_number_that_is_no_action_is_refused(value):
    with pytest.raises(PolicyError, match="which is not in Discrete"):
        to_actions(np.array([[value]]), spaces.Discrete(3))


def test_parts_of_a_multidiscrete_action_are_chosen_apart():
    space = spaces.MultiDiscrete([2, 3], start=[0, 5])
    np.testing.assert_array_equal(to_actions(np.array([[0.0, 1.0, 7.0, 8.0, 8.0]]), space), [[1, 6]])
    np.testing.assert_array_equal(to_actions(np.array([[1, 7]]), space), [[1, 7]])


def test_a_multidiscrete_action_keeps_its_shape():
    space = spaces.MultiDiscrete(np.full((2, 2), 2))
    np.testing.assert_array_equal(to_actions(np.array([[0, 1, 1, 0]]), space), [[[0, 1], [1, 0]]])


def test_a_switch_is_on_where_its_output_is_positive():
    actions = to_actions(np.array([[0.0, 1.0, -2.0, 0.3]]), spaces.MultiBinary(4))
    np.testing.assert_array_equal(actions, [[0, 1, 0, 1]])
    assert actions.dtype == np.int8


def test_a_box_is_clipped_and_shaped():
    space = spaces.Box(np.float32(-1), np.float32(1), (2, 2))
    actions = to_actions(np.array([[-3.0, 0.5, 1.0, np.inf]]), space)
    np.testing.assert_array_equal(actions, np.array([[[-1.0, 0.5], [1.0, 1.0]]], np.float32))
    assert actions.dtype == np.float32


def test_whole_numbers_of_a_box_are_rounded():
    actions = to_actions(np.array([[1.6, 300.0]]), spaces.Box(0, 255, (2,), np.uint8))
    np.testing.assert_array_equal(actions, np.array([[2, 255]], np.uint8))


@given(arrays(np.float32, (5, 2), elements=st.floats(width=32, allow_nan=False)))
def test_every_action_of_a_bounded_box_is_in_it(outputs):
    space = spaces.Box(np.float32(-2), np.float32(0.5), (2,))
    for action in to_actions(outputs, space):
        assert space.contains(action)


def test_an_infinite_action_without_bounds_is_refused():
    with pytest.raises(PolicyError, match="infinite"):
        to_actions(np.array([[np.inf]]), spaces.Box(-np.inf, np.inf, (1,)))


@pytest.mark.parametrize("space", [spaces.Discrete(2), spaces.Box(-1, 1, (2,)), spaces.MultiBinary(2)])
def test_nan_is_refused(space):
    with pytest.raises(PolicyError, match="NaN"):
        to_actions(np.array([[0.0, np.nan]]), space)


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (spaces.Discrete(3), "expected 1 or 3 for Discrete"),
        (spaces.Box(-1, 1, (3,)), "expected 3 for Box"),
        (spaces.MultiBinary(3), "expected 3 for MultiBinary"),
        (spaces.MultiDiscrete([2, 3]), "expected 2 or 5 for MultiDiscrete"),
    ],
)
def test_a_width_that_does_not_fit_is_told_with_both_sides(space, expected):
    with pytest.raises(PolicyError, match=f"gives 4 number.*{expected}"):
        to_actions(np.zeros((2, 4)), space)


def test_other_spaces_are_refused():
    with pytest.raises(PolicyError, match="cannot be made"):
        to_actions(np.zeros((1, 2)), spaces.Tuple([spaces.Discrete(2)]))


def test_rescaling_maps_the_ends_to_the_bounds():
    space = spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([2.0, 1.0], np.float32))
    stretched = rescaled(np.array([[-1.0, -1.0], [0.0, 0.0], [1.0, 1.0]]), space)
    np.testing.assert_array_equal(stretched, [[-2.0, 0.0], [0.0, 0.5], [2.0, 1.0]])


def test_rescaling_needs_bounds():
    with pytest.raises(PolicyError, match="no finite bounds"):
        rescaled(np.zeros((1, 2)), spaces.Discrete(2))
