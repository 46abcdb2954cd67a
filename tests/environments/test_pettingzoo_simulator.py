from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")

from policyfuzz.core.code_files import load_attribute
from policyfuzz.core.interfaces import NUMBERS, RAISED
from policyfuzz.core.rollout import rollout
from policyfuzz.environments.joint_policy import JointPolicy
from policyfuzz.environments.parallel import Agents, ParallelSimulator
from policyfuzz.environments.starts import SeedStart
from policyfuzz.oracles import language

MortalAgents = load_attribute(f"{Path(__file__).with_name('pettingzoo_mortals.py')}:MortalAgents", "class")


class Noting:
    """Acts 0 and keeps what it was asked, as pairs of row and lives; remembers how often for each row."""

    def begin(self, count):
        self.count, self.calls, self.asked = count, 0, []
        self.steps = np.zeros(count, np.int64)

    def act(self, observations, rows):
        self.calls += 1
        self.steps[rows] += 1
        assert (self.steps[rows] == observations[:, 0] + 1).all()  # memory belongs to one agent's episode
        self.asked += zip(rows.tolist(), observations[:, 1].tolist(), strict=True)
        return np.zeros(len(rows), np.int64)


def run(seeds, *, oracle="terminated", parts=None, make=MortalAgents, horizon=8, **settings):
    """Executions of the episodes with these seeds, and the simulator."""
    simulator = ParallelSimulator(make, SeedStart(), language.info_keys(oracle), **settings)
    policy = JointPolicy(Agents.of(make()), parts or [(Noting(), (0, 1, 2))])
    inputs = np.array(seeds, np.float64)[:, None]
    numbers = np.arange(len(seeds), dtype=np.uint64)
    found = rollout(simulator, policy, language.parse(oracle), inputs, numbers, horizon=horizon)
    return found, simulator


def test_an_episode_lasts_until_its_last_agent_is_gone():
    found, _ = run([123, 311, 115, 111])
    assert (found.lengths - 1).tolist() == [3, 3, 5, 1]


def test_only_agents_that_are_left_are_asked_and_act():
    policy = Noting()
    _, simulator = run([213, 121], parts=[(policy, (0, 1, 2))])
    first, second = (slot.env for slot in simulator._slots)
    assert first.acted == [["guard_0", "miner_0", "miner_1"], ["guard_0", "miner_0"], ["guard_0"]]
    assert second.acted == [["guard_0", "miner_0", "miner_1"], ["miner_1"]]
    # three agents for each of two episodes, and all of them in one call a step
    assert (policy.count, policy.calls) == (6, 3)
    assert policy.asked[:6] == [(0, 2.0), (1, 1.0), (2, 3.0), (3, 1.0), (4, 2.0), (5, 1.0)]
    assert policy.asked[6:] == [(0, 2.0), (2, 3.0), (4, 2.0), (2, 3.0)]


def test_each_policy_is_asked_for_its_own_agents():
    miners, guard = Noting(), Noting()
    run([222, 222], parts=[(miners, (0, 1)), (guard, (2,))])
    assert (miners.count, guard.count) == (4, 2)
    assert [row for row, _ in miners.asked] == [0, 1, 2, 3] * 2
    assert [row for row, _ in guard.asked] == [0, 1] * 2


@pytest.mark.parametrize(
    ("seed", "oracle", "step"),
    [
        (123, "terminated", 3),  # the last one died
        (120, "terminated", -1),  # the last one reached the time limit
        (120, "truncated", 8),
        (120, "info.terminated", 1),  # the first one dies
        (120, "info.miner_1.terminated", 2),
        (0, "truncated", 8),
    ],
)
def test_how_an_episode_ended(seed, oracle, step):
    found, _ = run([seed], oracle=oracle)
    assert found.verdicts.steps.tolist() == [step]


@pytest.mark.parametrize(
    ("reward", "expected"), [("sum", 6 + 5 + 3), ("mean", 2 + 2.5 + 3), ("min", 1 + 2 + 3), ("miner_1", 4)]
)
def test_rewards_of_all_agents_become_one(reward, expected):
    found, _ = run([123], reward=reward)
    assert found.returns.tolist() == [expected]


def test_info_is_the_highest_of_all_agents_or_that_of_one():
    found, _ = run([0], oracle="info.age>10")  # 3 times the step, for the guard
    assert found.verdicts.steps.tolist() == [4]
    found, _ = run([0], oracle="info.miner_1.age>10")  # twice the step
    assert found.verdicts.steps.tolist() == [6]


@pytest.mark.parametrize(
    ("trouble", "kind", "said"),
    [
        ("raise", RAISED, "the mine collapsed"),
        ("nan", NUMBERS, "NaN or infinite number in it at step 2"),
        ("stranger", RAISED, "'ghost_0'; possible_agents are miner_0"),
    ],
)
def test_an_environment_in_trouble_costs_its_own_episode_only(trouble, kind, said):
    make = partial(MortalAgents, trouble)
    found, _ = run([123, 1666, 311], make=make)
    alone, _ = run([123], make=make)
    assert set(found.errors) == {1}
    assert (found.errors[1].kind, found.errors[1].step) == (kind, 2)
    assert said in found.errors[1].text
    assert found.returns[0] == alone.returns[0]
    assert found.lengths.tolist()[::2] == [4, 4]


def test_out_of_space_is_about_agents_that_are_alive():
    found, _ = run(
        [1666, 123], oracle="out_of_space", make=partial(MortalAgents, "outside"), watches_space=True
    )
    assert found.verdicts.steps.tolist() == [2, -1]


def test_an_episode_is_cut_where_the_user_wants():
    found, _ = run([0, 200], oracle="truncated", cut_after=3)
    assert (found.lengths - 1).tolist() == [3, 3]
    assert found.verdicts.steps.tolist() == [3, 3]


def test_an_episode_that_does_not_end_is_an_error_where_no_limit_is_known():
    found, _ = run([0, 123], make=partial(MortalAgents, limit=100), horizon=5, endless_after=5)
    assert set(found.errors) == {0}


def test_an_environment_object_is_used_again_without_a_trace():
    together, _ = run([123, 311, 222])
    make = MortalAgents
    simulator = ParallelSimulator(make, SeedStart())
    policy = JointPolicy(Agents.of(make()), [(Noting(), (0, 1, 2))])
    for seed, wanted in zip([311, 123], [1, 0], strict=True):
        one = rollout(
            simulator,
            policy,
            language.parse("terminated"),
            np.array([[seed]], np.float64),
            np.zeros(1, np.uint64),
            horizon=8,
        )
        assert one.returns[0] == together.returns[wanted]
        length = one.lengths[0]
        np.testing.assert_array_equal(one.states[0, :length], together.states[wanted, :length])


@pytest.mark.parametrize(
    ("position", "value", "problem"),
    [
        (1, "1.0", "step gave the reward '1.0', expected a number"),
        (2, "no", "step gave terminated of guard_0 = 'no', expected True or False"),
        (3, [], "step gave truncated of guard_0 = [], expected True or False"),
    ],
)
def test_step_that_gives_something_else_ends_its_episode(position, value, problem):
    class Vague(MortalAgents):  # type: ignore[misc, valid-type]
        def step(self, actions):
            given = super().step(actions)
            if "guard_0" in given[position]:
                given[position]["guard_0"] = value
            return given

    found, _ = run([123], make=Vague)
    assert found.errors[0].summary == f"ValueError: {problem}"
