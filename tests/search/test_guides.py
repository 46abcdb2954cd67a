import numpy as np
import pytest

from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import DensitySettings, FreshnessSettings
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.oracles import NONE, Verdicts
from policyfuzz.search.guides import FreshnessGuide, ReturnGuide


def executions(states, returns=None):
    """Episodes of full length that did not crash."""
    count = len(states)
    nothing = np.full(count, NONE)
    returns = np.zeros(count) if returns is None else np.array(returns, np.float64)
    return Executions(returns, np.full(count, states.shape[1]), states, Verdicts(nothing, nothing))


def walks(rng, count, start=0.0):
    begin = start + rng.normal(size=(count, 1, 2))
    return begin + np.cumsum(0.2 * rng.normal(size=(count, 10, 2)), axis=1)


def guide_with(components=3, **freshness):
    return FreshnessGuide(DensitySettings(components=components), FreshnessSettings(**freshness))


def consider(guide, states, parent_returns=0.0):
    return guide.consider(executions(states), np.full(len(states), parent_returns), np.random.default_rng(0))


def test_return_guide_keeps_what_earned_less_than_its_parent():
    feedback = ReturnGuide().consider(
        executions(np.zeros((4, 1, 1)), returns=[1.0, 2.0, 3.0, 1.0]),
        np.array([2.0, 2.0, 2.0, np.nan]),
        np.random.default_rng(0),
    )
    assert feedback.keep.tolist() == [True, False, False, False]
    assert np.isnan(feedback.log_density).all()


def test_all_are_fresh_when_nothing_was_seen_before():
    guide = guide_with()
    feedback = consider(guide, walks(np.random.default_rng(0), 50))
    assert feedback.keep.all()
    assert np.isfinite(feedback.log_density).all()
    assert guide.fresh_share == 1.0


@pytest.mark.parametrize("quantile", [0.05, 0.3])
def test_about_a_quantile_is_fresh_when_the_world_does_not_change(quantile):
    rng, guide = np.random.default_rng(0), guide_with(quantile=quantile)
    consider(guide, walks(rng, 500), np.nan)
    shares = [consider(guide, walks(rng, 200)).keep.mean() for _ in range(20)]
    assert quantile / 2 < np.mean(shares) < 2 * quantile


@pytest.mark.parametrize("threshold", [-3.0, 0.01])
def test_what_lies_below_a_fixed_threshold_is_fresh(threshold):
    rng, guide = np.random.default_rng(0), guide_with(threshold=threshold)
    consider(guide, walks(rng, 100))
    for _ in range(3):
        feedback = consider(guide, walks(rng, 100))
        np.testing.assert_array_equal(feedback.keep, feedback.log_density < threshold)
        assert guide.threshold == threshold


def test_threshold_is_the_quantile_of_what_was_seen():
    rng, guide = np.random.default_rng(0), guide_with(quantile=0.25)
    seen = np.concatenate([consider(guide, walks(rng, 40)).log_density for _ in range(3)])
    assert guide.threshold == pytest.approx(np.quantile(seen, 0.25))


def test_threshold_forgets_what_is_older_than_its_memory():
    rng, guide = np.random.default_rng(0), guide_with(quantile=0.25, memory=60)
    seen = np.concatenate([consider(guide, walks(rng, 40)).log_density for _ in range(3)])
    assert guide.threshold == pytest.approx(np.quantile(seen[-60:], 0.25))
    assert len(guide.state()["recent"]) == 60


@pytest.mark.parametrize(
    ("name", "score"),
    [("mean", SequenceDensity.mean_log_density), ("transition", SequenceDensity.least_log_density)],
)
def test_scores_come_from_before_the_batch_was_learnt(name, score):
    rng, guide = np.random.default_rng(0), guide_with(score=name)
    consider(guide, walks(rng, 100))
    states = walks(rng, 50, start=2.0)
    before = score(guide.density, states, np.full(50, 10))
    np.testing.assert_array_equal(consider(guide, states, np.nan).log_density, before)


def test_samples_are_learnt_even_when_they_are_not_fresh():
    rng, guide = np.random.default_rng(0), guide_with(threshold=-1e300)
    consider(guide, walks(rng, 100), np.nan)
    consider(guide, walks(rng, 30), np.nan)
    assert guide.density.learnt_sequences == 130


def test_mutants_are_learnt_only_when_they_are_fresh():
    rng, guide = np.random.default_rng(0), guide_with(quantile=0.2)
    consider(guide, walks(rng, 100), np.nan)
    feedback = consider(guide, walks(rng, 100), 0.0)
    assert 0 < feedback.keep.sum() < 100
    assert guide.density.learnt_sequences == 100 + feedback.keep.sum()


def test_no_executions_give_no_feedback():
    rng, guide = np.random.default_rng(0), guide_with()
    assert consider(guide, np.empty((0, 10, 2))).keep.shape == (0,)
    consider(guide, walks(rng, 50))
    before = guide.threshold
    assert consider(guide, np.empty((0, 10, 2))).log_density.shape == (0,)
    assert guide.threshold == before


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_a_restored_guide_continues_identically(batches):
    rng, original, restored = np.random.default_rng(0), guide_with(memory=80), guide_with(memory=80)
    for _ in range(batches):
        consider(original, walks(rng, 40))
    state = {name: array.copy() for name, array in original.state().items()}
    restored.restore(state)
    for _ in range(3):
        states = walks(rng, 40)
        first, second = consider(original, states), consider(restored, states)
        np.testing.assert_array_equal(first.keep, second.keep)
        np.testing.assert_array_equal(first.log_density, second.log_density)
        assert original.threshold == restored.threshold
    assert original.fresh_share == restored.fresh_share


def test_state_does_not_grow_when_more_is_seen():
    rng, guide = np.random.default_rng(0), guide_with(memory=50)
    consider(guide, walks(rng, 60))
    sizes = {name: array.nbytes for name, array in guide.state().items()}
    for _ in range(10):
        consider(guide, walks(rng, 60))
    assert {name: array.nbytes for name, array in guide.state().items()} == sizes
