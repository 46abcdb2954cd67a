"""Environments of the user's own by their names, and names that lead nowhere."""

import importlib
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.core.errors import MissingExtra, PolicyFuzzError, TargetCodeError, UsageError
from policyfuzz.core.target import Runner

HERE = Path(__file__).parent
ENVIRONMENTS, POLICIES = HERE / "gym_environments.py", HERE / "gym_policies.py"
BRAVE, STEADY = f"py:{ENVIRONMENTS}:brave", f"py:{POLICIES}:steady"


def run(target, *rows):
    """Executions of episodes that begin at `rows`."""
    inputs = np.array(rows, np.float64)
    return Runner(target)(inputs, np.arange(len(inputs), dtype=np.uint64))


@pytest.mark.parametrize(
    "name",
    [
        f"{ENVIRONMENTS}:Corridor",
        f"{ENVIRONMENTS}:corridor",
        f"{ENVIRONMENTS}:HouseOfTests/Corridor-v0",
        "gym_environments:Corridor",
        "gym_environments:HouseOfTests/Corridor-v0",
    ],
)
def test_environment_of_the_users_own_is_found(monkeypatch, name):
    monkeypatch.syspath_prepend(HERE)
    target = load_target(f"gym:{name}:oracle=terminated", BRAVE)
    assert target.inputs.names == ("start",)
    assert target.horizon == (20 if "v0" in name else 1000)
    assert run(target, [1.5], [0.0]).crashed.tolist() == [True, False]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CartPoll-v1", "Did you mean: `CartPole`"),
        ("MyEnv-v0", "(?s)doesn't exist.*hint: an environment of your own is named"),
        ("no_such_module:MyEnv-v0", "no module 'no_such_module'"),
        ("no_such_file.py:MyEnv", "no file"),
        (f"{ENVIRONMENTS}:Coridor", "did you mean 'Corridor'"),
        (f"{ENVIRONMENTS}:Coridor-v3", "doesn't exist"),
        (f"{ENVIRONMENTS}:brave", "raised TypeError"),
        (f"{ENVIRONMENTS}:Faulty", "(?s)missing 1 required.*env.NAME=VALUE"),
        (f"{ENVIRONMENTS}:nothing_much", "gave int, expected a gymnasium.Env"),
        (f"{ENVIRONMENTS}:Spaceless", "has no observation_space"),
        (f"{ENVIRONMENTS}:corridor:env.lenght=3", "(?s)with env.lenght: .*unexpected keyword"),
        ("CartPole-v1:horizon=0", "horizon is '0'"),
        ("CartPole-v1:horizon=long", "expected a whole number"),
        ("CartPole-v1:fresh=maybe", "fresh"),
        ("CartPole-v1:patience=0", "patience"),
        ("CartPole-v1:orcale=terminated", "did you mean 'oracle'"),
        ("CartPole-v1:oracle=terminatd", "did you mean 'terminated'"),
        ("CartPole-v1:input=thta=0", "did you mean 'theta'"),
        ("CartPole-v1:input=missing.toml", "there is no file 'missing.toml'"),
        ("CartPole-v1:wrap=nothing", "wrapper 'nothing'"),
        (f"CartPole-v1:wrap={ENVIRONMENTS}:Shiftd", "did you mean 'Shifted'"),
    ],
)
def test_what_cannot_be_made_is_told(name, said):
    with pytest.raises(PolicyFuzzError, match=said):
        load_target(f"gym:{name}", STEADY)


@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
def test_version_that_is_gone_names_the_new_one():
    with pytest.raises(UsageError, match="use `Taxi-v4` instead") as error:
        load_target("gym:Taxi-v3", STEADY)
    assert error.value.hint.startswith("use gym:Taxi-v4, if the policy was trained")


def test_policy_is_asked_for():
    with pytest.raises(PolicyFuzzError, match=r"(?s)no policy was given.*--policy sb3:model\.zip"):
        load_target("gym:CartPole-v1")


@pytest.mark.parametrize(
    ("name", "raised", "extra"),
    [
        ("LunarLander-v3", gymnasium.error.DependencyNotInstalled("Box2D is not installed"), "box2d"),
        ("Hopper-v5", gymnasium.error.DependencyNotInstalled("No module named 'mujoco'"), "mujoco"),
    ],
)
def test_missing_package_is_named_with_its_extra(monkeypatch, name, raised, extra):
    def make(*_, **__):
        raise raised

    monkeypatch.setattr(gymnasium, "make", make)
    with pytest.raises(MissingExtra, match=rf"pip install .*\[{extra}\]"):
        load_target(f"gym:{name}", STEADY)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("MiniGrid-Empty-8x8-v0", r"pip install .*\[minigrid\]"),
        ("BabyAI-GoToObj-v0", r"pip install .*\[minigrid\]"),
        ("ALE/Pong-v5", "pip install ale-py"),
    ],
)
def test_package_that_would_register_the_environment_is_named(monkeypatch, name, hint):
    own = importlib.import_module

    def import_module(module, *rest):
        if module in ("minigrid", "ale_py"):
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        return own(module, *rest)

    monkeypatch.setattr(importlib, "import_module", import_module)
    with pytest.raises(MissingExtra, match=hint):
        load_target(f"gym:{name}", STEADY)


def test_code_of_the_environment_that_breaks_is_shown(tmp_path):
    (tmp_path / "broken.py").write_text("import gymnasium\n\nclass Env(gymnasium.Env):\n    x = 1 / 0\n")
    with pytest.raises(TargetCodeError, match=r"ZeroDivisionError.*broken\.py:4"):
        load_target(f"gym:{tmp_path / 'broken.py'}:Env", STEADY)


@pytest.mark.parametrize(
    ("name", "successors"),
    [("Hopper-v3", "gym:Hopper-v4 or gym:Hopper-v5"), ("LunarLander-v2", "gym:LunarLander-v3")],
)
@pytest.mark.filterwarnings("ignore:.*is out of date:DeprecationWarning")
def test_environment_of_an_old_version_names_its_successors(name, successors):
    with pytest.raises(UsageError) as error:
        load_target(f"gym:{name}", "py:policy.py:act")
    assert error.value.hint.startswith(f"use {successors},")
