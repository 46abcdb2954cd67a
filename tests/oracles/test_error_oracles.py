import pytest

from policyfuzz.core.interfaces import ENDLESS, NUMBERS, RAISED, STATE, EpisodeError
from policyfuzz.oracles import NONE, Below, NotANumber, Raised, parse_oracle

OTHERS = (
    "terminated",
    "truncated",
    "return<1000",
    "return>-1000",
    "reward<1000",
    "out_of_space",
    "info.flag",
    "!info.flag",
    "info.speed>-1000",
    "terminated | truncated as ended",
    "reward<1000 & return<1000",
)


@pytest.fixture
def failed(episodes):
    """One episode for each kind of error, and a sound one; all show everything that oracles look for."""
    all_of_it = {
        "terminated": [1, 1, 1],
        "out_of_space": [1, 1, 1],
        "info.flag": [1, 1, 1],
        "info.speed": [1, 1, 1],
        "rewards": [0, 1, 1],
    }
    errors = {row: EpisodeError(kind, row, "") for row, kind in enumerate((RAISED, NUMBERS, ENDLESS, STATE))}
    return episodes(*[all_of_it] * 5, errors=errors)


def test_an_exception_is_found_at_its_step(failed):
    verdicts = Raised().judge(failed)
    assert verdicts.kinds.tolist() == [0, NONE, NONE, NONE, NONE]
    assert verdicts.steps.tolist() == [0, NONE, NONE, NONE, NONE]
    assert Raised().kinds == ("exception",)


def test_nan_is_found_at_its_step(failed):
    verdicts = NotANumber().judge(failed)
    assert verdicts.kinds.tolist() == [NONE, 0, NONE, NONE, NONE]
    assert verdicts.steps.tolist() == [NONE, 1, NONE, NONE, NONE]
    assert NotANumber().kinds == ("NaN",)


@pytest.mark.parametrize("text", OTHERS)
def test_other_oracles_are_silent_on_episodes_that_an_error_ended(failed, text):
    assert not parse_oracle(text).judge(failed).crashed[:4].any()


def test_a_threshold_is_silent_on_episodes_that_an_error_ended(failed):
    assert Below("info.speed", 2.0, kind="slow").judge(failed).crashed.tolist() == [False] * 4 + [True]


def test_errors_and_crashes_can_be_looked_for_at_once(failed):
    oracle = parse_oracle("exception | nan | terminated")
    assert [oracle.kinds[kind] for kind in oracle.judge(failed).kinds[[0, 1, 4]]] == [
        "exception",
        "NaN",
        "terminated",
    ]
