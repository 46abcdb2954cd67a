"""Names and options of Gymnasium targets, and environments with all kinds of spaces."""

import os
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import load_target
from policyfuzz.core.target import Runner
from policyfuzz.environments.build import literal

HERE = Path(__file__).parent
ENVIRONMENTS, POLICIES = HERE / "gym_environments.py", HERE / "gym_policies.py"
BRAVE, STEADY = f"py:{ENVIRONMENTS}:brave", f"py:{POLICIES}:steady"
CORRIDOR = f"gym:{ENVIRONMENTS}:Corridor:oracle=terminated"
CARTPOLE = "gym:CartPole-v1"


def run(target, *rows):
    """Executions of episodes that begin at `rows`."""
    inputs = np.array(rows, np.float64)
    return Runner(target)(inputs, np.arange(len(inputs), dtype=np.uint64))


def test_limit_of_the_environment_is_the_horizon():
    target = load_target(CARTPOLE, STEADY)
    assert (target.horizon, target.name, target.inputs.names) == (
        500,
        CARTPOLE,
        ("x", "x_dot", "theta", "theta_dot"),
    )
    assert run(target, [0, 0, 0, 0]).lengths.tolist() == [501]


@pytest.mark.parametrize("horizon", [7, 700])
def test_horizon_is_as_long_as_the_user_wants(horizon):
    target = load_target(f"{CARTPOLE}:horizon={horizon}", STEADY)
    assert target.horizon == horizon
    assert run(target, [0, 0, 0, 0]).lengths.tolist() == [horizon + 1]


def test_environment_that_counts_for_itself_is_believed():
    pytest.importorskip("minigrid", reason="needs the extra minigrid")
    target = load_target(
        "gym:MiniGrid-Empty-8x8-v0:wrap=minigrid.wrappers:ImgObsWrapper", f"py:{POLICIES}:minigrid"
    )
    assert target.horizon == 256
    assert not any(note.startswith("horizon:") for note in target.notes)


def test_environment_without_a_limit_says_so():
    target = load_target(CORRIDOR, BRAVE)
    assert target.horizon == 1000
    assert any("declares no limit" in note and "is an error" in note for note in target.notes)
    cut = load_target(f"gym:{ENVIRONMENTS}:Corridor:oracle=truncated", BRAVE)
    assert any("declares no limit" in note and "is cut" in note for note in cut.notes)


def test_arguments_reach_the_environment():
    frictionless = load_target(f"{CARTPOLE}:env.sutton_barto_reward=true,horizon=20", STEADY)
    assert run(frictionless, [0, 0, 0, 0]).returns.tolist() == [0]
    short = load_target(f"gym:{ENVIRONMENTS}:corridor:env.length=9,oracle=terminated", BRAVE)
    assert run(short, [0.0]).lengths.tolist() == [10]


def test_arguments_are_read_as_python_writes_them():
    texts = ["true", "False", "3", "-0.5", "None", "[1, 2]", "red", "'3'", "1e3", "v1.2"]
    assert [literal(text) for text in texts] == [
        True,
        False,
        3,
        -0.5,
        None,
        [1, 2],
        "red",
        "3",
        1000.0,
        "v1.2",
    ]


@pytest.mark.parametrize(("order", "seen"), [("Shifted;Doubled", 3.0), ("Doubled;Shifted", 2.0)])
def test_wrappers_are_put_on_from_the_inside(order, seen):
    wrap = ";".join(f"{ENVIRONMENTS}:{name}" for name in order.split(";"))
    found = run(load_target(f"{CORRIDOR},wrap={wrap}", BRAVE), [0.5])
    assert found.states[0, 0, 0] == seen


def test_wrappers_of_gymnasium_are_known_by_their_module():
    target = load_target(f"{CORRIDOR},wrap=gymnasium.wrappers:FlattenObservation", BRAVE)
    assert run(target, [1.5]).crashed.tolist() == [True]


def test_fresh_environments_remember_nothing():
    def twice(options):
        target = load_target(f"gym:{ENVIRONMENTS}:Forgetless:oracle=terminated{options}", BRAVE)
        runner, one = Runner(target), (np.zeros((1, 1)), np.zeros(1, np.uint64))
        return [runner(*one).returns[0] for _ in range(2)]

    first, second = twice("")
    assert first < second
    first, second = twice(",fresh=yes")
    assert first == second


def test_environment_is_drawn_unless_the_user_says_no():
    drawn, plain = (load_target(f"{CARTPOLE}{options}", STEADY) for options in ("", ":render=no"))
    assert hasattr(drawn.for_film().simulator(), "render")
    assert not hasattr(plain.for_film().simulator(), "render")
    assert not hasattr(load_target(CORRIDOR, BRAVE).for_film().simulator(), "render")


TOML = """
[bounds]
theta = [-0.02, 0.02]
[fixed]
x = 0.5
"""
START = """
import numpy as np
from policyfuzz.core.inputs import InputSpace, Real

class Tilted:
    inputs = InputSpace((Real("theta", -0.02, 0.02),))
    label = "a tilted pole"
    oracle = "terminated as fell"

    def begin(self, env, reset, values, seed):
        _, info = reset(seed=seed)
        env.state = np.array([0.5, 0.0, values[0], 0.0])
        return np.array(env.state, np.float32), info

    def read(self, env):
        return env.state[2:3]
"""


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("theta=-0.02..0.02;x=0.5", ("x_dot", "theta", "theta_dot")),
        ("start.toml", ("x_dot", "theta", "theta_dot")),
        ("start.py", ("theta",)),
    ],
)
def test_input_is_changed_by_text_and_by_files(tmp_path, monkeypatch, given, names):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "start.toml").write_text(TOML)
    (tmp_path / "start.py").write_text(START)
    target = load_target(f"{CARTPOLE}:horizon=5,input={given}", STEADY)
    assert target.inputs.names == names
    theta = next(one for one in target.inputs.dimensions if one.name == "theta")
    assert (theta.low, theta.high) == (-0.02, 0.02)
    first = run(target, np.full(len(names), 0.01)).states[0, 0]
    assert first[0] == 0.5
    assert first[2] == pytest.approx(0.01)
    monkeypatch.chdir(HERE)  # the name is good anywhere
    again = load_target(target.name, target.policy_uri)
    assert (again.name, again.inputs.names) == (target.name, names)


def test_oracle_and_label_of_a_start_file_are_used(tmp_path):
    (tmp_path / "start.py").write_text(START)
    target = load_target(f"{CARTPOLE}:input={tmp_path / 'start.py'}", STEADY)
    assert target.oracle.kinds == ("fell",)
    assert "input: a tilted pole" in target.notes


def test_seed_alone_can_be_asked_for():
    target = load_target(f"{CARTPOLE}:input=seed,horizon=5", STEADY)
    assert target.inputs.names == ("seed",)
    assert any("fresh draw" in note for note in target.notes)
    first, same, other = run(target, [3], [3], [4]).states[:, 0]
    assert (first == same).all()
    assert (first != other).any()


@pytest.mark.parametrize(
    "name",
    [
        f"{CARTPOLE}:oracle=return<q10%,horizon=20",
        "gym:Pendulum-v1:horizon=20",  # whose oracle is chosen from nominal episodes
        f"gym:{ENVIRONMENTS}:Corridor:wrap={ENVIRONMENTS}:Shifted,oracle=info.place>2 & terminated as fell",
        f"gym:{ENVIRONMENTS}:corridor:env.length=12,oracle=return<-20 | out_of_space",
    ],
)
def test_name_rebuilds_the_target(name):
    policy = f"py:{ENVIRONMENTS}:lean" if "Pendulum" in name else STEADY if "CartPole" in name else BRAVE
    target = load_target(name, policy)
    again = load_target(target.name, target.policy_uri)
    assert (again.name, again.oracle, again.horizon) == (target.name, target.oracle, target.horizon)
    assert again.policy_sha256 == target.policy_sha256
    assert "q10" not in target.name  # the number itself: another day's quantile might be another


def test_relative_file_is_named_absolutely(monkeypatch):
    monkeypatch.chdir(HERE)
    target = load_target(
        f"gym:{ENVIRONMENTS.name}:Corridor:oracle=terminated", f"py:{ENVIRONMENTS.name}:brave"
    )
    assert target.name == CORRIDOR
    monkeypatch.chdir(os.sep)
    assert load_target(target.name, target.policy_uri).policy_sha256 == target.policy_sha256
