"""What `check` says of Gymnasium environments and policies that do not go together, and of faulty ones."""

import json
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[1] / "environments"
ENVIRONMENTS, POLICIES = FOLDER / "gym_environments.py", FOLDER / "gym_policies.py"
CORRIDOR = f"gym:{ENVIRONMENTS}:Corridor"
BRAVE, STEADY = f"py:{ENVIRONMENTS}:brave", f"py:{POLICIES}:steady"
CARTPOLE = "gym:CartPole-v1:horizon=60"


@pytest.fixture
def check(cli):
    """Exit code, notes, and diagnoses by name, of a target that can be loaded."""

    def run(target, policy, *words, episodes=20):
        code, out, err = cli("check", target, "--policy", policy, *words, "--episodes", episodes, "--json")
        assert out, err
        report = json.loads(out)
        assert report["healthy"] == (code == 0)
        return code, report["notes"], {one["name"]: one for one in report["diagnoses"]}

    return run


def levels(said):
    """Names of all diagnoses that are not good, with their levels."""
    return {name: one["level"] for name, one in said.items() if one["level"] != "good"}


def test_healthy_target_is_called_so(check):
    code, notes, said = check(CORRIDOR, BRAVE, "--oracle", "terminated")
    assert (code, levels(said)) == (0, {})
    assert "input: options of reset: start" in notes
    assert "oracle: terminated, as you asked" in notes


@pytest.mark.parametrize(
    ("shape", "said"),
    [((3, 2), "takes 3 numbers, and an observation is Box"), ((4, 5), "gives 5 number(s)")],
    ids=["observations", "actions"],
)
def test_network_of_other_spaces_is_refused(cli, tmp_path, shape, said):
    np.savez(tmp_path / "p.npz", W0=np.ones(shape), b0=np.zeros(shape[1]))
    code, _, err = cli("check", CARTPOLE, "--policy", "npz:p.npz")
    assert code == 2
    assert said in err
    assert "hint: " in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("gym:Acrobot-v1", "observations that are float32 numbers of shape (4,)"),
        (f"gym:{ENVIRONMENTS}:ThreeWayCartPole", "actions"),
    ],
    ids=["observations", "actions"],
)
def test_model_of_other_spaces_is_refused(cli, tmp_path, target, said):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    sb3.PPO("MlpPolicy", "CartPole-v1", seed=0, device="cpu").save(tmp_path / "m.zip")
    code, _, err = cli("check", target, "--policy", "sb3:m.zip", "--trust")
    assert code == 2
    assert "the policy does not fit the environment" in err
    assert said in err
    assert "hint: " in err


@pytest.fixture(scope="module")
def normalised(tmp_path_factory):
    """Folder of a model that has learnt on normalised observations, and of their statistics."""
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable-baselines3")
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    from policyfuzz.core.code_files import load_attribute

    folder = tmp_path_factory.mktemp("normalised")
    envs = VecNormalize(make_vec_env(load_attribute(f"{ENVIRONMENTS}:Faraway", "environment"), 8, seed=0))
    options = {"n_steps": 40, "batch_size": 80, "learning_rate": 3e-3, "seed": 0, "device": "cpu"}
    model = sb3.PPO("MlpPolicy", envs, **options).learn(3200)
    model.save(folder / "model.zip")
    envs.save(str(folder / "vecnormalize.pkl"))
    return folder


@pytest.mark.slow
def test_statistics_beside_the_model_are_found_and_used(check, normalised):
    code, notes, said = check(
        f"gym:{ENVIRONMENTS}:Faraway", f"sb3:{normalised}/model.zip", "--trust", "--oracle", "return<5"
    )
    assert code == 0, said
    assert any("vecnormalize.pkl" in note for note in notes)
    assert "when it was trained" in said["policy"]["message"]


@pytest.mark.slow
def test_missing_statistics_are_told_from_the_recorded_return(cli, check, normalised, tmp_path):
    (tmp_path / "model.zip").write_bytes((normalised / "model.zip").read_bytes())
    (tmp_path / "elsewhere.pkl").write_bytes((normalised / "vecnormalize.pkl").read_bytes())
    chosen = (f"gym:{ENVIRONMENTS}:Faraway", "sb3:model.zip", "--trust", "--oracle", "return<-15")
    code, _, said = check(*chosen)
    assert (code, said["policy"]["level"]) == (3, "unhealthy")
    assert "when it was trained" in said["policy"]["message"]
    assert "VecNormalize" in said["policy"]["hint"]
    code, _, err = cli("fuzz", *chosen[:1], "--policy", *chosen[1:], "--max-execs", 100, "--ui", "none")
    assert code == 3
    assert "VecNormalize" in err
    given = f"{chosen[1]}?normalize=elsewhere.pkl"
    assert check(chosen[0], given, *chosen[2:])[2]["policy"]["level"] == "good"


@pytest.mark.slow
def test_return_of_another_horizon_is_not_compared(check, normalised):
    """An episode of three steps cannot earn what one of twenty did."""
    chosen = (
        f"gym:{ENVIRONMENTS}:Faraway",
        f"sb3:{normalised}/model.zip",
        "--trust",
        "--oracle",
        "return<-2",
    )
    _, _, said = check(*chosen, "--horizon", 3)
    assert said["policy"]["level"] == "good"
    assert "another horizon" in said["policy"]["message"]


@pytest.mark.parametrize("name", ["Restless", "Forgetless"])
def test_nondeterministic_environment_is_told(check, name):
    code, _, said = check(f"gym:{ENVIRONMENTS}:{name}", BRAVE, "--oracle", "terminated")
    assert (code, said["determinism"]["level"]) == (3, "unhealthy")
    assert "gave another result when run again" in said["determinism"]["message"]
    assert said["determinism"]["hint"]


def test_environment_that_remembers_is_sound_when_made_afresh(check):
    code, _, said = check(f"gym:{ENVIRONMENTS}:Forgetless:fresh=yes", BRAVE, "--oracle", "terminated")
    assert (code, levels(said)) == (0, {})


START = """
import numpy as np
from policyfuzz.core.inputs import InputSpace, Real

class Start:
    inputs = InputSpace((Real("tilt", 0.0, 0.1), Real("place", -1.0, 1.0)))

    def begin(self, env, reset, values, seed):
        _, info = reset(seed=seed)
        env.state = np.array([{place}, 0.0, values[0], 0.0])
        return np.array(env.state, np.float32), info

    def read(self, env):
        return np.array([env.state[2], env.state[0]])
"""


@pytest.mark.parametrize(
    ("target", "policy", "name", "verdict"),
    [
        (f"gym:{ENVIRONMENTS}:Deaf", BRAVE, "start", (0, "warning")),  # seldom
        (f"gym:{ENVIRONMENTS}:HeavyCartPole:horizon=30,bounds=wide", STEADY, "x", (3, "unhealthy")),
        (f"{CARTPOLE},input=start.py", STEADY, "place", (3, "unhealthy")),
    ],
    ids=["options", "state", "file"],
)
def test_start_that_does_not_read_back_is_told(check, tmp_path, target, policy, name, verdict):
    (tmp_path / "start.py").write_text(START.format(place="np.minimum(values[1], -0.4)"))
    code, _, said = check(target, policy, "--oracle", "terminated", episodes=40)
    assert (code, said["errors"]["level"]) == verdict
    assert f"{name} was set to" in said["errors"]["message"]
    assert "and reads back as" in said["errors"]["message"]
    assert "--input seed" in said["errors"]["hint"]


def test_start_of_a_file_that_does_as_it_says_is_used(check, tmp_path):
    (tmp_path / "start.py").write_text(START.format(place="values[1]"))
    code, notes, said = check(f"{CARTPOLE},input=start.py", STEADY)
    assert code == 0, said
    assert "input: as start.py says" in notes


def test_oracle_that_always_fires_is_told(check):
    code, _, said = check(CORRIDOR, BRAVE, "--oracle", "return<1000")
    assert (code, said["oracle"]["level"]) == (3, "unhealthy")
    assert "100.0% of 20 random episodes crash" in said["oracle"]["message"]
    assert "the oracle is wrong" in said["oracle"]["hint"]


def test_oracle_that_never_fires_is_told(check):
    code, _, said = check(CORRIDOR, BRAVE, "--oracle", "return<-1e9")
    assert (code, said["oracle can fire"]["level"]) == (0, "warning")
    assert "neither the policy nor random actions crash" in said["oracle can fire"]["message"]
    assert "try another --oracle" in said["oracle can fire"]["hint"]


def test_key_that_info_never_has_is_told(check):
    code, _, said = check(CORRIDOR, BRAVE, "--oracle", "info.plaec>2")
    assert (code, said["oracle keys"]["level"]) == (0, "warning")
    assert said["oracle can fire"]["level"] == "warning"
    assert "info never has plaec" in said["oracle keys"]["message"]
    assert "spelt" in said["oracle keys"]["hint"]


def test_key_that_appears_with_the_crash_only_is_no_reason_to_stop(check):
    code, _, said = check(f"gym:{ENVIRONMENTS}:Quiet", BRAVE, "--oracle", "info.fell")
    assert (code, levels(said)) == (0, {"oracle keys": "warning"})
    assert "crash" in said["oracle"]["message"]


def test_key_of_info_can_be_the_oracle(check):
    code, _, said = check(CORRIDOR, BRAVE, "--oracle", "info.place>2")
    assert (code, levels(said)) == (0, {})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Ancient", "ValueError"),
        ("Quitter", "SystemExit: enough"),
        ("Faulty:env.fault=reset,input=start=-4..-3.5", "KeyError: 'no map of this place'"),
    ],
)
def test_environment_that_can_hardly_be_run_is_unhealthy(check, name, told):
    code, _, said = check(f"gym:{ENVIRONMENTS}:{name}", BRAVE, "--oracle", "terminated")
    assert (code, said["errors"]["level"]) == (3, "unhealthy")
    assert "100.0% of 20 random episodes end in an error" in said["errors"]["message"]
    assert told in said["errors"]["message"]


def test_quantile_needs_episodes_that_can_be_run(cli):
    target = f"gym:{ENVIRONMENTS}:Quitter"
    code, _, err = cli("check", target, "--policy", BRAVE, "--oracle", "return<q5%")
    assert code == 3
    assert "no episode from the environment's own reset could be run" in err


def test_crashes_from_the_own_reset_and_within_the_bounds_are_side_by_side(check, cli):
    _, notes, said = check(CARTPOLE, STEADY, "--bounds", "own")
    assert said["crash rate"]["message"] == (
        "0 of 50 from the environment's own reset, 0 of 20 within the bounds"
    )
    assert said["crash rate"]["counts"]["episodes"] == 50
    assert "valid and solvable" not in json.dumps(said)  # nobody has tested it
    assert any(note.startswith("bounds: what the environment's own reset draws") for note in notes)
    code, out, _ = cli("check", CARTPOLE, "--policy", STEADY, "--episodes", 5)
    assert code == 0
    assert "input x: real, -0.15 to 0.15 m (own reset: -0.05 to 0.05)" in out


def test_policy_that_fails_more_often_than_not_is_unhealthy(check, tmp_path):
    (tmp_path / "falls.py").write_text("def act(observation):\n    return 1\n")
    code, _, said = check("gym:CartPole-v1", "py:falls.py:act")
    assert (code, said["crash rate"]["level"]) == (3, "unhealthy")
    assert "50 of 50 from the environment's own reset" in said["crash rate"]["message"]


@pytest.mark.slow
def test_campaign_says_how_far_its_findings_lie_outside(cli):
    # it does not look where the cart is, so that starts near an end of the track fail
    policy = f"py:{POLICIES}:nearsighted"
    target = ("gym:CartPole-v1:horizon=60", "--policy", policy, "--bounds", "wide", "--oracle", "terminated")
    code, out, _ = cli("fuzz", *target, "--max-execs", 800, "-o", "mine", "--ui", "none")
    assert code == 1
    assert "0 of 50 from the environment's own reset" in out
    assert "valid and solvable" not in out
    assert "outside of" in out
    _, out, _ = cli("show", "mine", "--json")
    findings = json.loads(out)
    assert findings
    for finding in findings:
        for name, by in finding["outside_own_reset"].items():
            assert abs(finding["input"][name]) - abs(by) == pytest.approx(0.05, abs=0.001)
    _, out, _ = cli("show", "mine", findings[0]["finding"])
    assert "own reset: -0.05 to 0.05" in out
    code, _, _ = cli("replay", "mine", findings[0]["finding"], "--trust")
    assert code == 1
    _, out, _ = cli("status", "mine", "--json")
    assert json.loads(out)["own_reset"] == {"crashes": 0, "episodes": 50}
