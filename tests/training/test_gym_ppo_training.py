"""How the shipped Gymnasium policies are made: starts, export, and that interrupted runs end as others do."""

# ruff: noqa: E402 (the modules under test need torch and stable-baselines3)
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium", reason="needs the extra gym")
torch = pytest.importorskip("torch", reason="only the training needs torch")
pytest.importorskip("stable_baselines3", reason="only the training needs stable-baselines3")

sys.path.insert(0, str(Path(__file__).parents[2] / "training"))

from dataclasses import replace

from gym_ppo import choose, train
from gym_ppo.export import to_bank
from gym_ppo.starts import drawn_starts
from gym_ppo.tasks import TASKS, Phase
from stable_baselines3 import PPO

from policyfuzz.policies.mlp import read_npz

PHASES = (Phase(2, (1e-2, 1e-3), entropy=0.01), Phase(1, (1e-3, 1e-3)))
TINY = replace(
    TASKS["cartpole"],
    environments=2,
    steps=32,
    updates=2,
    phases=PHASES,
    width=8,
    settings={"batch_size": 64},
)


def first_observations(env, seed, count=200):
    return np.stack([env.reset(seed=seed)[0], *(env.reset()[0] for _ in range(count - 1))])


def test_episodes_start_all_over_the_inputs_of_the_target():
    seen = first_observations(drawn_starts("CartPole-v1"), seed=3)
    reach = np.array([1.2, 0.6, 0.15, 0.6], np.float32)
    assert (np.abs(seen) <= reach).all()
    assert (np.abs(seen).max(axis=0) > 0.9 * reach).all()


def test_starts_of_one_seed_are_the_same():
    first, second, other = (first_observations(drawn_starts("CartPole-v1"), seed, 5) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_drawn_starts_refuse_options_of_reset():
    with pytest.raises(ValueError, match="starts are drawn"):
        drawn_starts("CartPole-v1").reset(options={"low": 0.0})


def test_exported_network_is_the_actor_of_the_model():
    model = PPO("MlpPolicy", drawn_starts("CartPole-v1"), seed=5, device="cpu")
    rng = np.random.default_rng(0)
    seen = rng.uniform(-2, 2, (300, 4)).astype(np.float32)
    with torch.no_grad():
        expected = model.policy.get_distribution(torch.from_numpy(seen)).distribution.logits.numpy()
    bank = to_bank(model.policy)
    logits = bank(seen, np.zeros(len(seen), np.int64))
    # torch tells log-probabilities: logits less a number of their row
    np.testing.assert_allclose(logits - logits[:, :1], expected - expected[:, :1], atol=1e-5)
    actions, _ = model.predict(seen, deterministic=True)
    decided = np.abs(logits[:, 0] - logits[:, 1]) > 1e-5
    np.testing.assert_array_equal(logits.argmax(axis=1)[decided], actions[decided])


def test_network_of_other_layers_is_not_exported():
    policy = {"activation_fn": torch.nn.ReLU}
    model = PPO("MlpPolicy", drawn_starts("CartPole-v1"), policy_kwargs=policy, device="cpu")
    with pytest.raises(ValueError, match="expected tanh"):
        to_bank(model.policy)


@pytest.mark.slow
def test_interrupted_training_ends_as_one_that_was_not(tmp_path):
    train.train(TINY, tmp_path / "whole", seed=1)
    train.train(TINY, tmp_path / "parts", seed=1, stop_after=1)
    assert not (tmp_path / "parts" / "round-001.npz").exists()
    train.train(TINY, tmp_path / "parts", seed=1)
    first, whole, parts = (
        read_npz(tmp_path / name).parameters
        for name in ("whole/round-000.npz", "whole/round-002.npz", "parts/round-002.npz")
    )
    np.testing.assert_array_equal(whole, parts)
    assert not np.array_equal(first, whole)


@pytest.mark.slow
def test_training_keeps_the_pole_up_longer_than_it_did_at_first(tmp_path):
    task = replace(TASKS["cartpole"], phases=(Phase(2, (1e-3, 1e-3)),))
    train.train(task, tmp_path, seed=1)
    arguments = ["cartpole", "--work", tmp_path, "--out", tmp_path / "chosen.npz", "--episodes", 32]
    chosen = choose.choose(choose.parser().parse_args([*map(str, arguments), "--final-episodes", "64"]))
    scores = choose.score(task.target, chosen, 64, seed=9)
    assert scores.lengths.mean() > 100
    assert (tmp_path / "chosen.npz").read_bytes() == chosen.read_bytes()


def test_work_folder_of_other_options_is_refused(tmp_path):
    (tmp_path / "options.json").write_text('{"seed": 2}')
    with pytest.raises(SystemExit, match="other options"):
        train.train(TINY, tmp_path, seed=1)
