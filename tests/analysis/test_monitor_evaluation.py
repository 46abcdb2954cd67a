"""Scores of episodes, lineages, thresholds and leads, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.analysis.monitor_episodes import NONE
from policyfuzz.analysis.monitor_evaluation import (
    calibrated,
    episode_scores,
    first_alarms,
    frame_scores,
    lineage_auc,
    roc_curve,
    warnings_of,
)
from policyfuzz.monitors.detectors import Linear
from tests.analysis.monitor_material import made_episodes

RNG = np.random.default_rng(0)


@pytest.fixture
def crashes():
    """Two crashes at step 5, whose only number is the step."""
    episodes = made_episodes(RNG, 2, width=1, crash_at=5)
    episodes.frames["observations"][:, 0] = [0, 1, 2, 3, 4, 4, 3, 2, 1, 0]
    return episodes


@pytest.fixture
def scores(crashes):
    return frame_scores(Linear(np.ones(1), np.zeros(1)), "observations", crashes)


def test_score_of_a_crash_ends_before_the_lead(crashes, scores):
    assert episode_scores(scores, crashes, 1).tolist() == [4, 4]
    assert episode_scores(scores, crashes, 3).tolist() == [2, 4]
    assert episode_scores(scores, crashes, 6).tolist() == [-np.inf, -np.inf]


def test_first_alarm_is_the_first_score_above_the_threshold(crashes, scores):
    assert first_alarms(scores, crashes, 2.0).tolist() == [3, 0]
    assert first_alarms(scores, crashes, 4.0).tolist() == [NONE, NONE]


def test_warnings_count_leads_and_points_of_no_return(crashes, scores):
    alarms = first_alarms(scores, crashes, 2.0)
    found = warnings_of(alarms, crashes.crash_steps, np.array([2, NONE]), lead=3)
    assert found.leads == (2, 5)
    assert (found.in_time.count, found.at_all.count, found.in_time.of) == (1, 2, 2)
    assert found.no_return_leads == (-1,)  # the alarm came one step after the last chance
    assert (found.before_no_return.count, found.before_no_return.of) == (0, 1)


def test_every_lineage_counts_the_same():
    scores = np.array([2.0, 2.0, 2.0, 0.0])
    auc = lineage_auc(scores, np.array([1, 1, 1, 2], np.uint64), np.array([1.0]), RNG)
    assert auc.value == 0.5
    assert (auc.low, auc.high) == (0.0, 1.0)


def test_ties_count_half():
    assert lineage_auc(np.ones(3), np.arange(3).astype(np.uint64), np.ones(5), RNG).value == 0.5


def test_area_under_the_curve_is_the_auc():
    crashes, passing = RNG.normal(1, 1, 60), RNG.normal(0, 1, 80)
    lineages = RNG.integers(0, 9, 60).astype(np.uint64)
    curve = roc_curve("nominal", crashes, lineages, passing)
    area = np.trapezoid(curve.detected, curve.false_alarms) if hasattr(np, "trapezoid") else None
    if area is None:
        area = np.trapz(curve.detected, curve.false_alarms)  # noqa: NPY201 - of NumPy 1
    assert area == pytest.approx(lineage_auc(crashes, lineages, passing, RNG).value, abs=1e-9)


def test_long_curves_keep_some_points():
    curve = roc_curve("nominal", RNG.normal(size=900), np.arange(900).astype(np.uint64), RNG.normal(size=900))
    assert len(curve.false_alarms) == 200
    assert (curve.false_alarms[0], curve.false_alarms[-1]) == (0.0, 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_threshold_holds_on_further_episodes(seed):
    rng = np.random.default_rng(seed)
    threshold = calibrated(rng.normal(size=3000), 0.02)
    assert threshold.is_promised
    assert threshold.calibration.high <= 0.02
    assert (rng.normal(size=100_000) > threshold.value).mean() < 0.02


def test_threshold_is_no_higher_than_it_must_be():
    scores = np.arange(3000.0)
    threshold = calibrated(scores, 0.02)
    assert threshold.calibration.count == (scores > threshold.value).sum()
    lower = calibrated(np.concatenate([scores, scores]), 0.02)
    assert lower.calibration.rate > threshold.calibration.rate  # more episodes promise the same with less


def test_too_few_episodes_promise_nothing():
    threshold = calibrated(np.arange(50.0), 0.01)
    assert not threshold.is_promised
    assert threshold.value == 49.0
    assert threshold.calibration.count == 0


def test_equal_scores_are_alarms_together():
    scores = np.concatenate([np.zeros(1000), np.ones(500)])
    assert calibrated(scores, 0.01).calibration.count == 0


def test_infinite_scores_are_counted_as_the_alarms_that_they_are():
    scores = np.concatenate([np.zeros(995), np.full(5, np.inf)])
    threshold = calibrated(scores, 0.01)
    assert threshold.calibration.count == (scores > threshold.value).sum() == 5
    assert not threshold.is_promised


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_crash_before_the_first_decision_is_missed(crashes, scores, place):
    lengths = np.insert([5, 5], place, 0)
    early = replace(
        crashes,
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        crash_steps=lengths,
        lineages=np.arange(3, dtype=np.uint64),
    )
    assert episode_scores(scores, early, 1).tolist() == np.insert([4.0, 4.0], place, -np.inf).tolist()
    alarms = first_alarms(scores, early, 2.0)
    assert alarms.tolist() == np.insert([3, 0], place, NONE).tolist()
    found = warnings_of(alarms, early.crash_steps, np.full(3, NONE), lead=1)
    assert (found.at_all.count, found.at_all.of) == (2, 3)
