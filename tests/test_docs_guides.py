"""The guides: what they show works as it stands. BLOCKS in test_docs.py says what there is to run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[1] / "docs"

pytestmark = pytest.mark.slow

CONTROLLER = """
def act(observation):
    x, x_dot, theta, theta_dot = observation
    return int(theta + 0.3 * theta_dot + 0.02 * x + 0.05 * x_dot > 0)
"""


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.S)


def commands(page: str) -> list[list[str]]:
    """Every policyfuzz command line of `page`, without comments."""
    lines = "\n".join(blocks(page, "sh")).splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("policyfuzz ")]


def python(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"} | variables
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def policyfuzz(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command line of a guide, for some episodes where it says some time."""
    short = " ".join(arguments)
    short = re.sub(r"--max-time \w+", "--max-execs 260", short)
    return python(folder, "-m", "policyfuzz", *shlex.split(short))


def test_gymnasium_guide_runs_as_it_stands(tmp_path):
    (tmp_path / "controller.py").write_text(CONTROLLER)
    (tmp_path / "push.py").write_text(blocks("gymnasium.md", "python")[0])
    (tmp_path / "bounds.toml").write_text(blocks("gymnasium.md", "toml")[0])
    for line in commands("gymnasium.md"):
        if "gym-MyEnv-1" in " ".join(line):
            continue  # a campaign of the reader's
        line += ["--max-execs", "40", "--ui", "none"] if line[0] == "fuzz" else ["--episodes", "40"]
        result = python(tmp_path, "-m", "policyfuzz", *line)
        assert result.returncode in (0, 1), f"{line}: {result.stderr}"
    check = python(tmp_path, "-m", "policyfuzz", *commands("gymnasium.md")[0], "--episodes", "20")
    assert blocks("gymnasium.md", "text")[0].splitlines()[1:] == check.stdout.splitlines()[1:9]
    shipped = python(tmp_path, "-c", blocks("gymnasium.md", "python")[1])
    assert "findings" in shipped.stdout, shipped.stderr


def test_own_simulator_is_what_init_writes(tmp_path):
    assert python(tmp_path, "-m", "policyfuzz", "init").returncode == 0
    written, suite, _ = blocks("own-simulator.md", "python")
    assert (tmp_path / "my_target.py").read_text() == written
    (tmp_path / "test_my_target.py").write_text(suite)
    tested = python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_target.py")
    assert "13 passed, 1 skipped" in tested.stdout, tested.stdout  # it does not render


def test_simulator_of_many_episodes_is_healthy_and_can_be_fuzzed(tmp_path):
    (tmp_path / "pendulum.py").write_text(blocks("own-simulator.md", "python")[2])
    check = python(tmp_path, "-m", "policyfuzz", "check", "pendulum:make_target", "--thorough")
    assert check.returncode == 0, check.stdout
    arguments = ["fuzz", "pendulum:make_target", "--max-execs", "3000", "--ui", "none"]
    assert python(tmp_path, "-m", "policyfuzz", *arguments).returncode == 1


def test_notebook_runs_from_top_to_bottom(tmp_path):
    pytest.importorskip("pandas", reason="the page shows a data frame")
    text = "\n".join(blocks("python.md", "python"))
    assert text.count('max_time="30s"') == 1
    # as many episodes on any machine
    result = python(tmp_path, "-c", text.replace('max_time="30s"', "max_execs=400"))
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "fall.gif").is_file()


@pytest.mark.parametrize("page", ["inside.md", "monitor.md", "oracles.md", "strategies.md", "triage.md"])
def test_every_python_example_runs(tmp_path, page):
    for block in blocks(page, "python"):
        result = python(tmp_path, "-c", block)
        assert result.returncode == 0, result.stderr


def test_onnx_guide_finds_a_failure(tmp_path):
    pytest.importorskip("onnxruntime", reason="needs the extra onnx")
    made = python(tmp_path, "-c", blocks("onnx-controller.md", "python")[0])
    assert made.returncode == 0, made.stderr
    *_, fuzz = commands("onnx-controller.md")
    result = policyfuzz(tmp_path, [shlex.quote(word) for word in fuzz])
    assert result.returncode == 1, result.stderr + result.stdout


def sb3_commands() -> list[list[str]]:
    """`check` and `fuzz` of the small model that the guide trains."""
    return [line for line in commands("sb3-model.md") if "gym:CartPole-v1" in line]


def test_sb3_guide_works_with_a_model_of_any_strength(tmp_path):
    pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    made = python(tmp_path, "-c", blocks("sb3-model.md", "python")[0])
    assert made.returncode == 0, made.stderr
    check, fuzz = sb3_commands()
    checked = python(tmp_path, "-m", "policyfuzz", *check, "--episodes", "64")
    assert checked.returncode in (0, 3), checked.stderr  # every processor rounds a training run differently
    assert "policy: returns" in checked.stdout
    result = policyfuzz(tmp_path, [*fuzz, "--force"])
    assert result.returncode in (0, 1), result.stderr + result.stdout


def test_sb3_guide_finds_the_failures_of_a_model_that_has_some(tmp_path):
    sb3 = pytest.importorskip("stable_baselines3", reason="needs the extra sb3")
    torch = pytest.importorskip("torch", reason="needs the extra sb3")
    model = sb3.PPO("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": []}, device="cpu")
    with torch.no_grad():  # pushes the way the pole leans, but not the way it moves
        model.policy.action_net.weight.copy_(torch.tensor([[0, 0, -1.0, 0], [0, 0, 1.0, 0]]))
        model.policy.action_net.bias.zero_()
    model.save(tmp_path / "ppo.zip")
    check, fuzz = sb3_commands()
    assert python(tmp_path, "-m", "policyfuzz", *check, "--episodes", "64").returncode in (0, 3)
    result = policyfuzz(tmp_path, [*fuzz, "--force"])
    assert result.returncode == 1, result.stderr + result.stdout
    assert "--trust" in result.stdout, "the command that replays a finding works as it is printed"


def test_ci_guide_knows_what_is_fixed(tmp_path):
    # pushes the way the pole leans, but not the way it moves: fails from many starts
    np.savez(tmp_path / "bad.npz", W0=np.array([[0, 0], [0, 0], [-1, 1.0], [0, 0.0]]), b0=np.zeros(2))
    good = np.array([[-0.02, 0.02], [-0.05, 0.05], [-1, 1], [-0.3, 0.3]])
    np.savez(tmp_path / "policy.npz", W0=good, b0=np.zeros(2))
    search, fixed, export, dashboard = commands("ci-job.md")
    known = [word.replace("policy.npz", "bad.npz") for word in search if word != ">"][:-1]
    result = python(
        tmp_path, "-m", "policyfuzz", *known, "--max-execs", "300", "-o", "known-failures", "--force"
    )
    assert result.returncode == 1, result.stderr
    assert python(tmp_path, "-m", "policyfuzz", *fixed).returncode == 0
    assert python(tmp_path, "-m", "policyfuzz", *export).returncode == 0
    for policy, passes in (("policy.npz", True), ("bad.npz", False)):
        tested = python(
            tmp_path,
            *("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_known_failures.py"),
            POLICYFUZZ_POLICY=f"npz:{policy}",
        )
        assert (tested.returncode == 0) is passes, tested.stdout
    (tmp_path / "known-failures").rename(tmp_path / "campaign")
    assert python(tmp_path, "-m", "policyfuzz", *dashboard).returncode == 0
    assert "<failure" in (tmp_path / "findings.xml").read_text()
