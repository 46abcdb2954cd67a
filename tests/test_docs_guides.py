"""The guides: what they show works as it stands. BLOCKS in test_docs.py says what there is to run."""

import json
import os
import re
import shlex
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import click
import numpy as np
import pytest

from policyfuzz.cli.main import policyfuzz as program

DOCS = Path(__file__).parents[1] / "docs"

pytestmark = pytest.mark.slow

CONTROLLER = """
def act(observation):
    x, x_dot, theta, theta_dot = observation
    return int(theta + 0.3 * theta_dot + 0.02 * x + 0.05 * x_dot > 0)
"""


#: Verbs of the tutorial that its test leaves out: `web` serves until it is stopped, and `compare` needs the
#: policy that a long `repair` writes. Each has tests elsewhere.
ELSEWHERE = {"repair", "compare", "web"}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.S)


def commands(page: str) -> list[list[str]]:
    """Every policyfuzz command line of `page`, without comments."""
    lines = "\n".join(blocks(page, "sh")).splitlines()
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("policyfuzz ")]


def shorter(text: str, changes: dict[str, str]) -> str:
    """`text` of a page with smaller numbers. Each of those must be there, lest a test grow unnoticed."""
    for shown, small in changes.items():
        assert shown in text, f"the page no longer says {shown}"
        text = text.replace(shown, small)
    return text


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
    first, *others = commands("gymnasium.md")
    for line in others:
        if "gym-MyEnv-1" in " ".join(line):
            continue  # a campaign of the reader's
        assert line[:2] == ["fuzz", "gym:CartPole-v1"]
        short = ["fuzz", "gym:CartPole-v1:horizon=50", *line[2:], "--max-execs", "40", "--ui", "none"]
        result = python(tmp_path, "-m", "policyfuzz", *short)
        assert result.returncode in (0, 1), f"{line}: {result.stderr}"
    check = python(tmp_path, "-m", "policyfuzz", *first, "--episodes", "20")
    assert check.returncode == 0, check.stderr
    assert blocks("gymnasium.md", "text")[0].splitlines()[1:] == check.stdout.splitlines()[1:9]
    code = shorter(blocks("gymnasium.md", "python")[1], {"max_execs=2000": "max_execs=100"})
    shipped = python(tmp_path, "-c", code)
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
    budgets = {
        'max_time="30s"': "max_execs=200",  # as many episodes on any machine
        "max_execs=500": "max_execs=100",
        "episodes=100": "episodes=20",
        "50_000": "2_000",
    }
    result = python(tmp_path, "-c", shorter(text, budgets))
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "fall.gif").is_file()


#: Budgets of pages, and what their tests make of them.
BUDGETS = {"triage.md": {"max_execs=8000": "max_execs=2500", "max_execs=5000": "max_execs=1000"}}


@pytest.mark.parametrize(
    "page", ["inside.md", "monitor.md", "oracles.md", "report.md", "strategies.md", "triage.md"]
)
def test_every_python_example_runs(tmp_path, page):
    for block in blocks(page, "python"):
        result = python(tmp_path, "-c", shorter(block, BUDGETS.get(page, {})))
        assert result.returncode == 0, result.stderr


def test_page_on_tensorboard_logs_and_tells_a_chat_and_a_ticket(tmp_path):
    pytest.importorskip("tensorboardX", reason="needs the extra tensorboard")
    logged, chat = blocks("tensorboard.md", "python")
    result = python(tmp_path, "-c", logged)
    assert "'tensorboard'" in result.stdout, result.stderr
    (tmp_path / "tell_chat.py").write_text(chat)
    # a ticket system that keeps what it is told, and the Python of these tests
    (tmp_path / "bin").mkdir()
    for name, line in (("gh", 'echo "$4"; cat'), ("python", f'exec {shlex.quote(sys.executable)} "$@"')):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    told: list[str] = []

    class Chat(BaseHTTPRequestHandler):
        def do_POST(self):
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_): ...

    with HTTPServer(("127.0.0.1", 0), Chat) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        variables = {
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            "CHAT_WEBHOOK": f"http://127.0.0.1:{server.server_port}",
            "no_proxy": "*",
        }
        for number, words in enumerate(commands("tensorboard.md")):
            at = words.index("--max-time")
            short = [*words[:at], "--max-execs", "1500", "--ui", "none", "-o", f"c{number}"]
            done = python(tmp_path, "-m", "policyfuzz", *short, **variables)
            assert done.returncode == 1, done.stderr
            assert done.stderr == ""
        server.shutdown()
    modes = [json.loads(line) for line in (tmp_path / "modes.jsonl").read_text().splitlines()]
    assert [one["mode"] for one in modes] == list(range(1, len(modes) + 1))
    assert told == [
        f"acasxu: {one['finding']['kind']} at step {one['finding']['crash_step']}\n"
        f"{one['replay'].replace('/c1 ', '/c2 ')}"
        for one in modes
    ]
    ticket = (tmp_path / "c3" / "on-finding.log").read_text()
    assert f"acasxu: {modes[0]['finding']['kind']} at step" in ticket
    assert '"replay": "policyfuzz replay' in ticket


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
    made = python(tmp_path, "-c", shorter(blocks("sb3-model.md", "python")[0], {"16_384": "1_024"}))
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


def test_report_guide_runs_as_it_stands(tmp_path):
    quick = "ripple:dimensions=2,probability=0.02"  # whatever the folder is called
    for number in ("1", "2"):
        options = ["-s", number, "--max-execs", "600", "--ui", "none", "-o", f"campaigns/acasxu-{number}"]
        assert policyfuzz(tmp_path, ["fuzz", quick, *options]).returncode == 1
    smaller = {
        "triage": ["--max-execs", "200"],
        "report": ["--films", "1"],
        "estimate": ["--max-execs", "500"],
    }
    for line in commands("report.md"):
        if line[0] == "compare":
            continue  # needs the public networks
        line += [] if "--no-films" in line else smaller[line[0]]
        result = policyfuzz(tmp_path, [quick if word == "acasxu" else word for word in line])
        assert result.returncode in (0, 1), f"{line}: {result.stderr}"
    written = {path.name for path in tmp_path.iterdir()}
    assert {"report.html", "summary.md", "report.json", "both.html"} <= written
    assert (tmp_path / "campaigns" / "acasxu-1" / "estimate.npz").exists()


def test_start_guide_leads_to_a_film_of_a_failure(tmp_path):
    pytest.importorskip("pygame", reason="needs the extra gym")
    (tmp_path / "controller.py").write_text(blocks("start.md", "python")[0])
    fuzz, replay = [line for line in commands("start.md") if "CartPole" in " ".join(line)]
    result = policyfuzz(tmp_path, [*fuzz, "--ui", "none"])
    assert result.returncode == 1, result.stderr + result.stdout
    replayed = python(tmp_path, "-m", "policyfuzz", *replay)
    assert replayed.returncode == 1, replayed.stderr
    assert list((tmp_path / "campaigns" / "gym-CartPole-v1-1" / "findings").glob("1.[mg][pi][4f]"))


def test_tutorial_follows_a_failure_to_its_end(tmp_path):
    lines = commands("tutorial.md")
    run = ["check", "fuzz", "triage", "show", "replay", "minimize", "monitor", "export", "report"]
    assert [line[0] for line in lines if line[0] not in ELSEWHERE] == run
    short = {
        "check": ["--episodes", "200"],
        "triage": ["--max-execs", "200"],
        "monitor": ["--draws", "600", "--episodes", "40"],
        "report": ["--no-films"],
    }
    for line in lines:
        if line[0] in ELSEWHERE:
            continue
        limited = [word.replace("20000", "3000") for word in line] + short.get(line[0], [])
        result = python(tmp_path, "-m", "policyfuzz", *limited)
        found_something = line[0] in ("fuzz", "triage", "replay", "minimize")
        assert result.returncode == found_something, f"{line}: {result.stderr}"
    assert list((tmp_path / "campaigns" / "tutorial" / "findings").glob("*.png"))
    assert "def test_" in (tmp_path / "test_findings.py").read_text()


def test_repair_guide_runs_as_it_stands_on_fewer_episodes(tmp_path):
    pytest.importorskip("torch")
    code = blocks("repair.md", "python")[0].replace("20_000", "3_000")
    small = '"repaired.npz", rounds=1, budget=400, pool=200, episodes=100, seeds=1'
    result = python(tmp_path, "-c", code.replace('"repaired.npz"', small))
    assert result.returncode == 0, result.stderr
    assert "verdict: " in result.stdout


def test_gallery_commands_find_what_they_show(tmp_path):
    lines = [line for line in commands("gallery.md") if "ripple" in " ".join(line)]
    for line in lines:
        result = python(tmp_path, "-m", "policyfuzz", *line, *(["--ui", "none"] if line[0] == "fuzz" else []))
        assert result.returncode == 1, f"{line}: {result.stderr}"
    assert list((tmp_path / "campaigns" / "ripple" / "findings").glob("*.png"))


@pytest.mark.parametrize("page", ["README.md", *sorted(path.name for path in DOCS.glob("*.md"))])
def test_every_command_line_has_options_that_exist(page, capsys):
    """Also those that need a model, a simulator or hours."""
    for line in commands(f"../{page}" if page == "README.md" else page):
        line = line[
            : min([line.index(word) for word in line if word in (">", "&", "|", "\\")] or [len(line)])
        ]
        context = click.Context(program, info_name="policyfuzz")
        command, rest = program.get_command(context, line[0]), line[1:]
        if isinstance(command, click.Group):
            command, rest = command.get_command(context, rest[0]), rest[1:]
        assert command is not None, line
        command.make_parser(click.Context(command, parent=context)).parse_args(rest)
