import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import Angle, Choice, InputSpace, Integer, Real

some_examples = settings(max_examples=50, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)

SPACE = InputSpace(
    (
        Real("speed", 0.0, 10.0, unit="m/s"),
        Angle("heading"),
        Integer("lanes", 1, 4),
        Choice("weather", ("sun", "rain")),
    ),
    constraint=lambda inputs: inputs[:, 0] < 5 * inputs[:, 2],
)


@some_examples
@given(seeds)
def test_inputs_come_back_from_the_unit_cube(seed):
    inputs = SPACE.sample(np.random.default_rng(seed), 20)
    np.testing.assert_allclose(SPACE.from_unit(SPACE.to_unit(inputs)), inputs, rtol=1e-12, atol=1e-12)


def test_what_leaves_the_unit_cube_comes_back_round_a_circle_and_else_to_the_edge():
    unit = SPACE.into_cube(np.array([[1.25, 1.25, -0.5, 0.5], [-0.25, -0.25, 0.5, 0.5]]))
    assert unit.tolist() == [[1.0, 0.25, 0.0, 0.5], [0.0, 0.75, 0.5, 0.5]]


def test_is_valid_is_false_when_a_value_is_out_of_range():
    rows = np.array([[5.0, 0.0, 4.0, 1.0], [11.0, 0.0, 4.0, 1.0], [5.0, 0.0, 2.5, 1.0], [5.0, 0.0, 4.0, 2.0]])
    assert SPACE.is_valid(rows).tolist() == [True, False, False, False]


def test_is_valid_is_false_when_the_constraint_is_broken():
    rows = np.array([[4.9, 0.0, 1.0, 0.0], [5.1, 0.0, 1.0, 0.0]])
    assert SPACE.is_valid(rows).tolist() == [True, False]


def test_is_valid_is_false_when_a_value_is_not_a_number():
    rows = np.full((4, 4), 1.0)
    np.fill_diagonal(rows, np.nan)
    assert not SPACE.is_valid(rows).any()


def test_samples_fill_the_unit_cube_when_there_is_no_sampler():
    unit = SPACE.to_unit(SPACE.sample(np.random.default_rng(0), 4000))
    np.testing.assert_allclose(unit.mean(axis=0), 0.5, atol=0.02)
    np.testing.assert_allclose(unit[:, :2].std(axis=0), np.sqrt(1 / 12), atol=0.01)


def test_samples_come_from_the_sampler_when_there_is_one():
    space = InputSpace((Real("x", 0.0, 1.0),), sampler=lambda rng, count: np.full((count, 1), 0.25))
    np.testing.assert_array_equal(space.sample(np.random.default_rng(0), 3), np.full((3, 1), 0.25))


def test_perturbing_changes_each_dimension_in_its_own_way():
    inputs = np.tile([5.0, np.pi, 2.0, 0.0], (500, 1))
    perturbed = SPACE.perturb(inputs, np.random.default_rng(0))
    assert np.abs(perturbed[:, 0] - 5.0).max() <= 0.1
    assert (np.abs(perturbed[:, 1]) <= np.pi).all()
    assert set(np.unique(perturbed[:, 2])) == {1.0, 2.0, 3.0}
    assert set(np.unique(perturbed[:, 3])) == {0.0, 1.0}


@some_examples
@given(seeds)
def test_distance_is_euclidean_in_the_unit_cube_when_nothing_wraps(seed):
    rng = np.random.default_rng(seed)
    space = InputSpace((Real("x", -1.0, 1.0), Real("y", 0.0, 100.0)))
    first, second = space.sample(rng, 10), space.sample(rng, 10)
    expected = np.hypot((first[:, 0] - second[:, 0]) / 2, (first[:, 1] - second[:, 1]) / 100)
    np.testing.assert_allclose(space.distance(first, second), expected, rtol=1e-12, atol=1e-15)


@some_examples
@given(st.floats(-np.pi, np.pi), st.floats(-np.pi, np.pi))
def test_distance_of_angles_is_the_short_way_round(first, second):
    space = InputSpace((Angle("heading"),))
    apart = np.abs(np.angle(np.exp(1j * (first - second)))) / (2 * np.pi)
    got = space.distance(np.array([[first]]), np.array([[second]]))[0]
    assert got == pytest.approx(apart, abs=1e-12)


@some_examples
@given(seeds)
def test_distance_is_symmetric_and_obeys_the_triangle_inequality(seed):
    rng = np.random.default_rng(seed)
    a, b, c = (SPACE.sample(rng, 20) for _ in range(3))
    np.testing.assert_array_equal(SPACE.distance(a, b), SPACE.distance(b, a))
    assert (SPACE.distance(a, c) <= SPACE.distance(a, b) + SPACE.distance(b, c) + 1e-12).all()


def test_periods_mark_the_dimensions_that_wrap():
    assert SPACE.periods.tolist() == [0.0, 1.0, 0.0, 0.0]


def test_describe_names_each_value_with_its_unit():
    assert SPACE.describe(np.array([2.5, 1.0, 3.0, 1.0])) == {
        "speed": "2.5 m/s",
        "heading": "1.0000 rad",
        "lanes": "3",
        "weather": "rain",
    }


@pytest.mark.parametrize("second", ["x", "X"])
def test_a_space_is_refused_when_two_dimensions_share_a_name(second):
    with pytest.raises(UsageError, match="repeated dimension names"):
        InputSpace((Real("x", 0.0, 1.0), Real(second, 0.0, 1.0)))


def test_a_space_is_refused_when_it_has_no_dimensions():
    with pytest.raises(UsageError, match="no dimensions"):
        InputSpace(())


def test_a_row_is_refused_when_it_has_the_wrong_number_of_values():
    with pytest.raises(ValueError, match="shorter"):
        SPACE.is_valid(np.zeros((2, 3)))
