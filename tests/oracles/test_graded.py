"""Oracles that only say yes or no, graded by signals beside them."""

from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.core.interfaces import RAISED, EpisodeError
from policyfuzz.oracles import (
    Below,
    Graded,
    InfoTrue,
    Return,
    Reward,
    Terminated,
    TimeLeft,
    Trajectories,
    Truncated,
    WithKind,
    graded,
    parse_oracle,
)

STEPS = 8
TEXTS = [
    "terminated",
    "terminated as fell | return<-20",
    "truncated",
    "terminated & info.flag | truncated as late",
    "reward<=-12 as crash | truncated",
    "(terminated | info.speed>4) & reward<0",
    "nan | exception | out_of_space",
]


def with_signals(trajectories, **signals):
    """`trajectories` with further `signals` (n, t)."""
    columns = [trajectories.signals, *(values[:, :, None] for values in signals.values())]
    return replace(
        trajectories,
        signals=np.concatenate(columns, axis=2),
        names=(*trajectories.names, *signals),
    )


def random_signals(trajectories, seed):
    """The same with a room that has nothing to do with the verdict, unknown now and then, and the rest."""
    rng, shape = np.random.default_rng(seed), trajectories.rewards.shape
    room = np.where(rng.random(shape) < 0.1, np.nan, rng.normal(size=shape))
    return with_signals(trajectories, room=room, impact=rng.random(shape), way=rng.random(shape))


def terminated_at_the_end(**signals):
    """One episode that ends by itself, with these `signals` (t,)."""
    values = {name: np.array([column], np.float64) for name, column in signals.items()}
    steps = len(next(iter(signals.values())))
    ends = np.zeros((1, steps, 2))
    ends[0, -1, 0] = 1
    bare = Trajectories(ends, ("terminated", "truncated"), np.zeros((1, steps)), np.array([steps]))
    return with_signals(bare, **values)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("failure", [None, Terminated(), Reward("<=", -20.0)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_grading_changes_no_crash(random_episodes, text, failure, seed):
    trajectories = random_signals(random_episodes(seed, count=200), seed)
    plain = parse_oracle(text)
    oracle = graded(plain, failure, limit=STEPS)
    before, after = plain.judge(trajectories), oracle.judge(trajectories)
    assert oracle.kinds == plain.kinds
    np.testing.assert_array_equal(after.kinds, before.kinds)
    np.testing.assert_array_equal(after.steps, before.steps)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("failure", [None, Terminated(), Reward("<=", -20.0)], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_margin_is_never_on_the_wrong_side_of_zero(random_episodes, text, failure, seed):
    trajectories = random_signals(random_episodes(seed, count=200), seed)
    verdicts = graded(parse_oracle(text), failure, limit=STEPS).judge(trajectories)
    assert not (verdicts.margins[verdicts.crashed] > 0).any()
    assert not (verdicts.margins[~verdicts.crashed] < 0).any()


@pytest.mark.parametrize("text", TEXTS)
def test_margin_does_not_depend_on_what_lies_behind_the_end(random_episodes, with_padding, text):
    trajectories = random_signals(random_episodes(1), 1)
    oracle = graded(parse_oracle(text), Terminated(), limit=STEPS)
    first, second = (oracle.judge(with_padding(trajectories, value, 2)).margins for value in (-50.0, 50.0))
    np.testing.assert_array_equal(first, second)


def test_margin_is_the_least_room_when_nothing_happens(episodes):
    calm = with_signals(episodes({"info.speed": [1, 1, 1]}), room=np.array([[0.9, 0.2, 0.7]]))
    assert Graded(Terminated()).judge(calm).margins.tolist() == [0.2]


def test_margin_of_a_crash_is_how_far_it_went_beyond_and_how_hard_it_was():
    fallen = terminated_at_the_end(room=[0.5, 0.1, -0.3])
    assert Graded(Terminated()).judge(fallen).margins.tolist() == [-0.3]
    # the impact of the state before: in the last one everything lies still
    hard = terminated_at_the_end(room=[0.5, 0.1, 0.02], impact=[9.0, 2.0, 0.0])
    assert Graded(Terminated()).judge(hard).margins.tolist() == [-2.0]
    at_once = terminated_at_the_end(room=[0.0], impact=[1.0])
    assert Graded(Terminated()).judge(at_once).margins.tolist() == [-1.0]


def test_margin_is_that_of_the_oracle_where_no_signal_tells_more(random_episodes):
    trajectories, oracle = random_episodes(0), Below("info.speed", 1.0, "slow")
    np.testing.assert_array_equal(
        Graded(oracle).judge(trajectories).margins, oracle.judge(trajectories).margins
    )


def test_margin_is_unknown_where_the_room_is():
    unknown = terminated_at_the_end(room=[np.nan, np.nan])
    assert np.isnan(Graded(Terminated()).judge(unknown).margins).all()


def test_time_left_is_the_margin_of_an_episode_that_arrived(episodes):
    arrived = episodes({"terminated": [0, 0, 1]}, {"terminated": [0, 0, 0, 0, 1]})
    assert TimeLeft(4).judge(arrived).margins.tolist() == [0.5, 0.0]


def test_way_to_the_goal_is_the_margin_of_an_episode_that_ran_out_of_time(episodes):
    late = episodes({"terminated": [0, 0, 0]}, {"terminated": [0, 0, 0]})
    assert TimeLeft(2).judge(late).margins.tolist() == [0.0, 0.0]
    # a start beside the goal is no merit of the policy
    told = with_signals(late, way=np.array([[1.0, 0.25, 0.5], [0.1, 0.75, 0.75]]))
    assert TimeLeft(2).judge(told).margins.tolist() == [-0.25, -0.75]


def test_time_left_is_unknown_where_an_error_ended_the_episode(episodes):
    broken = episodes({"terminated": [0, 0]}, errors={0: EpisodeError(RAISED, 1, "")})
    assert np.isnan(TimeLeft(4).judge(broken).margins).all()


@pytest.mark.parametrize(
    ("oracle", "failure", "expected"),
    [
        (Terminated(), Terminated(), Graded(Terminated())),
        (Terminated(), None, Terminated()),
        (Terminated(), Reward("<=", -100.0), Terminated()),  # it ends where it lands, too
        (Reward("<=", -99.5), Reward("<=", -100.0), Graded(Reward("<=", -99.5))),
        (Reward("<", -60.0), Reward("<=", -100.0), Graded(Reward("<", -60.0))),
        (Reward("<", -1.0), Reward("<=", -100.0), Reward("<", -1.0)),
        (Reward("<", -200.0), Reward("<=", -100.0), Reward("<", -200.0)),
        (Reward(">", -99.5), Reward("<=", -100.0), Reward(">", -99.5)),
        (Truncated(), None, TimeLeft(7)),
        (
            WithKind(Terminated(), "fell") | InfoTrue("hit") & Truncated(),
            Terminated(),
            WithKind(Graded(Terminated()), "fell") | InfoTrue("hit") & TimeLeft(7),
        ),
        (Return("<", 3.0), Terminated(), Return("<", 3.0)),
    ],
    ids=str,
)
def test_only_what_means_the_failure_is_graded(oracle, failure, expected):
    assert graded(oracle, failure, limit=7) == expected
