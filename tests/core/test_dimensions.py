import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.inputs import Angle, Choice, Integer, Real

some_examples = settings(max_examples=50, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)
bounds = st.floats(-1e6, 1e6)

SPEED = Real("speed", 10.0, 1100.0, unit="ft/s", noise=5.0)
HEADING = Angle("heading", noise=0.2)
LANES = Integer("lanes", 2, 6)
GROUND = Choice("ground", ("stump", "stairs", "pit"))


@st.composite
def reals(draw):
    low = draw(bounds)
    return Real("x", low, low + draw(st.floats(1e-3, 1e6)))


@st.composite
def integers(draw):
    low = draw(st.integers(-1000, 1000))
    return Integer("n", low, low + draw(st.integers(0, 1000)))


choices = st.integers(1, 20).map(lambda count: Choice("c", tuple(f"option {i}" for i in range(count))))


@some_examples
@given(reals(), seeds)
def test_real_comes_back_from_the_unit_interval(dimension, seed):
    values = np.random.default_rng(seed).uniform(dimension.low, dimension.high, 20)
    unit = dimension.to_unit(values)
    assert ((unit >= 0) & (unit <= 1)).all()
    size = max(abs(dimension.low), abs(dimension.high))
    np.testing.assert_allclose(dimension.from_unit(unit), values, rtol=0, atol=1e-14 * size)


@some_examples
@given(st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=20))
def test_angle_comes_back_from_the_unit_interval_as_the_same_direction(values):
    angles = np.array(values)
    unit = HEADING.to_unit(angles)
    assert ((unit >= 0) & (unit <= 1)).all()
    turned = HEADING.from_unit(unit) - angles
    np.testing.assert_allclose(np.exp(1j * turned), 1.0, atol=1e-12)


@some_examples
@given(st.one_of(integers(), choices))
def test_discrete_value_comes_back_exactly_from_the_unit_interval(dimension):
    values = np.arange(dimension.low, dimension.high + 1, dtype=np.float64)
    unit = dimension.to_unit(values)
    assert ((unit > 0) & (unit < 1)).all()
    np.testing.assert_array_equal(dimension.from_unit(unit), values)


@some_examples
@given(st.one_of(integers(), choices), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_every_unit_coordinate_is_a_value_when_a_dimension_is_discrete(dimension, unit):
    assert dimension.contains(dimension.from_unit(np.array([0.0, *unit, 1.0]))).all()


@pytest.mark.parametrize("dimension", [LANES, GROUND])
def test_discrete_values_have_equal_shares_of_the_unit_interval(dimension):
    unit = (np.arange(3000) + 0.5) / 3000
    _, counts = np.unique(dimension.from_unit(unit), return_counts=True)
    assert len(counts) == dimension.high - dimension.low + 1
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    ("dimension", "values", "expected"),
    [
        (SPEED, [9.9, 10.0, 500.5, 1100.0, 1100.1, np.nan, np.inf], [0, 1, 1, 1, 0, 0, 0]),
        (HEADING, [-np.pi, 0.0, np.pi, 7.0, np.nan, np.inf, -np.inf], [1, 1, 1, 1, 0, 0, 0]),
        (LANES, [1.0, 2.0, 2.5, 6.0, 7.0, np.nan, np.inf], [0, 1, 0, 1, 0, 0, 0]),
        (GROUND, [-1.0, 0.0, 0.5, 2.0, 3.0, np.nan, np.inf], [0, 1, 0, 1, 0, 0, 0]),
    ],
)
def test_contains_says_which_values_a_dimension_can_take(dimension, values, expected):
    np.testing.assert_array_equal(dimension.contains(np.array(values)), np.array(expected, bool))


@some_examples
@given(seeds)
def test_real_is_perturbed_by_no_more_than_its_noise(seed):
    values = np.full(500, 600.0)
    noise = SPEED.perturb(values, np.random.default_rng(seed)) - values
    assert np.abs(noise).max() <= 5.0
    assert noise.min() < -4.0
    assert noise.max() > 4.0


def test_real_is_perturbed_by_a_hundredth_of_its_range_when_it_names_no_noise():
    noise = Real("x", 100.0, 300.0).perturb(np.full(2000, 200.0), np.random.default_rng(0)) - 200.0
    assert 1.9 < np.abs(noise).max() <= 2.0


@some_examples
@given(seeds, st.floats(-np.pi, np.pi))
def test_angle_is_perturbed_round_the_circle(seed, angle):
    perturbed = HEADING.perturb(np.full(200, angle), np.random.default_rng(seed))
    assert (np.abs(perturbed) <= np.pi).all()
    turned = np.angle(np.exp(1j * (perturbed - angle)))
    assert np.abs(turned).max() <= 0.2 + 1e-12
    assert np.ptp(turned) > 0.2


@some_examples
@given(seeds)
def test_integer_is_perturbed_by_one_step_in_a_tenth_of_cases(seed):
    steps = LANES.perturb(np.full(2000, 4.0), np.random.default_rng(seed)) - 4.0
    assert set(np.unique(steps)) == {-1.0, 0.0, 1.0}
    assert 0.06 < np.count_nonzero(steps) / 2000 < 0.14


@some_examples
@given(seeds)
def test_choice_is_perturbed_to_the_next_option_in_a_tenth_of_cases(seed):
    perturbed = GROUND.perturb(np.full(2000, 2.0), np.random.default_rng(seed))
    assert set(np.unique(perturbed)) == {0.0, 2.0}
    assert 0.06 < np.count_nonzero(perturbed == 0.0) / 2000 < 0.14


@pytest.mark.parametrize("dimension", [SPEED, HEADING, LANES, GROUND])
def test_perturbing_leaves_its_argument_alone(dimension):
    values = dimension.from_unit(np.linspace(0.1, 0.9, 50))
    copy = values.copy()
    dimension.perturb(values, np.random.default_rng(0))
    np.testing.assert_array_equal(values, copy)


@pytest.mark.parametrize(
    ("dimension", "value", "text"),
    [(SPEED, 1234.5678, "1234.57"), (HEADING, 1.0, "1.0000"), (LANES, 3.0, "3"), (GROUND, 2.0, "pit")],
)
def test_describe_writes_a_value_for_a_reader(dimension, value, text):
    assert dimension.describe(value) == text


def test_only_an_angle_is_periodic():
    assert [dimension.is_periodic for dimension in (SPEED, HEADING, LANES, GROUND)] == [
        False,
        True,
        False,
        False,
    ]
