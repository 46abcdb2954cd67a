from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyfuzz.campaign import outcomes
from policyfuzz.campaign.outcomes import OutcomeSet, outcome_hashes
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import RAISED, EpisodeError
from policyfuzz.core.oracle import Verdicts

CRASH = 3


def crashes(states, step=CRASH, kind=0, margin=-0.5):
    """Episodes with `states` (n, t, k) that all crash at `step`."""
    count, length, _ = states.shape
    verdicts = Verdicts(np.full(count, kind), np.full(count, step), np.full(count, margin))
    return Executions(np.arange(float(count)), np.full(count, length), states, verdicts)


def hashes(executions):
    return outcome_hashes(executions, np.arange(len(executions)))


@pytest.fixture
def states():
    return np.random.default_rng(0).normal(size=(20, 8, 2))


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=12), max_size=12), st.integers(1, 10), st.integers(0, 12)
)
def test_set_of_outcomes_answers_as_a_set_does(batches, most_recent, restored_at):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outcomes, "_RECENT", most_recent)
        found, known = OutcomeSet(), set()
        for number, batch in enumerate(batches):
            if number == restored_at:
                found = OutcomeSet()
                found.restore(np.array(sorted(known), np.int64))
            expected = []
            for value in batch:
                expected.append(value in known)
                known.add(value)
            assert found.add(np.array(batch, np.int64)).tolist() == expected


def test_set_of_outcomes_answers_as_a_set_does_when_there_are_many():
    values = np.random.default_rng(0).integers(0, 12_000, 20_000)
    found, known, expected = OutcomeSet(), set(), []
    for value in values.tolist():
        expected.append(value in known)
        known.add(value)
    got = np.concatenate([found.add(part) for part in np.array_split(values, 9)])
    np.testing.assert_array_equal(got, expected)


def test_outcome_is_the_same_whatever_comes_after_the_crash(states):
    others = states.copy()
    others[:, CRASH + 1 :] = 7.0
    shorter = replace(crashes(states[:, : CRASH + 1].copy()))
    np.testing.assert_array_equal(hashes(crashes(others)), hashes(crashes(states)))
    np.testing.assert_array_equal(hashes(shorter), hashes(crashes(states)))


@pytest.mark.parametrize("step", range(CRASH + 1))
def test_outcome_differs_when_a_state_before_the_crash_does(states, step):
    others = states.copy()
    others[:, step, 1] = np.nextafter(others[:, step, 1], np.inf)
    assert (hashes(crashes(others)) != hashes(crashes(states))).all()


@pytest.mark.parametrize("change", [{"step": CRASH - 1}, {"kind": 1}], ids=str)
def test_outcome_differs_when_the_verdict_does(states, change):
    assert (hashes(crashes(states, **change)) != hashes(crashes(states))).all()


def test_outcome_does_not_depend_on_the_rest_of_the_batch(states):
    together = crashes(states)
    alone = [hashes(together[np.array([row])])[0] for row in range(len(together))]
    np.testing.assert_array_equal(hashes(together), alone)
    assert len(set(alone)) == len(alone)
    assert outcome_hashes(together, np.array([4, 2])).tolist() == [alone[4], alone[2]]


def test_outcome_of_a_failed_episode_is_its_error(states):
    same = np.repeat(states[:1], 3, axis=0)
    texts = ("no map", "no map", "no road")
    errors = {row: EpisodeError(RAISED, CRASH, text) for row, text in enumerate(texts)}
    first, second, third = hashes(replace(crashes(same), errors=errors)).tolist()
    assert first == second != third


def test_outcomes_can_be_stored(states):
    found = hashes(crashes(np.random.default_rng(1).normal(size=(500, 8, 2))))
    assert found.dtype == np.int64
    assert (found >= 0).all()


def test_outcome_of_a_crash_that_did_not_happen_again_is_no_repeat():
    known = OutcomeSet()
    known.add(np.arange(5000))  # some are sorted in, some are recent
    for value in (3, 4999):
        known.discard(value)
        assert known.add(np.array([value, value])).tolist() == [False, True]
