import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.core.target import Runner
from policyfuzz.oracles import NONE
from policyfuzz.targets.ripple.target import ACTIVE_DIMENSIONS, STEPS, Pond, make_target

some_examples = settings(max_examples=40, deadline=None, derandomize=True)


def ripple(dimensions=2, regions=1, probability=1e-3):
    options = {"dimensions": dimensions, "regions": regions, "probability": probability}
    return make_target({name: repr(value) for name, value in options.items()}, None)


def run(target, inputs):
    return Runner(target)(inputs, np.zeros(len(inputs), np.uint64))


def starts_around(pond, dimensions, rng, count):
    """(count, d) starts in the unit cube, half of them around a centre up to twice the half-width."""
    starts = rng.random((count, dimensions))
    active = pond.centres.shape[1]
    near = pond.centres[rng.integers(0, len(pond.centres), count)]
    near = near + 2 * pond.half_width * rng.uniform(-1, 1, (count, active)) * rng.random((count, 1))
    is_near = rng.random(count) < 0.5
    starts[is_near, :active] = np.clip(near, 0.0, 1.0)[is_near]
    return starts


#: Regions and their probability, such that they fit apart in any dimension.
layouts = st.sampled_from([(1, 1e-2), (1, 1e-4), (2, 1e-4), (5, 1e-5), (10, 1e-6)])


@some_examples
@given(st.integers(1, 20), layouts, st.integers(0, 2**32 - 1))
def test_crashes_and_crash_steps_equal_the_closed_form(dimensions, layout, seed):
    regions, probability = layout
    pond = Pond.make(dimensions, regions, probability)
    inputs = starts_around(pond, dimensions, np.random.default_rng(seed), 100)
    active = min(dimensions, ACTIVE_DIMENSIONS)
    distances = np.abs(inputs[:, None, :active] - pond.centres).max(axis=2).min(axis=1)
    lead = STEPS * distances / pond.half_width
    clear = np.abs(lead - np.round(lead)) > 1e-6  # elsewhere rounding decides between two steps
    inputs, lead = inputs[clear], lead[clear]
    executions = run(ripple(dimensions, regions, probability), inputs)
    np.testing.assert_array_equal(executions.crashed, lead < STEPS)
    expected = np.where(lead < STEPS, np.ceil(lead), NONE)
    np.testing.assert_array_equal(executions.verdicts.steps, expected)
    np.testing.assert_array_equal(pond.crash_steps(inputs), np.where(expected == NONE, np.inf, expected))


def test_a_start_in_a_centre_is_caught_at_the_first_step():
    pond = Pond.make(3, 2, 1e-3)
    executions = run(ripple(3, 2, 1e-3), pond.centres)
    assert executions.verdicts.steps.tolist() == [1, 1]
    assert pond.crash_steps(pond.centres).tolist() == [1.0, 1.0]


def test_coordinates_beyond_the_active_ones_do_not_matter():
    rng = np.random.default_rng(0)
    pond = Pond.make(15, 1, 1e-2)
    inputs = starts_around(pond, 15, rng, 100)
    other = inputs.copy()
    other[:, ACTIVE_DIMENSIONS:] = rng.random((100, 15 - ACTIVE_DIMENSIONS))
    target = ripple(15, 1, 1e-2)
    np.testing.assert_array_equal(run(target, inputs).returns, run(target, other).returns)


@pytest.mark.parametrize(("regions", "probability"), [(1, 0.1), (3, 0.02)])
def test_regions_have_their_probability_under_uniform_sampling(regions, probability):
    target = ripple(2, regions, probability)
    inputs = target.inputs.sample(np.random.default_rng(0), 20_000)
    expected = regions * probability
    error = np.sqrt(expected * (1 - expected) / 20_000)
    assert run(target, inputs).crashed.mean() == pytest.approx(expected, abs=4 * error)


@some_examples
@given(st.integers(1, 20), layouts)
def test_regions_are_disjoint_and_inside_the_cube(dimensions, layout):
    regions, probability = layout
    pond = Pond.make(dimensions, regions, probability)
    assert len(pond.centres) == regions
    assert (2 * pond.half_width) ** pond.centres.shape[1] == pytest.approx(probability)
    assert (pond.centres >= pond.half_width).all()
    assert (pond.centres <= 1 - pond.half_width).all()
    apart = np.abs(pond.centres[:, None] - pond.centres[None]).max(axis=2)
    assert (apart[~np.eye(regions, dtype=bool)] > 2 * pond.half_width).all()


def test_return_falls_as_a_start_comes_nearer_to_a_region():
    pond = Pond.make(1, 1, 0.01)
    side = 1.0 if pond.centres[0, 0] < 0.5 else -1.0
    inputs = pond.centres + side * pond.half_width * np.linspace(1.1, 20, 50)[:, None]
    assert (np.diff(run(ripple(1, 1, 0.01), inputs).returns) > 0).all()


def test_an_episode_is_bitwise_the_same_when_it_runs_alone():
    target = ripple(4, 1, 0.05)
    inputs = target.inputs.sample(np.random.default_rng(0), 50)
    together = run(target, inputs)
    for row in range(0, 50, 7):
        alone = run(target, inputs[row : row + 1])
        length = together.lengths[row]
        assert alone.returns[0] == together.returns[row]
        np.testing.assert_array_equal(alone.states[0], together.states[row, :length])


def test_every_input_is_solvable():
    target = ripple(3)
    assert target.solvable(target.inputs.sample(np.random.default_rng(0), 100)).all()


@pytest.mark.parametrize(
    "options",
    [
        {"dimensions": "0"},
        {"dimensions": "two"},
        {"dimensions": "2.5"},
        {"regions": "0"},
        {"probability": "0"},
        {"probability": "nan"},
        {"probability": "0.9"},
        {"dimensions": "1", "regions": "3", "probability": "0.4"},
    ],
)
def test_target_is_refused_when_an_option_makes_no_sense(options):
    with pytest.raises(UsageError):
        make_target(options, None)


def test_target_is_refused_when_a_policy_is_given():
    with pytest.raises(PolicyError, match="cannot use policy"):
        make_target({}, "onnx:a.onnx")
