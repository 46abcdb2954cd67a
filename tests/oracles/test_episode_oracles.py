import numpy as np
import pytest

from policyfuzz.core.errors import UsageError
from policyfuzz.oracles import NONE, Return, Terminated, Trajectories, Truncated


def judged(oracle, trajectories):
    verdicts = oracle.judge(trajectories)
    return verdicts.kinds.tolist(), verdicts.steps.tolist()


@pytest.fixture
def all_ends(episodes):
    """Terminated, truncated, both at once, cut by the horizon."""
    return episodes(
        {"terminated": [0, 0, 1]},
        {"truncated": [0, 0, 0, 1]},
        {"terminated": [0, 0, 0, 1], "truncated": [0, 0, 0, 1]},
        {"rewards": [0, 1, 1, 1]},
    )


def test_terminated_fires_where_the_environment_ends_before_the_time_limit(all_ends):
    assert judged(Terminated(), all_ends) == ([0, NONE, NONE, NONE], [2, NONE, NONE, NONE])


def test_truncated_fires_in_the_last_state_where_nothing_but_time_ended_the_episode(all_ends):
    assert judged(Truncated(), all_ends) == ([NONE, 0, NONE, 0], [NONE, 3, NONE, 3])


@pytest.mark.parametrize(
    ("symbol", "fires"),
    [("<", [1, 0, 0]), ("<=", [1, 1, 0]), (">", [0, 0, 1]), (">=", [0, 1, 1]), ("==", [0, 1, 0])],
)
def test_return_is_compared_in_the_last_state_of_each_episode(episodes, symbol, fires):
    batch = episodes({"rewards": [0, 1, 1, -3]}, {"rewards": [0, 2]}, {"rewards": [0, 2, 1]})
    _, steps = judged(Return(symbol, 2.0), batch)
    assert steps == [last if fired else NONE for fired, last in zip(fires, [3, 1, 2], strict=True)]


def test_return_is_summed_as_the_rollout_does_it_whatever_the_length_of_its_neighbours():
    rng = np.random.default_rng(1)
    rewards = rng.normal(0, 1, (1, 300))
    total = 0.0
    for reward in rewards[0]:
        total = 1.0 * total + reward
    assert total != rewards.sum()  # the order matters for these numbers
    for padding in (0, 1, 100, 1000):
        padded = np.pad(rewards, ((0, 0), (0, padding)))
        batch = Trajectories(np.zeros((*padded.shape, 0)), (), padded, np.array([300]))
        assert Return("==", total).judge(batch).crashed.all()


@pytest.mark.parametrize(
    ("oracle", "kind"),
    [
        (Return("<", 100), "return below 100"),
        (Return("<=", -99.5), "return at most -99.5"),
        (Return(">", 1e30), "return above 1e+30"),
    ],
)
def test_kinds_are_words_for_readers(oracle, kind):
    assert oracle.kinds == (kind,)


def test_a_comparison_that_is_none_is_refused():
    with pytest.raises(UsageError, match="unknown comparison '=<'"):
        Return("=<", 1.0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="finite"):
        Return("<", float("nan"))
