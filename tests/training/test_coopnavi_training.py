# ruff: noqa: E402 (the modules under test need torch)
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="training needs torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "training"))

from coopnavi import train
from coopnavi.evaluate import run
from coopnavi.maddpg import Maddpg, Settings
from coopnavi.networks import Perceptrons, Views, forces, joint_forces, to_bank
from coopnavi.replay import Replay
from coopnavi.worlds import TrainingWorlds

from policyfuzz.policies.mlp import read_npz
from policyfuzz.targets.coopnavi import layout, physics
from policyfuzz.targets.coopnavi.actors import act


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def options(work: Path, *more: str):
    small = ["--updates", "40", "--worlds", "32", "--replay", "700", "--batch", "32", "--width", "16"]
    every = ["--every", "13", "--log-every", "1000"]
    return train.parser().parse_args(
        ["--work", str(work), "--out", str(work / "networks.npz"), *small, *every, *more]
    )


def test_interrupted_training_ends_like_an_uninterrupted_one(tmp_path):
    train.train(options(tmp_path / "whole"))
    train.train(options(tmp_path / "parts", "--stop-after", "17"))
    part = read_npz(tmp_path / "parts" / "networks.npz").sha256
    train.train(options(tmp_path / "parts"))
    whole, parts = (read_npz(tmp_path / name / "networks.npz").sha256 for name in ("whole", "parts"))
    assert whole == parts != part


def test_killed_training_goes_on_from_its_last_checkpoint(tmp_path, monkeypatch):
    train.train(options(tmp_path / "whole"))

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(train, "write_npz", killed)  # after the first checkpoint
        with pytest.raises(KeyboardInterrupt):
            train.train(options(tmp_path / "killed"))
    train.train(options(tmp_path / "killed"))
    whole, killed_run = (read_npz(tmp_path / name / "networks.npz").sha256 for name in ("whole", "killed"))
    assert whole == killed_run


def test_folder_of_another_run_is_refused(tmp_path):
    train.train(options(tmp_path, "--stop-after", "1"))
    with pytest.raises(SystemExit, match="other options"):
        train.train(options(tmp_path, "--seed", "2"))


def test_actors_in_training_act_as_the_exported_ones(rng):
    worlds = physics.start(layout.sample(rng, 50))
    worlds[:, physics.VELOCITIES] = rng.normal(size=(50, 6))
    actors = Perceptrons(3, (14, 64, 64, 5), rng)
    with torch.no_grad():
        for weights in actors.parameters():
            weights += 0.1 * torch.from_numpy(rng.normal(size=weights.shape)).float()
    observations = np.empty((50, 3, 18))
    physics.observe(worlds, np.arange(50), observations)
    actions = act(to_bank(actors), observations)
    expected = np.stack([actions[..., 1] - actions[..., 2], actions[..., 3] - actions[..., 4]], axis=-1)
    found, _ = joint_forces(actors, Views(torch.from_numpy(worlds).float()))
    np.testing.assert_allclose(found.detach().numpy(), expected.reshape(50, 6), atol=1e-5)


def test_an_actor_sees_nothing_but_its_own_observation(rng):
    worlds = torch.from_numpy(physics.start(layout.sample(rng, 10))).float()
    faster = worlds.clone()
    faster[:, 6:8] += 1.0  # the velocity of the first agent is its own business
    before, after = Views(worlds).of_agents, Views(faster).of_agents
    assert torch.equal(before[1:], after[1:])
    assert not torch.equal(before[0], after[0])


def test_forces_are_differences_of_the_softmax():
    found = forces(torch.log(torch.tensor([0.1, 0.5, 0.2, 0.05, 0.15])))
    np.testing.assert_allclose(found.numpy(), [0.3, -0.1], atol=1e-6)


def test_replay_forgets_the_oldest_steps(rng):
    replay = Replay(10)
    for number in range(4):
        rows = np.full((4, 18), float(number))
        replay.add(rows, rows[:, :6], rows + 0.5, rows[:, 0])
    worlds, forces_then, after, rewards = replay.draw(rng, 500)
    assert set(rewards) == {1.0, 2.0, 3.0}
    np.testing.assert_array_equal(worlds[:, 0], rewards)
    np.testing.assert_array_equal(forces_then[:, 5], rewards)
    np.testing.assert_array_equal(after[:, 11], rewards + 0.5)
    np.testing.assert_array_equal(after[:, 12:], worlds[:, 12:])


def test_training_worlds_start_anew_when_their_time_is_up(rng):
    worlds = TrainingWorlds(8, 4, rng)
    bank = to_bank(Perceptrons(3, (14, 64, 64, 5), rng))
    landmarks = worlds.worlds[:, physics.LANDMARKS].copy()
    before, _, after, _ = worlds.step(bank, 0.0, rng)
    np.testing.assert_array_equal(before[:, physics.LANDMARKS], after[:, physics.LANDMARKS])
    is_new = (worlds.worlds[:, physics.LANDMARKS] != landmarks).all(axis=1)
    assert is_new.tolist() == [False, False, False, True] * 2
    np.testing.assert_array_equal(worlds.worlds[~is_new], after[~is_new])


@pytest.mark.slow
def test_critic_learns_the_value_of_standing_still(rng):
    """Actors that are never taught stay where they are, so that the value is known in closed form."""
    learner = Maddpg(Settings(critic_width=64, batch=256, actor_every=10**9, follow_rate=0.05), rng)
    for network in (learner.actors, learner.slow_actors):
        network.load([torch.zeros_like(parameter) for parameter in network.parameters()])
    starts = physics.start(layout.sample(rng, 4000))
    rewards, counts = np.empty(4000), np.empty((3, 4000), np.int64)
    physics.judge(starts, np.arange(4000), rewards, *counts)
    replay = Replay(4000)
    replay.add(starts, np.zeros((4000, 6)), starts, 0.1 * rewards)
    for _ in range(1500):
        learner.update(replay, rng, 1.0)
    with torch.no_grad():
        views = Views(torch.from_numpy(starts).float())
        values = learner.critic(views.with_forces(torch.zeros(4000, 6)))[0, :, 0].numpy()
    expected = 0.1 * rewards / (1 - 0.95)
    assert np.corrcoef(values, expected)[0, 1] > 0.9
    assert abs(values.mean() - expected.mean()) < 0.1 * abs(expected.mean())


def test_evaluation_agrees_with_the_target(rng):
    from policyfuzz.targets.coopnavi.target import make_target

    bank = to_bank(Perceptrons(3, (14, 64, 64, 5), rng))
    starts = layout.sample(rng, 200)
    episodes = run(bank, starts, 30)
    target = make_target({"finish": "ignored", "horizon": "30"}, None)
    simulator = target.simulator()
    frame = simulator.reset(starts, np.zeros(200, np.uint64))
    for _ in range(30):
        frame = simulator.step(act(bank, frame.observations), np.arange(200))
    np.testing.assert_array_equal(episodes.collisions, frame.signals[:, 0])
    np.testing.assert_array_equal(episodes.finished, frame.signals[:, 1] > 0)
    np.testing.assert_array_equal(episodes.covered, frame.signals[:, 2] == 3)
