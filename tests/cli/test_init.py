import subprocess
import sys
from pathlib import Path

import pytest

from policyfuzz import load_target

RULES = "A,B,C4,D100,D101,D102,D103,E,F,I,N,RET,RUF,SIM,UP,W"
POLICY = """
def act(observation):
    x, x_dot, theta, theta_dot = observation
    return int(3 * theta + theta_dot + 0.1 * x + 0.3 * x_dot > 0)


def sloppy(observation):
    return int(3 * observation[2] + observation[3] > 0)
"""


def is_clean(path: Path) -> bool:
    """True where ruff has nothing to say."""
    common = ["--isolated", "--no-cache", "--line-length", "110", str(path)]
    lint = [sys.executable, "-m", "ruff", "check", "--select", RULES, *common]
    form = [sys.executable, "-m", "ruff", "format", "--check", *common]
    return not any(subprocess.run(line, check=False).returncode for line in (lint, form))


@pytest.mark.slow
def test_own_simulator_is_healthy_and_its_crash_is_found(cli):
    code, out, _ = cli("init")
    assert code == 0
    assert "policyfuzz check my_target.py:make_target" in out
    assert "policyfuzz fuzz my_target.py:make_target" in out
    assert is_clean(Path("my_target.py"))
    code, out, _ = cli("check", "my_target.py:make_target", "--thorough")
    assert code == 0, out
    code, out, _ = cli("fuzz", "my_target.py:make_target", "--max-execs", 1500, "--ui", "none", "-o", "c")
    assert code == 1, out
    assert cli("replay", "c", 1, "--trust")[0] == 1


@pytest.mark.slow
def test_environment_file_says_what_was_found_out_and_runs(cli):
    Path("policies.py").write_text(POLICY)
    code, _, _ = cli("init", "gym:CartPole-v1", "--policy", "py:policies.py:sloppy", "-o", "cart.py")
    assert code == 0
    text = Path("cart.py").read_text()
    assert '"theta": (-0.1' in text
    assert 'ORACLE = "terminated"' in text
    assert "HORIZON = 500" in text
    assert is_clean(Path("cart.py"))
    assert cli("check", "cart.py:make_target", "--episodes", 60)[0] == 0
    arguments = ("fuzz", "cart.py:make_target", "--max-execs", 100, "--ui", "none", "-o", "c")
    assert cli(*arguments)[0] == 1
    assert cli("replay", "c", 1, "--trust", "--no-picture")[0] == 1
    # another policy by its URI; this one can do it
    assert cli("replay", "c", 1, "--trust", "--no-picture", "--policy", "py:policies.py:act")[0] == 0


def test_file_and_name_are_the_same_target(cli):
    Path("policies.py").write_text(POLICY)
    assert cli("init", "gym:CartPole-v1", "--policy", "py:policies.py:act")[0] == 0
    written = load_target("my_target.py:make_target")
    named = load_target("gym:CartPole-v1", "py:policies.py:act")
    assert written.inputs == named.inputs
    assert written.horizon == named.horizon
    assert written.policy_sha256 == named.policy_sha256


@pytest.mark.parametrize("name", ["gym:CartPole-v1", "gym:Pendulum-v1", "gym:CliffWalking-v1"])
def test_file_without_a_policy_has_one_to_be_written(cli, name):
    code, out, _ = cli("init", name)
    assert code == 0
    assert "put yours into act" in out
    assert is_clean(Path("my_target.py"))
    assert load_target("my_target.py:make_target").policy_uri is None


def test_options_of_the_environment_are_kept_and_those_of_ours_spelt_out(cli):
    name = "gym:CartPole-v1:env.sutton_barto_reward=true,horizon=50,oracle=return<20,input=x=0"
    assert cli("init", name)[0] == 0
    text = Path("my_target.py").read_text()
    assert 'ENVIRONMENT = "gym:CartPole-v1:env.sutton_barto_reward=true"' in text
    assert "HORIZON = 50\n" in text
    assert 'INPUT = "x=0"' in text
    assert 'ORACLE = "return<20"' in text
    target = load_target("my_target.py:make_target")
    assert target.horizon == 50
    assert "x" not in target.inputs.names


ENVIRONMENT = """
import gymnasium
import numpy as np


class Hill(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9.0, 9.0, (1,))
    action_space = gymnasium.spaces.Box(1.0, 2.0, (2,))
    reset_options_space = gymnasium.spaces.Dict({"height": gymnasium.spaces.Box(0.5, 4.0, ())})

    def reset(self, *, seed=None, options=None):
        self.height = (options or {}).get("height", 1.0)
        return np.float32([self.height]), {}

    def step(self, action):
        self.height -= 0.1
        return np.float32([self.height]), self.height, self.height < 0, False, {}
"""


def test_environment_of_the_users_own_is_found_from_any_folder(cli, tmp_path, monkeypatch):
    Path("hill.py").write_text(ENVIRONMENT)
    assert cli("init", "gym:hill.py:Hill:horizon=20")[0] == 0
    text = Path("my_target.py").read_text()
    assert '"height": (0.5, 4.0),' in text
    assert "np.array([1.0, 1.0])" in text  # doing nothing is not allowed
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    arguments = ("--max-execs", 100, "--ui", "none", "-o", "c")
    assert cli("fuzz", "../my_target.py:make_target", *arguments)[0] == 1
    assert cli("replay", "c", 1, "--trust")[0] == 1


def test_file_that_is_there_is_left_alone(cli):
    Path("my_target.py").write_text("precious")
    code, _, err = cli("init")
    assert code == 2
    assert "--force" in err
    assert Path("my_target.py").read_text() == "precious"
    assert cli("init", "--force")[0] == 0
    assert Path("my_target.py").read_text() != "precious"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["CartPole-v1"], "did you mean gym:CartPole-v1?"),
        (["acasxu"], "policyfuzz fuzz acasxu"),
        (["-o", "target.txt"], "ends in .py"),
        (["-o", "nowhere/target.py"], "does its folder exist?"),
        (["--policy", "sb3:model.zip"], "policyfuzz init gym:NAME"),
    ],
)
def test_what_cannot_be_written_is_told(cli, arguments, said):
    code, _, err = cli("init", *arguments)
    assert code == 2
    assert said in err
    assert not list(Path().glob("*.py"))
