"""How far episodes stayed from a crash."""

import numpy as np
import pytest

from policyfuzz.oracles import (
    NONE,
    AllOf,
    AnyOf,
    Below,
    Info,
    InfoNeverTrue,
    InfoTrue,
    OutOfSpace,
    Return,
    Reward,
    Terminated,
    Truncated,
    Verdicts,
    WithKind,
)
from policyfuzz.oracles.conditions import SYMBOLS

TELLING = [
    Below("info.speed", 1.0, "slow"),
    *(Return(symbol, 3.0) for symbol in SYMBOLS),
    *(Reward(symbol, 3.0) for symbol in SYMBOLS),
    *(Info("speed", symbol, 1.0) for symbol in SYMBOLS),
]


@pytest.mark.parametrize(
    ("oracle", "margins"),
    [
        (Below("info.speed", 3.0, "slow"), [1.0, -2.0]),
        (Info("speed", "<", 3.0), [1.0, -2.0]),
        (Info("speed", ">=", 10.0), [4.0, 7.0]),
        (Info("speed", "==", 5.5), [0.5, 2.5]),
        (Reward("<", -1.0), [0.5, -2.0]),
        (Reward(">", 4.0), [2.0, 7.0]),
        (Return("<", 0.0), [1.5, -6.0]),
        (Return(">=", 2.0), [0.5, 8.0]),
        (Return("==", 1.0), [0.5, 7.0]),
    ],
    ids=str,
)
def test_margin_is_the_least_distance_to_a_crash_of_all_that_counts(episodes, oracle, margins):
    trajectories = episodes(
        {"info.speed": [5.0, 4.0, 6.0], "rewards": [0.0, 2.0, -0.5]},
        {"info.speed": [3.0, 1.0], "rewards": [0.0, -3.0]},
    )
    trajectories.rewards[1] = [0.0, -6.0, 99.0] if isinstance(oracle, Return) else [0.0, -3.0, 99.0]
    np.testing.assert_allclose(oracle.judge(trajectories).margins, margins)


@pytest.mark.parametrize("oracle", TELLING, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_margin_is_above_zero_only_where_nothing_crashed(random_episodes, oracle, seed):
    trajectories = random_episodes(seed, count=200)
    verdicts, sound = oracle.judge(trajectories), trajectories.sound
    assert verdicts.crashed.any() or getattr(oracle, "symbol", "") == "=="
    assert (verdicts.margins[verdicts.crashed] <= 0).all()
    assert not (verdicts.margins[~verdicts.crashed & sound] < 0).any()
    assert np.isfinite(verdicts.margins[sound]).sum() > 50


@pytest.mark.parametrize("oracle", TELLING, ids=str)
def test_margin_does_not_depend_on_what_lies_behind_the_end(random_episodes, with_padding, oracle):
    trajectories = random_episodes(1)
    first, second = (oracle.judge(with_padding(trajectories, value, 2)).margins for value in (-50.0, 50.0))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    "oracle", [Terminated(), Truncated(), InfoTrue("flag"), InfoNeverTrue("flag"), OutOfSpace()]
)
def test_margin_is_unknown_where_something_happens_or_does_not(random_episodes, oracle):
    verdicts = oracle.judge(random_episodes(0))
    assert verdicts.margins.shape == verdicts.kinds.shape
    assert np.isnan(verdicts.margins).all()


def test_margin_is_unknown_while_a_signal_is_missing(episodes):
    missing = episodes({"info.speed": [np.nan, np.nan]}, {"info.speed": [np.nan, 4.0]})
    np.testing.assert_array_equal(Info("speed", "<", 3.0).judge(missing).margins, [np.nan, 1.0])


def test_either_of_two_is_as_near_as_the_nearer_and_both_as_the_farther(random_episodes):
    one, two, trajectories = Info("speed", ">", 2.0), Return("<", -5.0), random_episodes(0)
    first, second = one.judge(trajectories).margins, two.judge(trajectories).margins
    either, both = AnyOf(one, two).judge(trajectories).margins, AllOf(one, two).judge(trajectories).margins
    known = ~np.isnan(first)
    assert known.any()
    np.testing.assert_array_equal(either[known], np.minimum(first, second)[known])
    np.testing.assert_array_equal(both[known], np.maximum(first, second)[known])


def test_margin_of_two_is_the_known_one_unless_that_contradicts_the_verdict(episodes):
    silent = episodes(
        {"info.speed": [np.nan, np.nan], "rewards": [0, -9.0]},
        {"info.speed": [np.nan, np.nan], "rewards": [0, 9.0]},
    )
    one, two = Info("speed", ">", 2.0), Return("<", -5.0)
    assert AnyOf(one, two).judge(silent).margins.tolist() == [-4.0, 14.0]
    assert AllOf(one, two).judge(silent).margins.tolist() == [0.0, 14.0]


def test_either_of_two_is_not_near_but_there_when_the_one_that_cannot_tell_fires(episodes):
    flagged = episodes({"info.flag": [0, 1], "rewards": [0, 3.0]})
    assert AnyOf(InfoTrue("flag"), Return("<", -5.0)).judge(flagged).margins.tolist() == [0.0]


def test_margin_is_unknown_where_an_error_ended_the_episode(random_episodes):
    trajectories = random_episodes(0)
    assert np.isnan(Return("<", 3.0).judge(trajectories).margins[~trajectories.sound]).all()


def test_name_of_the_users_own_keeps_the_margin(random_episodes):
    trajectories, oracle = random_episodes(0), Return("<", -5.0)
    named = WithKind(oracle, "poor").judge(trajectories)
    np.testing.assert_array_equal(named.margins, oracle.judge(trajectories).margins)


def test_margins_follow_their_rows_and_may_be_left_out():
    verdicts = Verdicts(np.array([0, NONE]), np.array([3, NONE]), np.array([-1.0, 2.0]))
    assert verdicts[np.array([1])].margins.tolist() == [2.0]
    assert np.isnan(Verdicts(np.array([0, NONE]), np.array([3, NONE])).margins).all()
