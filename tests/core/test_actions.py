import numpy as np
import pytest

from policyfuzz.core.actions import ActionSpace, action_numbers, with_numbers
from policyfuzz.core.errors import UsageError


def test_choices_are_macros_by_their_names():
    space = ActionSpace.choices(("stay", "go"), start=3)
    assert [(macro.name, macro.numbers) for macro in space.macros] == [("stay", (3.0,)), ("go", (4.0,))]


def test_samples_are_allowed_and_reach_every_choice():
    space = ActionSpace.choices(("a", "b", "c"), start=1)
    drawn = space.sample(np.random.default_rng(0), 200)
    assert set(drawn.ravel().tolist()) == {1.0, 2.0, 3.0}
    np.testing.assert_array_equal(space.allowed(drawn), drawn)


def test_box_rests_as_near_to_zero_as_it_may():
    space = ActionSpace.box(np.array([0.5, -1.0]), np.array([2.0, 1.0]), ("gas", "wheel"))
    assert space.macros[0].numbers == (0.5, 0.0)
    assert "wheel high" in [macro.name for macro in space.macros]


def test_joint_macros_are_of_all_agents_or_leave_the_others_alone():
    one = ActionSpace.choices(("stay", "go"))
    joint = ActionSpace.joint([("a", one), ("b", one)])
    numbers = {macro.name: macro.numbers for macro in joint.macros}
    assert numbers["all: go"] == (1.0, 1.0)
    assert numbers["b: go"][1] == 1.0
    assert np.isnan(numbers["b: go"][0])


def test_bounds_that_are_not_finite_are_refused():
    with pytest.raises(UsageError, match="finite"):
        ActionSpace.box(np.array([-np.inf]), np.array([1.0]))


def test_allowed_numbers_are_within_bounds_and_whole():
    space = ActionSpace.box(np.zeros(2), np.full(2, 3), whole=True)
    np.testing.assert_array_equal(space.allowed(np.array([[-1.0, 2.4]])), [[0.0, 2.0]])


def test_numbers_of_records_go_there_and_back():
    kind = np.dtype([("agents", [("a", np.int64), ("b", np.float32, (2,))]), ("alive", np.bool_, (2,))])
    actions = np.zeros(3, kind)
    actions["agents"]["a"], actions["agents"]["b"] = [1, 2, 3], [[0.5, 1.5]] * 3
    actions["alive"] = True
    numbers = action_numbers(actions)
    np.testing.assert_array_equal(numbers, [[1, 0.5, 1.5], [2, 0.5, 1.5], [3, 0.5, 1.5]])
    changed = with_numbers(actions, numbers + 1)
    assert changed.dtype == kind
    assert changed["agents"]["a"].tolist() == [2, 3, 4]
    assert changed["alive"].all()


def test_what_is_added_to_a_choice_goes_round_to_another_one():
    space = ActionSpace.choices(("a", "b", "c"), start=1)
    np.testing.assert_array_equal(space.added(np.array([[3.0]]), np.array([[1.0]])), [[1.0]])
    np.testing.assert_array_equal(space.added(np.array([[1.0]]), np.array([[2.0]])), [[3.0]])


def test_what_is_added_to_a_number_stops_at_the_bounds():
    space = ActionSpace.box(np.zeros(1), np.ones(1))
    np.testing.assert_array_equal(space.added(np.array([[0.75]]), np.array([[0.5]])), [[1.0]])
