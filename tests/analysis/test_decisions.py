from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from policyfuzz.analysis.decisions import ReadingPolicy, flattened, record_inside
from policyfuzz.core.branches import Branches, Segment
from policyfuzz.core.interfaces import RAISED
from policyfuzz.core.recording import record
from policyfuzz.core.target import Runner
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.carla.target import NetworkPolicy as CarlaPolicy
from policyfuzz.targets.driving.networks import DrivingPolicy
from policyfuzz.targets.registry import load_target

MORTALS = Path(__file__).parents[1] / "environments" / "pettingzoo_mortals.py"


def episodes(target, count=5):
    inputs = target.inputs.sample(np.random.default_rng(3), 100 * count)
    return inputs[target.inputs.is_valid(inputs)][:count], np.arange(count, dtype=np.uint64)


def forward(layers, values):
    """The hidden layers of ReLU `layers`, by hand."""
    found = []
    for weights, bias in layers[:-1]:
        values = np.maximum(values @ weights + bias, 0)
        found.append(values)
    return np.concatenate(found, axis=-1)


class Watched:
    """A policy whose actions are kept."""

    def __init__(self, policy, actions):
        self._policy, self._actions = policy, actions
        if hasattr(policy, "executed"):
            self.executed = policy.executed
        self.activations = policy.activations

    def begin(self, count):
        self._policy.begin(count)

    def act(self, observations, rows):
        self._actions.append(self._policy.act(observations, rows).copy())
        return self._actions[-1]


@pytest.mark.parametrize("name", ["acasxu", "coopnavi", "bipedal:horizon=40"])
def test_reading_changes_no_action_of_a_built_in_policy(name):
    target = load_target(name)
    inputs, seeds = episodes(target)
    read, unread = [], []
    inside: Any = record_inside(replace(target, policy=lambda: Watched(target.policy(), read)), inputs, seeds)
    plain = Runner(replace(target, policy=lambda: Watched(target.policy(), unread)))(inputs, seeds)
    assert [one.tobytes() for one in read] == [one.tobytes() for one in unread]
    np.testing.assert_array_equal(inside.executions.states, plain.states)
    np.testing.assert_array_equal(inside.executions.returns, plain.returns)


def driver(sizes=(5, 8, 6, 2)):
    rng = np.random.default_rng(0)
    count = sum((a + 1) * b for a, b in pairwise(sizes))
    return DrivingPolicy(MlpBank.from_parameters(rng.normal(size=(1, count)), sizes, "tanh"))


@pytest.mark.parametrize("name", ["acasxu", "coopnavi", "bipedal", "driver"])
def test_one_pass_gives_the_action_and_the_activations_of_two(name):
    make = driver if name == "driver" else load_target(name).policy
    shape = {"acasxu": (5,), "coopnavi": (3, 18), "bipedal": (24,), "driver": (5,)}[name]
    two, one = make(), make()
    two.begin(70)
    one.begin(70)
    rng = np.random.default_rng(1)
    for rows in (np.arange(70), np.array([3, 60, 4]), np.arange(70)):
        seen = rng.normal(size=(len(rows), *shape))
        inside, acted = two.activations(seen, rows), two.act(seen, rows)
        both = one.act_and_activations(seen, rows)
        assert both[0].tobytes() == acted.tobytes()
        assert both[1].values.tobytes() == inside.values.tobytes()
        assert both[1].layers == inside.layers


def test_decisions_come_in_order_with_the_state_they_were_taken_in():
    target = load_target("coopnavi")
    inputs, seeds = episodes(target, 6)
    inside: Any = record_inside(target, inputs, seeds)
    lengths = inside.executions.lengths - 1
    assert len(set(lengths.tolist())) > 1
    np.testing.assert_array_equal(inside.episodes, np.repeat(np.arange(6), lengths))
    np.testing.assert_array_equal(inside.steps, np.concatenate([np.arange(length) for length in lengths]))
    np.testing.assert_array_equal(inside.states[inside.steps == 0], inside.executions.states[:, 0])
    assert sum(layer.width for layer in inside.layers) == inside.activations.shape[1]


def test_activations_of_acasxu_tell_which_network_acts():
    target = load_target("acasxu")
    row = episodes(target, 40)[0][[17]]
    branch = [Segment(1, 6, (3.0,)), Segment(6, 9, (1.0,))]
    inside: Any = record_inside(target, row, np.zeros(1, np.uint64), Branches.of([branch], 1))
    acting, hidden = inside.activations[:, :5], inside.activations[:, 5:]
    done = np.array(record(target, row[0], 0, branch=branch).actions)
    np.testing.assert_array_equal(acting.argmax(axis=1), [0, *done[:-1]])
    np.testing.assert_array_equal(acting.sum(axis=1), 1)
    bank = target.policy()._bank
    for step, network in ((0, 0), (1, 3), (5, 3), (6, 1)):
        expected = forward(bank.layers(network), inside.observations[step])
        np.testing.assert_allclose(hidden[step], expected, rtol=1e-5, atol=1e-6)


def test_activations_of_coopnavi_are_those_of_all_agents():
    target = load_target("coopnavi")
    inside: Any = record_inside(target, *episodes(target, 2))
    bank, seen = target.policy()._bank, inside.observations.reshape(len(inside.steps), 3, -1)
    expected = [forward(bank.layers(agent), seen[:, agent]) for agent in range(3)]
    np.testing.assert_allclose(inside.activations, np.concatenate(expected, axis=1), rtol=1e-5, atol=1e-6)
    assert inside.layers[2].name == "agent 2 hidden 1"


@pytest.mark.parametrize("kind", [DrivingPolicy, CarlaPolicy])
def test_drivers_show_their_hidden_layers(kind):
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(5, 7)), rng.normal(size=7)), (rng.normal(size=(7, 3)), rng.normal(size=3))]
    policy, seen = kind(MlpBank.from_layers([layers])), rng.normal(size=(4, 5))
    before = policy.act(seen, np.arange(4))
    np.testing.assert_allclose(policy.activations(seen, np.arange(4)).values, forward(layers, seen))
    assert policy.act(seen, np.arange(4)).tobytes() == before.tobytes()


def test_a_policy_without_activations_leaves_observations_and_the_reason():
    target = load_target("ripple:dimensions=2")
    inside: Any = record_inside(target, *episodes(target, 2))
    assert inside.activations is None
    assert inside.layers == ()
    assert "FleePolicy has no activations" in inside.why_none
    assert len(inside.observations) == len(inside.steps) > 0


def test_batches_change_nothing():
    target = load_target("acasxu")
    inputs, seeds = episodes(target, 7)
    branches = Branches.of([[Segment(row + 1, row + 9, (4.0,))] for row in range(7)], 1)
    together = record_inside(target, inputs, seeds, branches)
    parts = record_inside(replace(target, batch_size=3), inputs, seeds, branches)
    for name in ("episodes", "steps", "observations", "activations", "states"):
        np.testing.assert_array_equal(getattr(together, name), getattr(parts, name))


def test_an_episode_that_raises_costs_itself_only():
    target = load_target("coopnavi")
    inputs, seeds = episodes(target, 3)

    def fragile():
        simulator: Any = target.simulator()
        step = simulator.step

        def checked(actions, rows):
            if simulator.is_bad and actions is not None and checked.steps > 1:
                raise RuntimeError("broken")
            checked.steps += 1
            return step(actions, rows)

        reset = simulator.reset

        def noticed(given, case_seeds):
            checked.steps = 0
            simulator.is_bad = bool((given == inputs[1]).all(axis=1).any())
            return reset(given, case_seeds)

        simulator.step, simulator.reset = checked, noticed
        return simulator

    whole: Any = record_inside(target, inputs, seeds)
    inside: Any = record_inside(replace(target, simulator=fragile), inputs, seeds)
    assert {row: error.kind for row, error in inside.executions.errors.items()} == {1: RAISED}
    for row in (0, 2):
        one, other = inside.episodes == row, whole.episodes == row
        np.testing.assert_array_equal(inside.activations[one], whole.activations[other])


def test_parts_of_records_are_flattened_one_after_another():
    records = np.zeros(2, [("a", np.float32, (2,)), ("b", [("c", np.int64), ("text", object)])])
    records["a"], records["b"]["c"] = [[1, 2], [3, 4]], [5, 6]
    np.testing.assert_array_equal(flattened(records), [[1, 2, 5], [3, 4, 6]])


def test_agents_that_are_gone_have_zeros(tmp_path):
    pytest.importorskip("pettingzoo", reason="needs the extra pettingzoo")
    rng = np.random.default_rng(0)
    layers = [(rng.normal(size=(2, 4)), rng.random(4) + 9), (rng.normal(size=(4, 3)), rng.normal(size=3))]
    arrays = {
        f"{kind}{n}": part for n, pair in enumerate(layers) for kind, part in zip("Wb", pair, strict=True)
    }
    np.savez(tmp_path / "p.npz", allow_pickle=False, activation="relu", **arrays)
    oracle = "oracle=info.guard_0.terminated&return<20"
    target = load_target(f"pettingzoo:{MORTALS}:MortalAgents:{oracle}", f"npz:{tmp_path / 'p.npz'}")
    made, seen, actions = [], [], {True: [], False: []}

    def policy():
        made.append(target.policy())
        return made[-1]

    inputs = target.inputs.sample(np.random.default_rng(1), 12)
    seeds = np.arange(12, dtype=np.uint64)

    def observer(_step, _rows, acted, frame):
        seen.append(frame.observations)
        if acted is not None:
            actions[is_read].append(acted)

    for is_read in (True, False):
        runner = Runner(replace(target, policy=(lambda: ReadingPolicy(policy())) if is_read else policy))
        executions = runner(inputs, seeds, observer)
        if is_read:
            inside = runner.policy.decisions(executions)
    assert all((one == other).all() for one, other in zip(actions[True], actions[False], strict=True))
    assert [layer.name for layer in inside.layers] == [
        f"{who} hidden 1" for who in target.policy()._agents.names
    ]
    shown = inside.activations.reshape(-1, 3, 4)
    is_gone = (shown == 0).all(axis=2)
    assert is_gone.any()
    assert not is_gone.all()
    expected = forward(layers, flattened(seen[0]["agents"]).reshape(-1, 3, 2))
    np.testing.assert_allclose(shown[inside.steps == 0], expected, rtol=1e-5)
