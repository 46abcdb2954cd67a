"""Campaigns remember what the user's own files were: a changed one is not mixed with the old."""

import pytest

from policyfuzz import CampaignReader, load_target
from policyfuzz.cli.main import exit_code

CONTROLLER = "def act(observation):\n    return int(observation[2] + 0.3 * observation[3] > 0)\n"
CART = """
from gymnasium.envs.classic_control.cartpole import CartPoleEnv


class Cart(CartPoleEnv):
    pass
"""
PUSH = """
import numpy as np
from policyfuzz import InputSpace, Real


class Push:
    inputs = InputSpace((Real("push", -3.0, 3.0),))

    def begin(self, env, reset, values, seed):
        observation, info = reset(seed=seed)
        env.state[1] = values[0]
        return np.array(env.state, np.float32), info

    def read(self, env):
        return np.array([env.state[1]])
"""


@pytest.fixture
def fuzz(tmp_path, monkeypatch):
    """Run a short campaign in an empty folder; gives back the exit code."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("controller.py", CONTROLLER), ("cart.py", CART), ("push.py", PUSH)):
        (tmp_path / name).write_text(text)

    def run(target, *words):
        always = ["--policy", "py:controller.py:act", "--oracle", "terminated", "--horizon", "80"]
        limits = ["--max-execs", "60", "--samples", "20", "--force", "--ui", "none", "-o", "c"]
        return exit_code(["fuzz", target, *always, *limits, *words])

    return run


@pytest.mark.parametrize(
    ("target", "words", "file", "old", "new"),
    [
        (
            "gym:cart.py:Cart",
            ("--input", "theta=-0.2..0.2", "--bounds", "wide"),
            "cart.py",
            "pass",
            "gravity = 20.0",
        ),
        ("gym:CartPole-v1", ("--input", "push.py"), "push.py", "values[0]", "values[0] / 1"),
    ],
)
def test_changed_code_is_not_resumed_and_told_on_replay(
    fuzz, capsys, tmp_path, target, words, file, old, new
):
    assert fuzz(target, *words) == 1
    assert fuzz(target, *words, "--resume") == 1
    path = tmp_path / file
    path.write_text(path.read_text().replace(old, new))
    assert fuzz(target, *words, "--resume") == 2
    assert "files that the target is written in have changed" in capsys.readouterr().err
    exit_code(["replay", "c", "1", "--trust", "--no-picture"])
    assert "have changed since" in capsys.readouterr().err


def test_toml_file_is_part_of_the_name_and_may_go(fuzz, capsys, tmp_path):
    bounds = tmp_path / "bounds.toml"
    bounds.write_text("[bounds]\ntheta = [-0.2, 0.2]\n\n[fixed]\nx = 2.0\n")
    assert fuzz("gym:CartPole-v1", "--input", "bounds.toml") == 1
    assert "theta=-0.2..0.2;x=2.0" in CampaignReader("c").config.target
    bounds.write_text("[bounds]\ntheta = [-0.2, 0.2]\n\n[fixed]\nx = 2.1\n")
    assert fuzz("gym:CartPole-v1", "--input", "bounds.toml", "--resume") == 2
    bounds.unlink()
    assert exit_code(["replay", "c", "1", "--trust", "--no-picture"]) == 1
    assert "exactly as recorded" in capsys.readouterr().out


def test_target_of_the_users_own_is_known_by_its_file(tmp_path):
    own = tmp_path / "own.py"
    own.write_text("from policyfuzz import load_target\n\n\ndef make():\n    return load_target('ripple')\n")
    before = load_target(f"{own}:make").code_sha256
    assert before == load_target(f"{own}:make").code_sha256 != ""
    own.write_text(own.read_text() + "\n# changed\n")
    assert load_target(f"{own}:make").code_sha256 != before
    assert load_target("ripple").code_sha256 == ""
