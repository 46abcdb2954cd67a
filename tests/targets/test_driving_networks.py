"""The drivers: the expert of the package, the shipped clone, and networks of users."""

import sys
from itertools import pairwise

import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import MissingExtra, PolicyError, UsageError
from policyfuzz.policies.mlp import MlpBank, write_npz
from policyfuzz.targets.driving import networks, scenario

ROW = np.zeros(1, np.int64)


def random_bank(sizes=(275, 8, 2), count=1, seed=0, **activations):
    rng = np.random.default_rng(seed)
    parameters = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
    return MlpBank.from_parameters(rng.normal(size=(count, parameters)) / 20, sizes, **activations)


@pytest.mark.parametrize(("hidden", "output"), [("relu", "linear"), ("tanh", "linear"), ("tanh", "tanh")])
def test_policy_gives_what_the_bank_gives(hidden, output):
    bank = random_bank((275, 16, 9, 4), hidden=hidden, output=output)
    observations = np.random.default_rng(1).random((5, 275)).astype(np.float32)
    expected = bank(observations, np.zeros(5, np.int64))[:, :2]
    np.testing.assert_allclose(
        networks.DrivingPolicy(bank).act(observations, np.arange(5)), expected, rtol=1e-12, atol=1e-12
    )


def test_policy_of_one_row_does_not_depend_on_the_others():
    policy = networks.DrivingPolicy(random_bank())
    observations = np.random.default_rng(1).random((5, 275))
    together = policy.act(observations, np.arange(5))
    alone = [policy.act(observations[[i]], ROW)[0] for i in range(5)]
    np.testing.assert_array_equal(together, alone)


def test_shipped_clone_loads_and_fits_the_observation():
    bank = networks.cloned()
    assert bank.sizes == (275, 128, 128, 2)
    assert bank.activations == ("tanh", "tanh", "tanh")


def test_network_of_a_user_is_named_by_its_whole_path(tmp_path, monkeypatch):
    write_npz(tmp_path / "mine.npz", random_bank((275, 8, 4)))
    monkeypatch.chdir(tmp_path)
    target = load_target("driving-il", "driving:mine.npz")
    assert target.policy_uri == f"driving:{tmp_path / 'mine.npz'}"
    assert target.policy_sha256 != load_target("driving-il").policy_sha256


@pytest.mark.parametrize(
    ("bank", "complaint"),
    [
        (
            random_bank((270, 8, 2)),
            r"holds 1 network\(s\) from 270 to 2 numbers, expected 1 from 275 to 2 or 4",
        ),
        (random_bank((275, 8, 3)), r"holds 1 network\(s\) from 275 to 3"),
        (random_bank(count=2), r"holds 2 network\(s\)"),
    ],
)
def test_network_that_does_not_fit_is_refused(tmp_path, bank, complaint):
    write_npz(tmp_path / "mine.npz", bank)
    with pytest.raises(PolicyError, match=f"mine.npz {complaint}"):
        load_target("driving-il", f"driving:{tmp_path / 'mine.npz'}")


def test_file_that_holds_no_network_is_refused(tmp_path):
    (tmp_path / "mine.npz").write_text("nothing")
    with pytest.raises(PolicyError, match=r"mine\.npz"):
        load_target("driving-il", f"driving:{tmp_path / 'mine.npz'}")
    with pytest.raises(PolicyError, match="no file"):
        load_target("driving-il", "driving:nowhere.npz")


@pytest.mark.parametrize("policy", ["acasxu:x", "driving", "mine.npz"])
def test_policy_of_another_kind_is_refused(policy):
    with pytest.raises(PolicyError, match="driving-il cannot use policy"):
        load_target("driving-il", policy)


@pytest.mark.parametrize("horizon", ["0", "-3", "long", "1.5"])
def test_horizon_that_is_no_number_of_steps_is_refused(horizon):
    with pytest.raises(UsageError, match="expected a whole number from 1"):
        load_target(f"driving-il:horizon={horizon}")


def test_horizon_is_part_of_the_name_where_it_is_not_the_default():
    assert load_target("driving-il").horizon == 200
    assert load_target("driving-il:horizon=200").name == "driving-il"
    assert load_target("driving-il:horizon=50").name == "driving-il:horizon=50"


def test_missing_package_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "metadrive", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[metadrive\]"):
        load_target("driving-rl")
    with pytest.raises(MissingExtra, match=r"pip install .*\[metadrive\]"):
        load_target("driving-il").simulator()


@pytest.mark.slow
def test_our_expert_acts_like_the_expert_of_the_package():
    expert = pytest.importorskip("metadrive.examples.ppo_expert.numpy_expert").expert
    target = load_target("driving-rl")
    simulator, policy = target.simulator(), target.policy()
    inputs = scenario.INPUTS.sample(np.random.default_rng(0), 200)
    inputs = inputs[scenario.INPUTS.is_valid(inputs)]
    for road in range(4):
        row = np.array([road, *inputs[road, 1:]])
        frame = simulator.reset(row[None], np.zeros(1, np.uint64))
        for _ in range(25):
            action = policy.act(frame.observations, ROW)
            theirs = expert(simulator.environment.agent, deterministic=True)
            np.testing.assert_allclose(action[0], theirs, atol=1e-5)
            frame = simulator.step(action, ROW)
