from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.core.branches import Branches, Segment
from policyfuzz.core.errors import UsageError
from policyfuzz.core.recording import record
from policyfuzz.core.target import Runner
from policyfuzz.execution.executor import choose_executor
from policyfuzz.targets.acasxu.encounter import EncounterSimulator
from policyfuzz.targets.registry import load_target

SEEDS = np.zeros(4, np.uint64)


@pytest.fixture(scope="module")
def encounters():
    target = load_target("acasxu")
    inputs = target.inputs.sample(np.random.default_rng(3), 200)
    return target, inputs[target.inputs.is_valid(inputs)][:4]


def test_no_segment_changes_nothing(encounters):
    target, inputs = encounters
    runner = Runner(target)
    branches = Branches.of([[], [], [], [Segment(5, 5, (3.0,))]], 1)
    plain, branched = runner(inputs, SEEDS), runner(inputs, SEEDS, branches=branches)
    np.testing.assert_array_equal(plain.states, branched.states)


def test_a_segment_is_executed_from_its_start_to_its_stop(encounters):
    target, inputs = encounters
    actions = np.array(record(target, inputs[0], 0, branch=[Segment(11, 21, (3.0,))]).actions)
    before = np.array(record(target, inputs[0], 0).actions)
    assert (actions[10:20] == 3).all()
    np.testing.assert_array_equal(actions[:10], before[:10])


def test_a_later_segment_wins(encounters):
    target, inputs = encounters
    branch = [Segment(1, 101, (3.0,)), Segment(1, 3, (4.0,))]
    assert record(target, inputs[0], 0, branch=branch).actions[:3] == [4, 4, 3]


def test_a_policy_that_remembers_actions_is_told_what_was_done(encounters):
    target, inputs = encounters
    seen = []

    def policy():
        made = target.policy()
        bank = made._bank

        def watched(observations, previous):
            seen.append(previous.copy())
            return bank(observations, previous)

        made._bank = watched
        return made

    runner = Runner(replace(target, policy=policy))
    runner(inputs[:1], SEEDS[:1], branches=Branches.of([[Segment(1, 4, (2.0,))]], 1))
    assert np.concatenate(seen)[1:4].tolist() == [2, 2, 2]


def test_added_numbers_stay_within_the_bounds():
    target = load_target("ripple:dimensions=2")
    row = np.array([0.3, 0.6])
    own = np.array(record(target, row, 0).actions)
    more = np.array(record(target, row, 0, branch=[Segment(1, 2, (0.25, -9.0), is_added=True)]).actions)
    np.testing.assert_allclose(more[0], [own[0, 0] + 0.25, -1.0])


def test_nan_leaves_the_number_of_the_policy():
    target = load_target("ripple:dimensions=2")
    row = np.array([0.3, 0.6])
    own = np.array(record(target, row, 0).actions)
    actions = np.array(record(target, row, 0, branch=[Segment(1, 2, (np.nan, 1.0))]).actions)
    np.testing.assert_array_equal(actions[0], [own[0, 0], 1.0])


def test_a_target_without_an_action_space_says_so(encounters):
    target, inputs = encounters
    with pytest.raises(UsageError, match="cannot be replaced"):
        Runner(replace(target, actions=None))(inputs, SEEDS, branches=Branches.of([[]] * 4, 1))


def test_a_branch_does_not_depend_on_its_neighbours(encounters):
    target, inputs = encounters
    branches = Branches.of([[Segment(2, 90, (float(row + 1),))] for row in range(4)], 1)
    together = Runner(target)(inputs, SEEDS, branches=branches)
    alone = Runner(target)(inputs[2:3], SEEDS[2:3], branches=branches[2:3])
    np.testing.assert_array_equal(together.returns[2:3], alone.returns)


@pytest.mark.slow
def test_workers_run_the_same_branches(encounters):
    target, inputs = encounters
    branches = Branches.of([[Segment(2, 90, (float(row + 1),))] for row in range(4)], 1)
    inline = Runner(target)(inputs, SEEDS, branches=branches)
    by_workers = choose_executor(workers=2).make_runner(target)(inputs, SEEDS, branches=branches)
    np.testing.assert_array_equal(inline.states, by_workers.states)


@pytest.mark.parametrize("name", ["gym:CartPole-v1", "pettingzoo:mpe2.simple_spread_v3"])
def test_environments_have_actions_and_can_be_prolonged(name, tmp_path):
    if name.startswith("pettingzoo"):
        pytest.importorskip("mpe2")
    policy = tmp_path / "still.py"
    policy.write_text("def act(observation):\n    return 0\n")
    target = load_target(name, f"py:{policy}:act")
    assert target.actions is not None
    segments = [[Segment(1, 10_000, target.actions.macros[-1].numbers)]]
    inputs = target.inputs.sample(np.random.default_rng(0), 1)
    branches = Branches.of(segments, len(target.actions.low))
    plain = Runner(target)(inputs, SEEDS[:1])
    other = Runner(target)(inputs, SEEDS[:1], branches=branches)
    assert plain.returns[0] != other.returns[0]
    longer = target.prolonged(3)
    lengths = Runner(longer)(inputs, SEEDS[:1], branches=branches).lengths
    assert longer.horizon == 3 * target.horizon
    if name.startswith("pettingzoo"):  # which nothing but its limit ends
        assert lengths[0] == longer.horizon + 1


def test_a_simulator_that_holds_few_episodes_runs_each_with_its_own_branch(encounters):
    target, inputs = encounters

    class Two(EncounterSimulator):
        capacity = 2

    branches = Branches.of([[Segment(2, 90, (float(row + 1),))] for row in range(4)], 1)
    few = Runner(replace(target, simulator=Two))(inputs, SEEDS, branches=branches)
    np.testing.assert_array_equal(few.returns, Runner(target)(inputs, SEEDS, branches=branches).returns)


@pytest.mark.parametrize(
    "segment",
    [Segment(1, 2, ()), Segment(1, 2, (1.0, 2.0)), Segment(-1, 2, (1.0,)), Segment(1, -(10**30), (1.0,))],
)
def test_segments_of_another_target_are_refused(segment):
    with pytest.raises(UsageError, match="a branch gives"):
        Branches.of([[segment]], 1)
