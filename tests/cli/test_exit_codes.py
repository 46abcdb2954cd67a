"""What an exit code says is true: 1 comes with a stored finding, 0 with episodes that were run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from policyfuzz import CampaignReader
from policyfuzz.cli.main import exit_code
from policyfuzz.core.errors import PolicyFuzzError

MAKER = Path(__file__).with_name("troublemakers.py")
FUZZ = ("--max-execs", "100", "--ui", "none", "-o", "c")

pytestmark = pytest.mark.slow


def run(folder, command, **options):
    """Run a shell command in which `policyfuzz` is this one; the shell can close and fill streams."""
    line = command.replace("policyfuzz", f"exec {sys.executable} -m policyfuzz", 1)
    return subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, **options)


def target(where="", trouble="none", findings="yes"):
    return f"{MAKER}:make:where={where},trouble={trouble},findings={findings}"


def fuzz(where="", trouble="none", findings="yes", more=""):
    return f"policyfuzz fuzz '{target(where, trouble, findings)}' {' '.join(FUZZ)} {more}"


def stored(folder):
    """The number of confirmed findings, and of episodes that were run, in a campaign."""
    try:
        progress = CampaignReader(folder).progress()
    except PolicyFuzzError:
        return 0, 0
    return progress.findings, progress.executions


def assert_true(code, folder):
    """Fails if the exit code of `fuzz` says what the campaign in `folder` does not."""
    findings, executions = stored(folder)
    assert code in (0, 1, 2, 3, 130), code
    assert code != 1 or findings > 0
    assert code != 0 or (executions > 0 and findings == 0)


PLACES = ("factory", "simulator", "reset", "step", "policy", "act")
LEAVING = ("exit0", "exit1", "interrupt", "generator", "custom", "os0", "os1")


@pytest.mark.parametrize(
    ("place", "trouble"),
    [*(("step", trouble) for trouble in LEAVING), *((place, "os1") for place in PLACES if place != "step")],
)
def test_code_of_fuzz_is_true_when_target_code_leaves(tmp_path, place, trouble):
    done = run(tmp_path, fuzz(place, trouble))
    assert_true(done.returncode, tmp_path / "c")
    assert done.returncode == 3
    assert "rror" in done.stderr or "raised" in done.stderr, done.stderr


@pytest.mark.parametrize("trouble", ["exit0", "os1", "custom"])
def test_code_of_fuzz_is_true_when_the_oracle_leaves(tmp_path, trouble):
    done = run(tmp_path, fuzz(), env=os.environ | {"JUDGE": trouble})
    assert_true(done.returncode, tmp_path / "c")
    assert done.returncode == 3
    assert "the code of the oracle raised" in done.stderr


@pytest.mark.parametrize(("verb", "trouble"), [("check", "os0"), ("check", "exit1"), ("replay", "os1")])
def test_code_of_other_verbs_is_true_when_target_code_leaves(tmp_path, verb, trouble):
    assert run(tmp_path, fuzz()).returncode == 1
    command = (
        f"policyfuzz check '{target()}' --episodes 20" if verb == "check" else "policyfuzz replay c 1 --trust"
    )
    done = run(tmp_path, command, env=os.environ | {"JUDGE": trouble})
    assert done.returncode == 3, done
    assert "the code of the oracle raised" in done.stderr


@pytest.mark.parametrize(
    ("streams", "ui", "findings"),
    [
        (">/dev/full", "--ui plain", "yes"),
        (">/dev/full", "--json", "no"),
        (">&-", "--json", "yes"),
        ("2>/dev/full", "--ui screen", "yes"),
        ("2>/dev/full", "--ui plain", "no"),
        ("2>&-", "--ui plain", "yes"),
        (">/dev/full 2>/dev/full", "--ui plain", "no"),
        ("<&- >&- 2>&-", "--ui screen", "yes"),
        ("<&- >&- 2>&-", "--ui plain", "no"),
    ],
)
def test_code_of_fuzz_tells_findings_whatever_the_streams_are(tmp_path, streams, ui, findings):
    done = run(tmp_path, fuzz(findings=findings, more=f"{ui} {streams}"))
    assert_true(done.returncode, tmp_path / "c")
    assert done.returncode == (findings == "yes"), done
    assert stored(tmp_path / "c")[1] == 100
    assert "Traceback" not in done.stderr
    if "2>" not in streams:
        assert "the results cannot be written to stdout" in done.stderr


@pytest.mark.parametrize("verb", ["status c", "show c", "show c 1 --json", "targets", "export c -o c.csv"])
def test_results_that_cannot_be_written_are_an_error(tmp_path, campaign, verb):
    verb = verb.replace(" c", f" {campaign}", 1)
    for streams in (">/dev/full", ">&-"):
        done = run(tmp_path, f"policyfuzz {verb} {streams}")
        assert done.returncode == 2, done
        assert "the results cannot be written to stdout" in done.stderr
        assert done.stderr.count("\n") == 1
    assert run(tmp_path, f"policyfuzz {verb} >&- 2>/dev/full").returncode == 2
    assert run(tmp_path, f"policyfuzz {verb} 2>&-").returncode == 0


def test_replay_tells_its_verdict_whatever_the_streams_are(tmp_path):
    assert run(tmp_path, fuzz()).returncode == 1
    for streams in (">/dev/full", ">&-", "2>/dev/full", ">&- 2>&-"):
        assert run(tmp_path, f"policyfuzz replay c 1 --trust --no-picture {streams}").returncode == 1
    assert run(tmp_path, "policyfuzz replay c 999 --trust 2>/dev/full").returncode == 2


def test_code_holds_when_the_reader_of_a_pipe_has_gone(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    for command, code in (
        (fuzz(), 1),
        ("policyfuzz replay c 1 --trust --no-picture", 1),
        ("policyfuzz show c", 0),
    ):
        line = command.replace("policyfuzz", f"exec {sys.executable} -m policyfuzz", 1)
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True
        )
        assert (done.returncode, done.stderr) == (code, "")
    os.close(writer)


def test_what_a_target_prints_is_no_result(tmp_path):
    done = run(tmp_path, fuzz("reset", "print", more="--json"))
    assert done.returncode == 1
    assert "in the way" in done.stderr
    assert "in the way" not in done.stdout
    assert run(tmp_path, fuzz("reset", "print", more="--resume >/dev/full 2>&-")).returncode == 1


@pytest.mark.parametrize(
    ("trouble", "findings"), [("thread", "no"), ("atexit", "yes"), ("children", "yes"), ("close", "no")]
)
def test_what_a_target_leaves_behind_changes_no_code(tmp_path, trouble, findings):
    done = run(tmp_path, fuzz("simulator", trouble, findings))
    assert_true(done.returncode, tmp_path / "c")
    assert done.returncode == (findings == "yes"), done


@pytest.mark.parametrize("place", ["factory", "simulator", "step", "act"])
def test_target_that_forks_and_returns_is_stopped(tmp_path, place):
    done = run(tmp_path, fuzz(place, "fork", more="--json"))
    assert_true(done.returncode, tmp_path / "c")
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("forked this process and returned in both") == 1, done.stderr


@pytest.mark.parametrize(
    ("place", "trouble", "said"),
    [
        ("factory", "os0", "did not survive it"),
        ("factory", "segfault", "killed by SIGSEGV"),
        ("simulator", "os0", "ended itself with exit code 0"),
        ("policy", "segfault", "killed by SIGSEGV"),
        ("factory", "exit0", "raised SystemExit"),
        ("policy", "interrupt", "raised KeyboardInterrupt"),
    ],
)
@pytest.mark.parametrize("verb", ["fuzz", "check"])
def test_with_workers_a_constructor_that_dies_is_told(tmp_path, verb, place, trouble, said):
    command = fuzz(place, trouble) if verb == "fuzz" else f"policyfuzz check '{target(place, trouble)}'"
    done = run(tmp_path, f"{command} -j 1")
    assert_true(done.returncode, tmp_path / "c")
    assert done.returncode == 3, done
    assert said in done.stderr
    assert str(MAKER) in done.stderr


def test_with_workers_a_thread_left_behind_keeps_nothing_alive(tmp_path):
    for place in ("factory", "simulator"):
        done = run(tmp_path, fuzz(place, "thread", more=f"-j 1 -o {place}"))
        assert done.returncode == 1, done


def test_fuzz_that_ran_nothing_does_not_say_that_it_found_nothing(tmp_path):
    done = run(tmp_path, fuzz("simulator", "hang", more="-j 1 --max-time 1s"))
    assert_true(done.returncode, tmp_path / "c")
    assert done.returncode == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_loading_is_an_interrupt(start, tmp_path, number):
    (tmp_path / "slow.py").write_text(
        "import sys, time\nprint('loading', file=sys.stderr)\ntime.sleep(1000)\n"
    )
    process = start("fuzz", "slow.py:make", *FUZZ)
    assert process.stderr.readline() == "loading\n"
    process.send_signal(number)
    assert process.wait(60) == 130
    assert process.stderr.read().strip() == "policyfuzz: interrupted"
    assert not (tmp_path / "c").exists()


def test_internal_error_is_no_finding_when_it_is_debugged(monkeypatch, capsys):
    monkeypatch.setenv("POLICYFUZZ_DEBUG", "1")
    monkeypatch.setattr("policyfuzz.cli.targets.command.callback", lambda **_: 1 // 0)
    assert exit_code(["targets"]) == 4
    assert "ZeroDivisionError" in capsys.readouterr().err
