import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.versus.diversity import RADII, Radii, novelty
from benchmarks.versus.judge import Verdict
from benchmarks.versus.metrics import distinct_over, findings_over, measure
from policyfuzz.core.inputs import Angle, InputSpace, Real
from policyfuzz.search import portfolio

FINDING, INVALID, REPEATED = Verdict.FINDING, Verdict.INVALID, Verdict.REPEATED
SPACE = InputSpace((Real("x", 0.0, 10.0), Real("y", 0.0, 10.0)))
ALL = np.ones(4, np.bool_)


def test_packing_counts_what_is_a_radius_from_all_that_counted_before():
    inputs = np.array([[1.0, 1.0], [1.05, 1.0], [1.1, 1.0], [9.0, 9.0]])  # unit distances 0.005, 0.01
    new = novelty(SPACE, inputs, np.zeros((4, 1)), ALL)
    assert new.distinct.tolist() == [True, False, True, True]
    assert new.apart.tolist() == [True, False, False, True]
    assert new.behaviour.tolist() == [True, False, False, False]


def test_far_apart_grows_with_the_root_of_the_dimensions():
    radius = 10 * 0.05 * math.sqrt(2)
    inputs = np.array([[1.0, 1.0], [1.0 + 0.99 * radius, 1.0], [1.0 + 1.01 * radius, 1.0], [9.0, 9.0]])
    assert novelty(SPACE, inputs, np.zeros((4, 1)), ALL).apart.tolist() == [True, False, True, True]


def test_refused_claims_take_no_room_in_a_packing():
    inputs = np.array([[1.0, 1.0], [1.0, 1.0]])
    new = novelty(SPACE, inputs, np.full((2, 1), np.nan), np.array([False, True]))
    assert new.distinct.tolist() == [False, True]


def test_packing_goes_the_short_way_round_where_inputs_wrap():
    space = InputSpace((Angle("heading"),))
    inputs = np.array([[-math.pi + 0.01], [math.pi - 0.01], [0.0]])
    assert novelty(space, inputs, np.zeros((3, 1)), ALL[:3]).distinct.tolist() == [True, False, True]


def test_behaviours_are_all_alike_where_none_varies():
    inputs = np.array([[1.0, 1.0], [9.0, 9.0]])
    new = novelty(SPACE, inputs, np.empty((2, 0)), ALL[:2])
    assert new.behaviour.tolist() == [True, False]


def test_radii_are_those_that_are_given():
    inputs = np.array([[1.0, 1.0], [2.0, 1.0]])
    new = novelty(SPACE, inputs, np.zeros((2, 1)), ALL[:2], Radii(distinct=0.2))
    assert new.distinct.tolist() == [True, False]


def test_metrics_of_a_trial_by_hand(made_trial):
    trial = made_trial(
        numbers=(10, 20, 20, 60, 90),
        episodes=100,
        verdicts=(INVALID, FINDING, FINDING, REPEATED, FINDING),
        distinct=(False, True, False, False, True),
        regions=(-1, 0, 0, -1, 2),
    )
    metrics = measure(trial)
    assert (metrics.findings, metrics.distinct, metrics.first) == (3, 2, 20)
    assert (metrics.invalid, metrics.repeated, metrics.unsolvable, metrics.refused) == (1, 1, 0, 2)
    # one distinct finding from episode 20 to 100, another from 90 to 100
    assert metrics.area == pytest.approx((81 + 11) / 100)
    assert metrics.regions == 2
    assert metrics.overhead == pytest.approx(0.2)


def test_metrics_of_a_part_count_claims_of_that_part_only(made_trial):
    trial = made_trial(numbers=(10, 20, 80), episodes=100)
    metrics = measure(trial, 50)
    assert (metrics.findings, metrics.first) == (2, 10)
    assert metrics.area == pytest.approx((41 + 31) / 50)
    assert math.isnan(metrics.seconds), "nobody knows when half of the episodes were run"


def test_trial_without_findings_has_no_first_one(made_trial):
    metrics = measure(made_trial(numbers=(5,), verdicts=(INVALID,), episodes=100))
    assert metrics.first is None
    assert metrics.first_or_end == 100
    assert metrics.area == 0
    assert metrics.regions is None


def test_curves_step_up_where_a_claim_was_made(made_trial):
    trial = made_trial(
        numbers=(10, 20, 30),
        episodes=100,
        verdicts=(FINDING, INVALID, FINDING),
        distinct=(True, False, False),
    )
    points = np.array([0.0, 9.0, 10.0, 29.0, 30.0, 100.0])
    assert findings_over(trial, points).tolist() == [0, 0, 1, 1, 2, 2]
    assert distinct_over(trial, points).tolist() == [0, 0, 1, 1, 1, 1]


def test_curves_over_processor_time_use_its_share_of_wall_time(made_trial):
    trial = made_trial(numbers=(50,), episodes=100)  # after 5 of 10 seconds, of which 5 were on a core
    assert findings_over(trial, np.array([2.4, 2.5]), "cpu_times").tolist() == [0, 1]


def test_a_trial_with_fewer_episodes_than_were_asked_for_is_broken_off(made_trial):
    trial = replace(made_trial(numbers=(10,), episodes=100), episodes=40)
    metrics = measure(trial)
    assert (metrics.episodes, metrics.episodes_run, metrics.is_broken_off) == (100, 40, True)
    assert not measure(trial, 40).is_broken_off, "it had all of these"


def test_late_claims_are_refused(made_trial):
    metrics = measure(made_trial(numbers=(10, 101), verdicts=(FINDING, Verdict.LATE), episodes=100))
    assert (metrics.findings, metrics.late, metrics.refused) == (1, 1, 1)


def test_the_default_takes_findings_for_new_at_the_radius_of_distinct_ones():
    """The page says so, because it is an advantage over others that are not told."""
    assert RADII.distinct == portfolio.DISTINCT_RADIUS
