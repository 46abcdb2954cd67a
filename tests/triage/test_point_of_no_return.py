import math
from dataclasses import replace

import numpy as np
import pytest

from policyfuzz import Below, Return, WithKind
from policyfuzz.core.oracle import accumulated_kinds
from policyfuzz.core.target import Runner
from policyfuzz.store.triage_records import DECIDED, FRAGILE, NONE_FOUND, NOT_KNOWN, NOT_MEANINGFUL, WITNESS
from policyfuzz.targets.coopnavi.target import Collisions
from policyfuzz.triage.avoidance import find_witnesses
from policyfuzz.triage.point_of_no_return import recorded_actions
from policyfuzz.triage.witness import WitnessSettings
from tests.triage.planted_obstacles import CHOICES, NUMBERS, crash, obstacles


def avoidances(target, crashes, settings=None):
    """One for each of `crashes`, in their order."""
    runs = Runner(target), Runner(target.prolonged(3))
    found = dict(find_witnesses(target, crashes, *runs, settings, recorded_actions(target)))
    return [found[place] for place in range(len(crashes))]


@pytest.mark.parametrize("actions", [CHOICES, NUMBERS])
def test_point_of_no_return_is_where_the_way_aside_is_just_long_enough(actions):
    crashes = [crash(at, width) for at in (6, 13, 27, 40) for width in (2.5, 3.0, at / 2, at - 1.5)]
    for one, found in zip(crashes, avoidances(obstacles(actions), crashes), strict=True):
        at, width, _ = one.row
        assert found.standing == DECIDED
        assert found.last_chance == at + 1 - math.ceil(width), (at, width)
        assert found.point_episodes <= 80


def test_blame_says_what_the_policy_did_and_what_would_have_saved_it():
    (found,) = avoidances(obstacles(), [crash(30, 20.0)])
    assert found.blamed in (
        "ahead at step 11; left from step 11 on would have avoided the crash",
        "ahead at step 11; right from step 11 on would have avoided the crash",
    )


def test_a_crash_that_any_disturbance_avoids_is_fragile():
    (found,) = avoidances(obstacles(), [crash(30, 0.5)])
    assert (found.verdict, found.standing) == (WITNESS, FRAGILE)
    assert (found.survived, found.last_chance) == (found.disturbances, None)


def test_a_crash_that_no_disturbance_avoids_is_not_fragile():
    (found,) = avoidances(obstacles(), [crash(30, 5.0)])
    assert (found.survived, found.standing) == (0, DECIDED)


def test_a_crash_that_is_counted_has_no_point_of_no_return():
    target = obstacles(oracle=WithKind(Return("<", 25), "poor"))
    (found,) = avoidances(target, [crash(30, 20.0, kind="poor")])
    assert (found.verdict, found.standing, found.last_chance) == (WITNESS, NOT_MEANINGFUL, None)


def test_nothing_is_known_without_a_witness():
    (found,) = avoidances(obstacles(), [crash(5, 50.0)])
    assert (found.verdict, found.standing) == (NONE_FOUND, NOT_KNOWN)


def test_nothing_is_known_if_the_budget_does_not_suffice():
    (found,) = avoidances(obstacles(), [crash(30, 20.0)], WitnessSettings(point_episodes=20))
    assert (found.verdict, found.standing, found.last_chance) == (WITNESS, NOT_KNOWN, None)
    assert found.point_episodes <= 20


def test_of_two_oracles_only_the_counting_one_is_counted():
    bump, poor = Below("room", 0, kind="bump"), WithKind(Return("<", 25), "poor")
    assert accumulated_kinds(bump | poor) == ("poor",)
    assert accumulated_kinds(bump & poor) == ("bump and poor",)
    assert accumulated_kinds(bump) == ()


def test_contacts_are_counted_unless_the_first_one_is_a_crash():
    five = Collisions(5, excuses_finished=True, horizon=100)
    assert accumulated_kinds(five) == five.kinds
    assert accumulated_kinds(replace(five, limit=0)) == ()


def test_an_oracle_that_says_nothing_about_counts_does_not_count():
    class Foreign:
        kinds = ("odd",)

        def judge(self, trajectories):
            raise NotImplementedError

    assert accumulated_kinds(Foreign()) == ()


def test_recorded_actions_are_those_of_the_policy():
    np.testing.assert_array_equal(recorded_actions(obstacles())(crash(4, 3.5).row, 0), np.full((4, 1), 2.0))
