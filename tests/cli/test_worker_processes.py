"""Worker processes on the command line: what is asked for, what is shown, and what is left after a kill."""

import json
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from rich.console import Console

from policyfuzz import CampaignReader
from policyfuzz.campaign.events import BatchDone, Started
from policyfuzz.cli.screen import Screen
from policyfuzz.core.errors import CampaignError
from policyfuzz.core.settings import Budget, CampaignConfig
from policyfuzz.store.records import Progress

sys.path.insert(0, str(Path(__file__).parents[1] / "execution"))
sys.path.insert(0, str(Path(__file__).parents[1] / "campaign"))
from campaign_tables import tables
from processes_about import MARK, PATIENCE, marked, wait_until

DEADLY = Path(__file__).parents[1] / "campaign" / "deadly_targets.py"
POLICY = ["--policy", f"py:{DEADLY}:brave", "--oracle", "terminated"]
SMALL = ["--max-execs", 50, "--samples", 30, "--batch", 20, "--ui", "none", "-o", "c"]
BOG = ["fuzz", f"{DEADLY}:bog", "--max-execs", 3000, "--seed", 4, "--ui", "none", "--json"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["-j", 0], "workers is 0, expected 1 or more"),
        (["-j", -3], "workers is -3, expected 1 or more"),
        (["-j", "many"], "'many' is not a valid integer"),
        (["--executor", "rya"], "did you mean 'ray'?"),
        (["--executor", "inline", "-j", 2], "leave out -j and --timeout"),
        (["--executor", "inline", "--timeout", "2s"], "leave out -j and --timeout"),
        (["--executor", "processes:x"], "executor processes has no address, and was given 'x'"),
        (["-j", 2, "--timeout", "0s"], "timeout is 0 s, expected more than 0"),
        (["-j", 2, "--timeout", "soon"], "is not a duration"),
        (["--window", 0], "window is 0"),
    ],
)
def test_what_makes_no_sense_gets_a_message_and_code_2(cli, words, complaint):
    code, out, err = cli("fuzz", "ripple", *words, "-o", "c")
    assert code == 2
    assert complaint in err
    assert out == ""
    assert not Path("c").exists()


def test_screen_shows_workers_utilisation_and_what_was_lost():
    console = Console(width=200, force_terminal=False)
    screen = Screen(console)
    progress = Progress(
        executions=100,
        workers=4,
        workers_ready=3,
        worker_seconds=40.0,
        busy_seconds=38.0,
        restarts=7,
        hangs=2,
        simulator_crashes=1,
    )
    with console.capture() as capture:
        screen(Started(CampaignConfig("ripple"), Budget(), "c", Progress(), 4))
        screen(BatchDone(progress, [], []))
        console.print(screen.render(progress))
    shown = capture.get()
    assert "3 of 4 ready, 95% busy, 7 replaced" in shown
    assert "3 episodes could not be run (2 hung, 1 crashed their process)" in shown


@pytest.mark.slow
def test_json_accounts_for_workers_and_for_every_episode(cli):
    code, out, err = cli("fuzz", f"gym:{DEADLY}:Segfault", *POLICY, *SMALL, "-s", 18, "-j", 2, "--json")
    assert code == 1, err
    said = json.loads(out)
    assert said["workers"] == 2
    assert 0 < said["utilisation"] <= 1
    assert said["restarts"] >= 2
    assert said["simulator_crashes"] >= 1
    assert (said["hangs"], said["errors"]) == (0, 0)
    assert said["executions"] == 50 == said["completed"] + said["simulator_crashes"]
    code, out, _ = cli("status", "c", "--json")
    assert json.loads(out)["simulator_crashes"] == said["simulator_crashes"]
    code, out, _ = cli("show", "c", "--errors")
    assert "SIGSEGV" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "timeout", "said"),
    [("Segfault", [], "killed by SIGSEGV"), ("Hang", ["--timeout", "3s"], "no answer within 3 s")],
)
def test_deadly_episode_is_replayed_without_harm(loud_cli, environment, timeout, said):
    where = f"gym:{DEADLY}:{environment}"
    code, _, err = loud_cli("fuzz", where, *POLICY, *SMALL, "-s", 18, "-j", 2, *timeout)
    assert code == 1, err
    code, out, err = loud_cli("replay", "c", 1, "--trust", "--error", *timeout)
    assert code == 3, err
    assert "error 1 happens again at step 3" in out
    assert said in out
    assert 'deadly_targets.py", line' in out


@pytest.mark.slow
def test_check_survives_an_environment_that_segfaults(cli):
    code, out, err = cli("check", f"gym:{DEADLY}:Segfault", *POLICY, "-j", 1, "--episodes", 10)
    assert code in (0, 3), err
    assert "SIGSEGV" in out


@pytest.mark.slow
def test_workers_killed_during_the_health_check_are_not_called_randomness(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("DOOMED", str(tmp_path / "notes"))
    words = ["check", f"gym:{DEADLY}:Once", *POLICY, "-j", 1, "--episodes", 10, "--json"]
    code, out, err = cli(*words)
    assert code == 0, err
    found = {one["name"]: one for one in json.loads(out)["diagnoses"]}["determinism"]
    assert found["level"] == "warning"
    assert "episodes could be run only once, the other time one killed its worker" in found["message"]
    assert "SIGKILL" in found["message"]


@pytest.mark.slow
def test_workers_that_cannot_start_say_why_and_leave_the_folder_usable(cli):
    code, out, err = cli("fuzz", f"{DEADLY}:unlicensed", "-j", 2, "-o", "c", "--ui", "none")
    assert code == 3
    assert out == ""
    assert "PermissionError: no licence for this simulator" in err
    code, _, err = cli("fuzz", "ripple", "--max-execs", 100, "-o", "c", "--ui", "none")
    assert code in (0, 1), err


def batches(folder: Path) -> int:
    try:
        return CampaignReader(folder).progress().batch
    except CampaignError:
        return 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Tables of the campaign that nobody disturbs, in one process."""
    folder = tmp_path_factory.mktemp("whole") / "c"
    command = [sys.executable, "-m", "policyfuzz", *map(str, BOG), "-o", str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 1, process.stderr
    return tables(folder)


@pytest.mark.slow
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_killed_coordinator_and_resume_is_exact(
    start, tmp_path, monkeypatch, whole, signal_number
):
    mark, bog = uuid.uuid4().hex, tmp_path / "bog"
    monkeypatch.setenv(MARK, mark)
    monkeypatch.setenv("BOG", str(bog))

    def listen() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in what a shell has put into the background

    process = start(*BOG, "-o", "c", "-j", 3, preexec_fn=listen)
    wait_until(lambda: batches(tmp_path / "c") > 3, "a few batches are stored")
    bog.touch()
    wait_until(lambda: list(tmp_path.glob("bog-*")) != [], "a worker hangs in C")
    assert process.poll() is None, process.communicate()
    assert len(marked(mark)) >= 4, "coordinator and workers"
    process.send_signal(signal_number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == (-signal.SIGKILL if signal_number == signal.SIGKILL else 130), err
    assert "Traceback" not in err
    wait_until(lambda: not marked(mark), "no process is left")
    saved = batches(tmp_path / "c")
    assert 3 < saved < len(whole["batches"])
    bog.unlink()
    resumed = start(*BOG, "-o", "c", "--resume", "-j", 2)
    _, err = resumed.communicate(timeout=PATIENCE)
    assert resumed.returncode == 1, err
    assert tables(tmp_path / "c") == whole
    wait_until(lambda: not marked(mark), "no process is left")
