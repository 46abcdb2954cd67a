"""The cloning of the expert: an interrupted run goes on as if nothing had happened."""

# ruff: noqa: E402 (the module under test needs torch)
import sys
from pathlib import Path

import numpy as np
import pytest

from policyfuzz.policies.mlp import read_npz
from policyfuzz.targets.driving.networks import DrivingPolicy

sys.path.insert(0, str(Path(__file__).parents[2] / "training"))

torch = pytest.importorskip("torch", reason="only the fitting needs torch")
pytest.importorskip("metadrive")

from driving import dagger

pytestmark = pytest.mark.slow


@pytest.fixture
def train(monkeypatch):
    """Run a tiny training into a folder; returns the parameters of the network it writes."""

    def run(folder):
        options = {"rounds": 3, "episodes": 2, "horizon": 6, "steps": 8, "last-steps": 12, "seed": 5}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        out = folder / "networks.npz"
        monkeypatch.setattr(
            sys, "argv", ["dagger", "--work", str(folder / "work"), "--out", str(out), *words]
        )
        dagger.main()
        return read_npz(out).parameters

    return run


@pytest.mark.parametrize("where", ["collect_once", "fit"])
def test_interrupted_training_ends_like_one_that_was_not(tmp_path, monkeypatch, train, where):
    whole = train(tmp_path / "whole")
    original, calls = getattr(dagger, where), []

    def interrupted(*arguments):
        calls.append(where)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(dagger, where, interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "broken")
    np.testing.assert_array_equal(train(tmp_path / "broken"), whole)


def test_network_drives_as_torch_says():
    network = dagger.make_student([1, 2])
    observations = np.random.default_rng(0).random((4, 275)).astype(np.float32)
    expected = network(torch.from_numpy(observations)).detach().numpy()
    policy = DrivingPolicy(dagger.to_bank(network))
    np.testing.assert_allclose(policy.act(observations, np.arange(4)), expected, atol=1e-6)


def test_fit_learns_what_the_teacher_says():
    rng = np.random.default_rng(0)
    observations = rng.random((2000, 275)).astype(np.float32)
    actions = np.tanh(observations[:, :2] - observations[:, 2:4]).astype(np.float32)
    network = dagger.fit(dagger.Lessons(observations, actions), 600, 2e-3, [0, 0])
    with torch.no_grad():
        error = network(torch.from_numpy(observations)).numpy() - actions
    assert np.square(error).mean() < 0.1 * actions.var()
