import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.versus.diversity import Radii, novelty
from benchmarks.versus.judge import Verdict
from benchmarks.versus.metrics import Covered, curve, mass_curve, measure
from benchmarks.versus.reference import NEVER
from policyfuzz.search.behaviour import Behaviours

FINDING, INVALID, REPEATED = Verdict.FINDING, Verdict.INVALID, Verdict.REPEATED
PLANE = np.zeros(2)
ALL = np.ones(4, np.bool_)


def unknown(count: int) -> np.ndarray:
    """(count, q) Descriptors of episodes of which nothing is known."""
    return Behaviours.unknown(count).descriptors


def test_packing_counts_what_is_a_radius_from_all_that_counted_before():
    unit = np.array([[0.1, 0.1], [0.105, 0.1], [0.1101, 0.1], [0.9, 0.9]])
    new = novelty(unit, PLANE, np.zeros((4, 1)), unknown(len(unit)), ALL)
    assert new.close.tolist() == [True, False, True, True]
    assert new.near.tolist() == [True, False, False, True]
    assert new.behaviour.tolist() == [True, False, False, False]


def test_packings_do_not_grow_with_the_radius():
    unit = np.random.default_rng(0).random((400, 3)) * 0.3
    new = novelty(unit, np.zeros(3), np.zeros((400, 1)), unknown(len(unit)), np.ones(400, np.bool_))
    counts = [int(flags.sum()) for flags in (new.close, new.near, new.far)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[1] > counts[2] > 1


def test_refused_claims_take_no_room_in_a_packing():
    unit = np.array([[np.nan, np.nan], [0.1, 0.1]])
    new = novelty(unit, PLANE, np.full((2, 1), np.nan), unknown(len(unit)), np.array([False, True]))
    assert new.close.tolist() == [False, True]


def test_packing_goes_the_short_way_round_where_inputs_wrap():
    unit = np.array([[0.002], [0.998], [0.5]])
    assert novelty(unit, np.ones(1), np.zeros((3, 1)), unknown(len(unit)), ALL[:3]).close.tolist() == [
        True,
        False,
        True,
    ]


def test_behaviours_are_all_alike_where_none_varies():
    new = novelty(np.array([[0.1, 0.1], [0.9, 0.9]]), PLANE, np.empty((2, 0)), unknown(2), ALL[:2])
    assert new.behaviour.tolist() == [True, False]


def test_radii_are_those_that_are_given():
    unit = np.array([[0.1, 0.1], [0.2, 0.1]])
    new = novelty(unit, PLANE, np.zeros((2, 1)), unknown(len(unit)), ALL[:2], Radii(close=0.2))
    assert new.close.tolist() == [True, False]


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
    assert metrics.regions == 2
    assert metrics.overhead == pytest.approx(0.2)


def test_metrics_of_a_part_count_claims_of_that_part_only(made_trial):
    trial = made_trial(numbers=(10, 20, 80), episodes=100)
    metrics = measure(trial, 50)
    assert (metrics.findings, metrics.first) == (2, 10)
    assert math.isnan(metrics.seconds), "nobody knows when half of the episodes were run"


def test_trial_without_findings_has_no_first_one(made_trial):
    metrics = measure(made_trial(numbers=(5,), verdicts=(INVALID,), episodes=100))
    assert metrics.first is None
    assert metrics.first_or_end == 100
    assert metrics.regions is None


def test_courses_and_lineages_count_what_differs_among_findings(made_trial):
    trial = made_trial(
        numbers=(10, 20, 30, 40),
        episodes=100,
        verdicts=(FINDING, FINDING, INVALID, FINDING),
        courses=(5, 5, 0, 5),
        roots=(1, 2, 3, 1),
    )
    whole, part = measure(trial), measure(trial, 20)
    assert (whole.courses, whole.lineages) == (1, 2)
    assert (part.courses, part.lineages) == (1, 2)


def test_what_nobody_knows_is_not_zero(made_trial):
    metrics = measure(made_trial(numbers=(10,), episodes=100))
    assert (metrics.courses, metrics.lineages, metrics.mass_near, metrics.mass_far) == (None,) * 4
    assert measure(made_trial(numbers=(), roots=(), courses=())).lineages == 0


def test_mass_is_the_share_of_random_crashes_that_were_covered_in_time(made_trial):
    covered = Covered(near=np.array([30, NEVER, 80, NEVER]), far=np.array([30, 40, 80, NEVER]))
    trial = made_trial(numbers=(30, 40, 80), episodes=100)
    whole, part = measure(trial, None, covered), measure(trial, 50, covered)
    assert (whole.mass_near, whole.mass_far) == (0.5, 0.75)
    assert (part.mass_near, part.mass_far) == (0.25, 0.5)
    assert mass_curve(covered, np.array([0.0, 29.0, 30.0, 100.0])).tolist() == [0, 0, 0.25, 0.5]


def test_curves_step_up_where_a_claim_was_made(made_trial):
    trial = made_trial(
        numbers=(10, 20, 30),
        episodes=100,
        verdicts=(FINDING, INVALID, FINDING),
        distinct=(True, False, False),
    )
    points = np.array([0.0, 9.0, 10.0, 29.0, 30.0, 100.0])
    assert curve(trial, "findings", points).tolist() == [0, 0, 1, 1, 2, 2]
    assert curve(trial, "distinct", points).tolist() == [0, 0, 1, 1, 1, 1]


def test_curves_over_processor_time_use_its_share_of_wall_time(made_trial):
    trial = made_trial(numbers=(50,), episodes=100)  # after 5 of 10 seconds, of which 5 were on a core
    assert curve(trial, "findings", np.array([2.4, 2.5]), "cpu_times").tolist() == [0, 1]


def test_a_trial_with_fewer_episodes_than_were_asked_for_is_broken_off(made_trial):
    trial = replace(made_trial(numbers=(10,), episodes=100), episodes=40)
    metrics = measure(trial)
    assert (metrics.episodes, metrics.episodes_run, metrics.is_broken_off) == (100, 40, True)
    assert not measure(trial, 40).is_broken_off, "it had all of these"


def test_late_claims_are_refused(made_trial):
    metrics = measure(made_trial(numbers=(10, 101), verdicts=(FINDING, Verdict.LATE), episodes=100))
    assert (metrics.findings, metrics.late, metrics.refused) == (1, 1, 1)
