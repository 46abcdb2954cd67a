import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.search.bandit import (
    LEAST_GROUP_SHARE,
    RANDOM_SHARE,
    SEEKERS,
    WALKERS,
    Bandit,
)
from policyfuzz.search.emitters import Emitter

some_examples = settings(max_examples=60, deadline=None, derandomize=True)


def taught(rates, trials=1000):
    """A bandit that has seen every emitter often, with these mean rewards (0.1 where not given)."""
    bandit = Bandit()
    emitters = np.repeat(np.arange(len(Emitter)), trials)
    bandit.learn(emitters, np.array([rates.get(Emitter(one), 0.1) for one in emitters.tolist()]))
    return bandit


@some_examples
@given(
    st.lists(st.tuples(st.sampled_from(list(Emitter)), st.floats(0, 1)), max_size=200),
    st.integers(0, 3),
)
def test_shares_add_up_to_one_and_a_fifth_is_random(experience, findings):
    bandit = Bandit()
    bandit.learn(
        np.array([int(one) for one, _ in experience], np.int64),
        np.array([reward for _, reward in experience]),
    )
    shares = bandit.shares(findings, findings)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    assert (shares >= 0).all()
    assert shares[Emitter.RANDOM] == RANDOM_SHARE == 0.2
    assert (shares[[one for one in SEEKERS if findings or one != Emitter.SCREEN]] > 0).all()
    assert shares[SEEKERS].sum() >= (1 - RANDOM_SHARE) * LEAST_GROUP_SHARE - 1e-12


def test_nobody_walks_before_there_is_a_finding():
    assert (taught({Emitter.STEP: 1.0}).shares(0, 0)[WALKERS] == 0).all()


def test_draws_are_not_screened_before_there_is_a_finding():
    bandit = taught({Emitter.SCREEN: 1.0})
    assert bandit.shares(0, 0)[Emitter.SCREEN] == 0
    assert bandit.shares(1, 1)[Emitter.SCREEN] == bandit.shares(1, 1)[SEEKERS].max()


def test_nobody_walks_between_findings_when_there_is_only_one():
    bandit = taught({Emitter.CROSS_FINDINGS: 1.0, Emitter.SPAN_FINDINGS: 1.0})
    one, two = bandit.shares(1, 1), bandit.shares(2, 1)
    assert (one[[Emitter.CROSS_FINDINGS, Emitter.SPAN_FINDINGS]] == 0).all()
    assert (one[[Emitter.STEP, Emitter.STRIDE, Emitter.LEAP]] > 0).all()
    assert (two[WALKERS] > 0).all()


@pytest.mark.parametrize("emitter", [*SEEKERS, *WALKERS])
def test_emitter_that_finds_more_gets_more(emitter):
    group = SEEKERS if emitter in SEEKERS else WALKERS
    shares, before = taught({emitter: 0.4}).shares(9, 99), taught({}).shares(9, 99)
    assert shares[emitter] > before[emitter]
    others = [one for one in group if one != emitter]
    assert (shares[others] < shares[emitter]).all()
    assert (shares[group] > 0).all(), "everybody gets a little"


@pytest.mark.parametrize("group", [SEEKERS, WALKERS], ids=["seekers", "walkers"])
def test_group_keeps_a_share_however_little_it_finds(group):
    others = [one for one in (*SEEKERS, *WALKERS) if one not in group]
    shares = taught(dict.fromkeys(others, 1.0) | dict.fromkeys(group, 0.0)).shares(9, 99)
    assert shares[group].sum() == pytest.approx((1 - RANDOM_SHARE) * LEAST_GROUP_SHARE)


def test_walkers_get_more_the_more_lineages_there_are_to_walk_through():
    bandit = taught(dict.fromkeys(WALKERS, 1.0) | dict.fromkeys(SEEKERS, 0.01))
    walking = [bandit.shares(1000, lineages)[WALKERS].sum() for lineages in (1, 2, 4, 7, 8, 1000)]
    assert walking[:4] == sorted(set(walking[:4])), "few lineages are soon walked through"
    assert walking[0] == pytest.approx((1 - RANDOM_SHARE) / 5)
    assert walking[-1] == pytest.approx((1 - RANDOM_SHARE) * (1 - LEAST_GROUP_SHARE))


def test_share_of_climbers_goes_to_other_seekers_while_all_climbers_wait():
    bandit = taught({Emitter.CLIMB: 0.5})
    shares = bandit.shares(1000, 1, can_climb=False)
    assert shares[Emitter.CLIMB] == 0
    assert shares[WALKERS].sum() == pytest.approx((1 - RANDOM_SHARE) / 5)
    assert shares.sum() == pytest.approx(1)


def test_newer_experience_counts_more_than_older():
    bandit = taught({Emitter.STEP: 0.5, Emitter.LEAP: 0.0})
    for _ in range(40):
        emitters = np.repeat(np.arange(len(Emitter)), 100)
        bandit.learn(emitters, np.where(emitters == Emitter.LEAP, 0.4, 0.0))
    shares = bandit.shares(9, 99)
    assert shares[Emitter.LEAP] > 2 * shares[Emitter.STEP]


def test_state_of_a_version_with_fewer_emitters_is_continued():
    state = {name: values[:-1] for name, values in taught({Emitter.STEP: 0.3}).state().items()}
    bandit = Bandit.from_state(state)
    np.testing.assert_array_equal(bandit.trials, [*state["trials"], 0.0])
    assert (bandit.shares(9, 99) > 0).all()


def test_bandit_is_the_same_after_a_round_trip_through_its_state():
    bandit = taught({Emitter.STEP: 0.3})
    np.testing.assert_array_equal(Bandit.from_state(bandit.state()).shares(9, 99), bandit.shares(9, 99))
