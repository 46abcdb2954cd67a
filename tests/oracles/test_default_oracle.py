from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import UsageError
from policyfuzz.oracles import NominalEpisodes, Return, canonical, default_oracle, parse_oracle
from policyfuzz.oracles.defaults import round_between

some_examples = settings(max_examples=200, deadline=None, derandomize=True)


def bound_in(text):
    """The number of a condition like return<2.9."""
    condition: Any = parse_oracle(text)
    return condition.number


def nominal(returns, terminated=True, truncated=False, lengths=101, **rest):
    returns = np.array(returns, np.float64)
    return NominalEpisodes(
        returns,
        np.broadcast_to(np.array(lengths), returns.shape),
        np.broadcast_to(np.array(terminated), returns.shape),
        np.broadcast_to(np.array(truncated), returns.shape),
        **rest,
    )


def gaussian(count, mean=200.0, spread=20.0):
    return np.random.default_rng(0).normal(mean, spread, count)


@pytest.mark.parametrize("key", ["is_success", "success"])
def test_success_is_what_counts_where_the_environment_reports_it(key):
    chosen = default_oracle(nominal([5, 3, 1], info={"speed": np.ones(3), key: np.array([1, np.nan, 0])}))
    assert chosen.text == f"!info.{key}"
    assert "1 of 3 nominal episodes" in chosen.reason


def test_success_is_no_oracle_where_there_never_is_any():
    assert "info" not in default_oracle(nominal(gaussian(50), info={"is_success": np.zeros(50)})).text


def test_an_early_end_is_a_crash_where_most_episodes_run_to_the_time_limit():
    truncated = np.arange(20) >= 4
    returns = np.where(truncated, 500, 90)
    chosen = default_oracle(nominal(returns, ~truncated, truncated, returns + 1))
    assert chosen.text == "terminated"
    assert "16 of 20 nominal episodes run to their time limit (500 steps)" in chosen.reason


def test_the_return_counts_too_where_no_episode_was_seen_to_end_early():
    chosen = default_oracle(nominal([500.0] * 20, terminated=False, truncated=True))
    assert chosen.text == "terminated | return<450"
    at_once = default_oracle(nominal([500.0] * 20, terminated=True, truncated=True))
    assert at_once.text == chosen.text


def test_an_early_end_is_no_crash_where_it_pays():
    truncated = np.arange(20) >= 4
    chosen = default_oracle(nominal(np.where(truncated, -200, 10), ~truncated, truncated))
    assert chosen.text == "truncated"
    assert "4 of 20 nominal episodes end before their time limit" in chosen.reason


def test_an_early_end_is_no_crash_where_too_few_run_to_the_time_limit():
    truncated = np.arange(20) >= 5
    assert "terminated" not in default_oracle(nominal(gaussian(20), ~truncated, truncated)).text


def test_gaining_nothing_is_a_crash_where_some_gain_nothing_and_most_gain():
    chosen = default_oracle(nominal([1.0] * 70 + [0.0] * 30))
    assert chosen.text == "return<=0"
    assert "70 of 100 nominal episodes have a positive one" in chosen.reason


def test_gaining_nothing_is_a_crash_where_the_only_reward_comes_at_the_end():
    returns = np.linspace(0.9, 0.97, 30)
    assert default_oracle(nominal(returns, last_rewards=returns)).text == "return<=0"
    assert default_oracle(nominal(returns, last_rewards=returns / 2)).text != "return<=0"
    assert default_oracle(nominal(returns)).text != "return<=0"


def test_a_loss_is_a_crash_where_the_only_reward_comes_at_the_end():
    returns = np.array([1.0] * 10 + [0.0] * 3 + [-1.0] * 7)
    chosen = default_oracle(nominal(returns, last_rewards=returns))
    assert chosen.text == "return<0"
    assert "7 of 20 nominal episodes have a negative one" in chosen.reason


def test_episodes_of_one_step_are_not_taken_for_sparse_rewards():
    returns = np.linspace(3, 5, 30)
    assert default_oracle(nominal(returns, lengths=2, last_rewards=returns)).text == "return<2"


def test_the_lower_of_two_groups_of_returns_is_a_crash():
    returns = np.concatenate([gaussian(95, 250, 20), gaussian(5, -100, 20)])
    chosen = default_oracle(nominal(returns))
    np.testing.assert_array_equal(returns < bound_in(chosen.text), np.arange(100) >= 95)
    assert "5 of 100 nominal episodes" in chosen.reason


def test_the_lower_group_is_named_for_the_time_limit_where_that_made_it():
    late = np.arange(100) >= 95
    returns = np.where(late, -200.0, np.linspace(5, 10, 100))
    assert default_oracle(nominal(returns, ~late, late)).text == "truncated"
    assert default_oracle(nominal(returns)).text == "return<-100"


@pytest.mark.parametrize("lucky", [1, 51])
def test_what_most_episodes_do_is_no_crash(lucky):
    returns = np.concatenate([gaussian(100 - lucky, 10, 1), gaussian(lucky, 1000, 1)])
    number = bound_in(default_oracle(nominal(returns)).text)
    assert np.count_nonzero(returns < number) <= 49


def test_never_done_is_a_crash_where_each_step_costs_the_same():
    steps = np.arange(100, 130)
    chosen = default_oracle(nominal(1.0 - steps, lengths=steps + 1))
    assert chosen.text == "truncated"
    assert "30 of 30 nominal episodes end before a time limit cuts them, after 114.5 steps" in chosen.reason


def test_never_done_is_no_crash_where_long_episodes_are_the_better_ones():
    steps = np.arange(100, 130)
    assert default_oracle(nominal(1.0 * steps, lengths=steps + 1)).text == "return<86"


@pytest.mark.parametrize("count", [1, 2, 5, 50, 150])
def test_no_nominal_return_is_low_where_there_are_few(count):
    returns = gaussian(count)
    chosen = default_oracle(nominal(returns))
    assert not (returns < bound_in(chosen.text)).any()


def test_a_low_return_is_halfway_between_the_lowest_and_what_random_actions_earn():
    swings = np.linspace(
        -390, -120, 50
    )  # a pendulum: normal swing-ups cost more or less, hanging costs 1,200
    chosen = default_oracle(nominal(swings, False, True, 201), lambda: np.linspace(-1600, -800, 10))
    assert chosen.text == "terminated | return<-800"
    runner = np.linspace(5790, 5830, 50)  # a cheetah that hardly varies
    chosen = default_oracle(nominal(runner, False, True, 1001), lambda: np.array([-300.0, -280.0, -270.0]))
    assert chosen.text == "terminated | return<3000"
    assert "random actions earn -280" in chosen.reason


@pytest.mark.parametrize("earned", [[], [np.nan], [95.0] * 10, [250.0] * 10])
def test_a_low_return_is_twice_as_far_below_the_median_where_random_actions_say_nothing(earned):
    returns = np.linspace(100, 300, 51)
    number = bound_in(default_oracle(nominal(returns), lambda: np.array(earned)).text)
    assert -10 <= number <= 10
    assert bound_in(default_oracle(nominal(returns)).text) == number


def test_random_actions_are_not_run_where_the_return_does_not_matter():
    def never():
        raise AssertionError("they were run")

    assert default_oracle(nominal([1.0] * 70 + [0.0] * 30), never).text == "return<=0"


@some_examples
@given(st.lists(st.floats(-1e6, 1e6), min_size=20, max_size=60), st.floats(-1e6, 1e6))
def test_no_nominal_episode_is_called_a_failure_for_its_return(returns, chance):
    oracle: Any = parse_oracle(default_oracle(nominal(returns), lambda: np.array([chance])).text)
    if isinstance(oracle, Return) and oracle.number < min(returns):
        floor, median = min(returns), float(np.median(returns))
        assert floor - oracle.number >= 0.44 * min(
            floor - chance if chance < floor else np.inf, median - floor
        )


@pytest.mark.parametrize(("equal", "text"), [(500, "return<450"), (-100, "return<-110"), (0, "return<0")])
def test_a_tenth_below_is_a_crash_where_all_returns_are_equal(equal, text):
    chosen = default_oracle(nominal([float(equal)] * 30))
    assert chosen.text == text
    assert f"the usual return of 30 nominal episodes is {equal}" in chosen.reason


def test_equal_returns_leave_room_down_to_what_random_actions_earn():
    assert default_oracle(nominal([500.0] * 30), lambda: np.array([20.0])).text == "return<260"


def test_rounding_is_not_taken_for_a_difference():
    noise = 100 * (1 + 1e-15 * np.arange(30))
    assert default_oracle(nominal(noise)).text == "return<90"


@pytest.mark.parametrize("returns", [[], [1.0, np.nan], [np.inf, 1.0]])
def test_no_oracle_is_chosen_from_nothing(returns):
    with pytest.raises(UsageError, match="expected one or more with finite returns"):
        default_oracle(nominal(returns))


@some_examples
@given(
    st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=300),
    st.floats(0, 1),
    st.integers(0, 2**32 - 1),
)
def test_the_default_can_be_read_and_calls_fewer_than_half_of_the_returns_low(returns, share, seed):
    rng = np.random.default_rng(seed)
    truncated = rng.random(len(returns)) < share
    chosen = default_oracle(nominal(returns, rng.random(len(returns)) < 0.5, truncated))
    assert canonical(chosen.text) == chosen.text
    oracle = parse_oracle(chosen.text)
    if isinstance(oracle, Return):
        low = (
            np.array(returns) < oracle.number if oracle.symbol == "<" else np.array(returns) <= oracle.number
        )
        assert 2 * np.count_nonzero(low) <= len(returns)


@some_examples
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e3))
def test_a_tidy_number_lies_between_its_bounds(low, width):
    assert low <= round_between(low, low + width) <= low + width


@pytest.mark.parametrize(
    ("low", "high", "number"),
    [(-160, -40, -100), (86.4, 91.2, 90), (0.22, 0.28, 0.25), (494, 496, 495), (3, 3, 3), (-0.4, 0.3, 0)],
)
def test_a_tidy_number_has_few_digits(low, high, number):
    assert round_between(low, high) == number
