import numpy as np
import pytest

from policyfuzz.core.errors import UsageError
from policyfuzz.oracles import NONE, Info, InfoNeverTrue, InfoTrue, OutOfSpace, Reward, WithKind

NAN = np.nan


def steps(oracle, trajectories):
    verdicts = oracle.judge(trajectories)
    assert ((verdicts.kinds == NONE) == (verdicts.steps == NONE)).all()
    return verdicts.steps.tolist()


def test_reward_fires_at_the_first_step_that_compares_so(episodes):
    batch = episodes({"rewards": [0, 1, -50, -60]}, {"rewards": [0, 1, 1]}, {"rewards": [0, 0, -51]})
    assert steps(Reward("<", -50), batch) == [3, NONE, 2]
    assert steps(Reward("<=", -50), batch) == [2, NONE, 2]
    assert steps(Reward(">", 0), batch) == [1, 1, NONE]


def test_the_initial_state_has_no_reward_to_compare(episodes):
    assert steps(Reward("<=", 0), episodes({"rewards": [0, 1, 1]}, {"rewards": [0, 1, 0]})) == [NONE, 2]


def test_info_is_compared_where_it_is_there(episodes):
    batch = episodes({"info.speed": [NAN, 3, 7]}, {"info.speed": [8, NAN, 1]}, {"info.speed": [NAN, NAN]})
    assert steps(Info("speed", ">", 5), batch) == [2, 0, NONE]
    assert steps(Info("speed", "<", 5), batch) == [1, 2, NONE]
    assert steps(Info("speed", "==", 7), batch) == [2, NONE, NONE]


def test_an_info_flag_fires_at_the_first_step_at_which_it_is_true(episodes):
    batch = episodes({"info.flag": [0, 0, 1, 1]}, {"info.flag": [NAN, 0, NAN]}, {"info.flag": [0, -1, 0]})
    assert steps(InfoTrue("flag"), batch) == [2, NONE, 1]


def test_a_negated_flag_fires_in_the_last_state_where_it_never_was_true(episodes):
    batch = episodes(
        {"info.flag": [0, 0, 0, 0]},
        {"info.flag": [NAN, NAN, 1]},
        {"info.flag": [NAN, NAN]},
        {"info.flag": [1, 0, 0]},
    )
    assert steps(InfoNeverTrue("flag"), batch) == [3, NONE, 1, NONE]


def test_out_of_space_fires_at_the_first_such_observation(episodes):
    batch = episodes({"out_of_space": [0, 0, 1]}, {"out_of_space": [1, 0]}, {"out_of_space": [0, 0]})
    assert steps(OutOfSpace(), batch) == [2, 0, NONE]


def test_a_signal_that_nobody_records_is_named(episodes):
    with pytest.raises(UsageError, match=r"unknown signal 'info\.sped'") as caught:
        InfoTrue("sped").judge(episodes({"info.speed": [0]}))
    assert "info.speed" in caught.value.hint


@pytest.mark.parametrize(
    ("oracle", "kind"),
    [
        (Reward("<", -50), "reward below -50"),
        (Info("speed", ">=", 2.5), "info.speed at least 2.5"),
        (InfoTrue("collision"), "info.collision"),
        (InfoNeverTrue("is_success"), "never info.is_success"),
        (OutOfSpace(), "out of space"),
    ],
)
def test_kinds_are_words_for_readers(oracle, kind):
    assert oracle.kinds == (kind,)


def test_a_name_makes_one_kind_of_all_that_an_oracle_finds(episodes):
    batch = episodes({"out_of_space": [0, 0, 1]}, {"info.flag": [0, 1, 0]}, {"info.flag": [0]})
    oracle = WithKind(OutOfSpace() | InfoTrue("flag"), "crash")
    assert oracle.kinds == ("crash",)
    verdicts = oracle.judge(batch)
    assert verdicts.kinds.tolist() == [0, 0, NONE]
    assert verdicts.steps.tolist() == [2, 1, NONE]
