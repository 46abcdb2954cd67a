import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import UnhealthyTarget
from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.search.algorithm import Validator

some_examples = settings(max_examples=30, deadline=None, derandomize=True)

LINE = (Real("x", 0.0, 1.0),)


def below(limit):
    return lambda inputs: inputs[:, 0] < limit


class Draws:
    """Draws uniform inputs, and parents that are recognisable from the input; remembers all of them."""

    def __init__(self, seed=0):
        self._rng = np.random.default_rng(seed)
        self.inputs = np.empty((0, 1))

    def __call__(self, count):
        inputs = self._rng.random((count, 1))
        self.inputs = np.concatenate([self.inputs, inputs])
        return (inputs[:, 0] * 1e6).astype(np.int64), inputs


@some_examples
@given(st.integers(0, 50), st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.integers(0, 1000))
def test_all_filled_inputs_are_valid_and_solvable(wanted, valid, solvable, seed):
    validator = Validator(InputSpace(LINE, below(valid)), below(solvable))
    parents, inputs = validator.fill(wanted, Draws(seed))
    assert inputs.shape == (wanted, 1)
    assert (inputs < min(valid, solvable)).all()
    np.testing.assert_array_equal(parents, (inputs[:, 0] * 1e6).astype(np.int64))


@some_examples
@given(st.integers(1, 50), st.floats(0.05, 1.0), st.floats(0.05, 1.0), st.integers(0, 1000))
def test_every_draw_is_counted_as_good_invalid_or_unsolvable(wanted, valid, solvable, seed):
    validator, draws = Validator(InputSpace(LINE, below(valid)), below(solvable)), Draws(seed)
    validator.fill(wanted, draws)
    is_valid = draws.inputs[:, 0] < valid
    is_solvable = draws.inputs[:, 0] < solvable
    assert validator.drawn == len(draws.inputs)
    assert validator.invalid == np.count_nonzero(~is_valid)
    assert validator.unsolvable == np.count_nonzero(is_valid & ~is_solvable)
    assert validator.valid_rate == pytest.approx((is_valid & is_solvable).mean())


def test_counts_go_on_when_more_is_filled():
    validator = Validator(InputSpace(LINE), None)
    validator.fill(10, Draws())
    validator.fill(5, Draws())
    assert validator.drawn == 15


def test_valid_rate_is_one_when_nothing_was_drawn():
    assert Validator(InputSpace(LINE), None).valid_rate == 1.0


def test_solvable_is_asked_about_valid_inputs_only():
    asked = []

    def solvable(inputs):
        asked.append(inputs)
        return np.ones(len(inputs), np.bool_)

    Validator(InputSpace(LINE, below(0.5)), solvable).fill(50, Draws())
    assert (np.concatenate(asked) < 0.5).all()


def test_nothing_is_drawn_when_nothing_is_wanted():
    draws = Draws()
    parents, inputs = Validator(InputSpace(LINE), None).fill(0, draws)
    assert len(parents) == len(inputs) == len(draws.inputs) == 0


@pytest.mark.parametrize(("valid", "solvable"), [(0.0, 1.0), (1.0, 0.0)])
def test_target_is_unhealthy_when_no_input_is_good(valid, solvable):
    validator = Validator(InputSpace(LINE, below(valid)), below(solvable))
    with pytest.raises(UnhealthyTarget, match="only 0 were valid and solvable"):
        validator.fill(3, Draws())


def test_target_is_healthy_when_one_input_in_a_hundred_is_good():
    _, inputs = Validator(InputSpace(LINE, below(0.01)), None).fill(20, Draws())
    assert len(inputs) == 20


def step_by(rng):
    return lambda origins: origins + rng.uniform(-0.2, 0.2, origins.shape)


def test_near_gives_good_inputs_beside_their_origins():
    validator = Validator(InputSpace(LINE, below(0.5)), below(0.4))
    origins = np.linspace(0.0, 0.45, 30)[:, None]
    copy = origins.copy()
    inputs, found = validator.near(origins, step_by(np.random.default_rng(0)))
    assert found.all()
    assert ((inputs >= 0) & (inputs < 0.4)).all()
    assert np.abs(inputs - origins).max() <= 0.2
    np.testing.assert_array_equal(origins, copy)


def test_near_says_where_it_found_nothing():
    validator = Validator(InputSpace(LINE, below(0.3)), None)
    origins = np.array([[0.1], [0.9], [0.2], [0.8]])
    inputs, found = validator.near(origins, step_by(np.random.default_rng(0)))
    assert found.tolist() == [True, False, True, False]
    assert inputs.shape == (4, 1)


def test_near_counts_every_try():
    validator = Validator(InputSpace(LINE, below(0.0)), None)
    validator.near(np.array([[0.5]]), step_by(np.random.default_rng(0)))
    assert validator.drawn == validator.invalid > 10


def test_near_finds_nothing_when_there_are_no_origins():
    inputs, found = Validator(InputSpace(LINE), None).near(
        np.empty((0, 1)), step_by(np.random.default_rng(0))
    )
    assert len(inputs) == len(found) == 0
