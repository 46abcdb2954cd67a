import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.oracles import NONE, Below, Trajectories

some_examples = settings(max_examples=50, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)

NEAR = Below("range", 1.0, kind="collision")
OFF = Below("margin", 0.0, kind="off road")


def trajectories(ranges, margins=None, lengths=None):
    """Episodes with signals range and margin (n, t)."""
    ranges = np.array(ranges, np.float64)
    margins = np.ones_like(ranges) if margins is None else np.array(margins, np.float64)
    lengths = np.full(len(ranges), ranges.shape[1]) if lengths is None else np.array(lengths)
    signals = np.stack([ranges, margins], axis=2)
    return Trajectories(signals, ("range", "margin"), np.zeros_like(ranges), lengths)


def judged(oracle, episodes):
    verdicts = oracle.judge(episodes)
    return verdicts.kinds.tolist(), verdicts.steps.tolist()


@pytest.mark.parametrize(
    ("ranges", "step"),
    [([5, 4, 0.5, 0.1], 2), ([0.9, 5, 5, 5], 0), ([5, 5, 5, 0.99], 3), ([5, 1, 1, 1], NONE)],
)
def test_below_fires_at_the_first_step_under_its_threshold(ranges, step):
    kinds, steps = judged(NEAR, trajectories([ranges]))
    assert steps == [step]
    assert kinds == [NONE if step == NONE else 0]


def test_below_does_not_fire_when_the_signal_is_not_a_number():
    assert judged(NEAR, trajectories([[5, np.nan, 5]])) == ([NONE], [NONE])


def test_crashed_is_true_where_an_oracle_fired():
    assert NEAR.judge(trajectories([[5, 0], [5, 5]])).crashed.tolist() == [True, False]


@some_examples
@given(seeds)
def test_no_oracle_fires_behind_the_end_of_an_episode(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 10)
    ended = np.arange(6) >= lengths[:, None]
    episodes = trajectories(np.where(ended, -5.0, 5.0), np.where(ended, -5.0, 5.0), lengths)
    for oracle in (NEAR, OFF, NEAR | OFF, NEAR & OFF):
        assert not oracle.judge(episodes).crashed.any()


def test_either_takes_kind_and_step_of_the_earlier():
    episodes = trajectories(
        ranges=[[5, 5, 0], [5, 0, 5], [5, 5, 5], [0, 5, 5], [5, 5, 5]],
        margins=[[1, -1, 1], [1, 1, -1], [1, 1, -1], [1, 1, 1], [1, 1, 1]],
    )
    oracle = NEAR | OFF
    assert oracle.kinds == ("collision", "off road")
    assert judged(oracle, episodes) == ([1, 0, 1, 0, NONE], [1, 1, 2, 0, NONE])


def test_either_takes_the_first_when_both_fire_at_once():
    assert judged(OFF | NEAR, trajectories([[5, 0]], [[1, -1]])) == ([0], [1])


def test_both_fire_at_the_later_step():
    episodes = trajectories(
        ranges=[[5, 0, 5], [5, 5, 0], [5, 0, 5], [5, 5, 5]],
        margins=[[1, 1, -1], [-1, 1, 1], [1, 1, 1], [-1, 1, 1]],
    )
    oracle = NEAR & OFF
    assert oracle.kinds == ("collision and off road",)
    assert judged(oracle, episodes) == ([0, 0, NONE, NONE], [2, 2, NONE, NONE])


def test_kinds_name_what_happened_when_oracles_are_nested():
    slow = Below("range", 4.0, kind="close call")
    oracle = (NEAR | OFF) & (OFF | slow)
    episodes = trajectories(
        ranges=[[5, 0.5, 5, 5], [5, 5, 5, 3], [5, 5, 0.5, 5]],
        margins=[[1, 1, 1, 1], [1, -1, 1, 1], [1, 1, 1, 1]],
    )
    verdicts = oracle.judge(episodes)
    assert [oracle.kinds[kind] for kind in verdicts.kinds] == [
        "collision and close call",
        "off road and off road",
        "collision and close call",
    ]
    assert verdicts.steps.tolist() == [1, 1, 2]


@some_examples
@given(seeds)
def test_composed_verdicts_follow_from_their_parts(seed):
    rng = np.random.default_rng(seed)
    episodes = trajectories(
        rng.choice([0.0, 5.0], (20, 6), p=[0.2, 0.8]),
        rng.choice([-1.0, 1.0], (20, 6), p=[0.2, 0.8]),
        rng.integers(1, 7, 20),
    )
    one, two = NEAR.judge(episodes), OFF.judge(episodes)
    either, both = (NEAR | OFF).judge(episodes), (NEAR & OFF).judge(episodes)
    never = 99
    first = np.where(one.crashed, one.steps, never)
    second = np.where(two.crashed, two.steps, never)
    np.testing.assert_array_equal(np.where(either.crashed, either.steps, never), np.minimum(first, second))
    np.testing.assert_array_equal(np.where(both.crashed, both.steps, never), np.maximum(first, second))
