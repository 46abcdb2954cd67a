from dataclasses import replace

import numpy as np
import pytest

from policyfuzz import Return, load_target
from policyfuzz.core.branches import Branches
from policyfuzz.core.errors import UsageError
from policyfuzz.core.oracle import NONE
from policyfuzz.core.target import Runner
from policyfuzz.store.plain_records import from_plain, to_plain
from policyfuzz.store.triage_records import DELAYS_ONLY, NONE_FOUND, WITNESS, Avoidance
from policyfuzz.triage.avoidance import find_witnesses
from policyfuzz.triage.witness import Crash, Neighbours, WitnessSettings
from tests.triage.planted_obstacles import (
    AHEAD,
    CHOICES,
    HORIZON,
    NUMBERS,
    WAITS,
    Homing,
    crash,
    obstacles,
)


def avoidances(target, crashes, settings=None):
    """One for each of `crashes`, in their order."""
    runs = Runner(target), Runner(target.prolonged(3))
    found = dict(find_witnesses(target, crashes, *runs, settings))
    return [found[place] for place in range(len(crashes))]


def rerun(target, crash, branch):
    """The episode of `crash` with this `branch`."""
    branches = Branches.of([branch], len(target.actions.low))
    return Runner(target)(crash.row[None], np.array([crash.case_seed], np.uint64), branches=branches)


@pytest.mark.parametrize("actions", [CHOICES, NUMBERS])
def test_avoidable_and_unavoidable_crashes_are_told_apart(actions):
    target = obstacles(actions)
    crashes = [crash(at, width) for at in (3, 8, 17, 29, 40) for width in (0.5, at - 0.5, at, at + 0.5, 50)]
    for one, found in zip(crashes, avoidances(target, crashes), strict=True):
        at, width, _ = one.row
        assert found.verdict == (WITNESS if width <= at else NONE_FOUND), (at, width)
        assert found.episodes <= 64


def test_a_witness_replays_and_survives_beyond_the_horizon():
    target = obstacles()
    case = crash(20, 12.5)
    (found,) = avoidances(target, [case])
    short, long = (rerun(one, case, found.branch) for one in (target, target.prolonged(3)))
    assert not short.crashed.any()
    assert not long.crashed.any()
    assert short.returns[0] == found.episode_return
    assert found.steps == 3 * HORIZON
    assert found.words in ("left from step 1 on", "right from step 1 on")


def test_what_only_delays_is_no_witness():
    (found,) = avoidances(obstacles(), [crash(20, 12.5, later=100)])
    assert found.verdict == DELAYS_ONLY
    assert found.steps == 100, "the step of the crash that comes then"


def test_a_turn_that_crashes_later_is_handed_back_in_time():
    # held up to the horizon it leads so far away that the policy is not back in time
    target = replace(obstacles(), policy=lambda: Homing(AHEAD))
    (found,) = avoidances(target, [crash(20, 12.5, later=62)])
    assert found.verdict == WITNESS
    assert found.branch[0].start == 1
    assert found.branch[0].stop <= HORIZON


def test_waiting_is_no_witness_where_neighbours_pass_and_earn_more():
    (found,) = avoidances(obstacles(WAITS), [crash(20, 0.5)])
    assert found.verdict == NONE_FOUND


def test_return_is_not_checked_where_no_neighbour_passes():
    (found,) = avoidances(obstacles(WAITS), [crash(20, 50.0)])
    assert found.verdict == WITNESS
    assert np.isnan(found.usual_return)


def test_usual_return_is_below_the_lowest_by_the_spread():
    near = Neighbours(crash_return=np.nan, tried=3, returns=[5.0, 6.0, 7.0])
    assert near.usual_return == 3.0
    assert near.accept(3.0)
    assert not near.accept(2.9)


def test_a_hundredth_of_what_the_crash_costs_is_no_difference():
    assert Neighbours(crash_return=-95.0, tried=1, returns=[5.0]).usual_return == 4.0
    assert Neighbours(crash_return=95.0, tried=1, returns=[5.0]).usual_return == 5.0


def test_no_more_episodes_are_run_than_the_budget_allows():
    settings = WitnessSettings(episodes=20)
    counted = []

    def counting(run):
        def call(inputs, seeds, *, branches=None):
            counted.append(len(inputs))
            return run(inputs, seeds, branches=branches)

        return call

    target = obstacles()
    runs = [counting(Runner(one)) for one in (target, target.prolonged(3))]
    ((_, found),) = find_witnesses(target, [crash(5, 30.0)], runs[0], runs[1], settings)
    assert found.verdict == NONE_FOUND
    assert found.episodes <= 20
    assert sum(counted) == found.episodes + found.point_episodes


def test_a_crash_has_the_same_avoidance_alone_and_among_others():
    target = obstacles()
    crashes = [crash(at, 0.6 * at) for at in range(5, 29, 3)] + [crash(4, 30.0)]
    together = avoidances(target, crashes)
    backwards = avoidances(target, crashes[::-1])[::-1]
    alone = [avoidances(target, [one])[0] for one in crashes[:2]]
    assert repr(together) == repr(backwards)
    assert repr(together[:2]) == repr(alone)


def test_another_seed_draws_other_candidates():
    case = crash(30, 2.0)
    words = {
        avoidances(obstacles(NUMBERS), [case], WitnessSettings(seed=seed))[0].branch for seed in range(3)
    }
    assert len(words) > 1


def test_witnesses_of_a_low_return():
    target = obstacles(oracle=Return("<", 0))
    case = crash(5, 3.5, kind=target.oracle.kinds[0])
    (found,) = avoidances(target, [case])
    assert found.verdict == WITNESS
    assert found.episode_return == HORIZON


def test_a_target_without_an_action_space_says_so():
    target = replace(obstacles(), actions=None)
    with pytest.raises(UsageError, match="no witnesses"):
        find_witnesses(target, [crash(5, 1.5)], Runner(target), Runner(target))


def test_an_avoidance_can_be_stored():
    (found,) = avoidances(obstacles(), [crash(20, 12.5)])
    assert repr(from_plain(Avoidance, to_plain(found))) == repr(found)


def test_a_policy_with_memory_has_witnesses():
    target = load_target("acasxu")
    rows = np.array([[618.7888, 402.0635, 1243.0938, 1.9455], [320.9955, -1644.4909, 2256.679, -0.3148]])
    runs = Runner(target)(rows, np.zeros(2, np.uint64))
    assert runs.crashed.all(), "the shipped networks collide here"
    cases = [
        Crash(row, 0, int(step), "collision", float(earned))
        for row, step, earned in zip(rows, runs.verdicts.steps, runs.returns, strict=True)
    ]
    for case, found in zip(cases, avoidances(target, cases), strict=True):
        assert found.verdict == WITNESS
        assert not rerun(target.prolonged(3), case, found.branch).crashed.any()
        assert 1 <= found.last_chance < case.step
        assert rerun(target, case, found.last_branch).verdicts.steps[0] == NONE
