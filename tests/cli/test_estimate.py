"""policyfuzz estimate, and pf.estimate."""

import json
import signal
import time
from pathlib import Path

import pytest

import policyfuzz as pf
from policyfuzz.cli.estimate import command
from policyfuzz.triage.estimate import PLAIN, REPLICATES, SUBSET

COMMON = "ripple:probability=0.05"
RARE = "ripple:dimensions=2,probability=1e-5"
#: The smallest budget for subset simulation.
FEW = 30_000
#: A target whose oracle always fires.
ALWAYS = """
import dataclasses
import policyfuzz as pf

def make():
    return dataclasses.replace(pf.load_target("ripple"), oracle=pf.Below("gap", 9.0, kind="always"))
"""


def test_common_failures_are_counted_and_said_in_words(cli):
    code, out, _ = cli("estimate", COMMON)
    assert code == 0
    assert "of valid, solvable inputs fails (95 %: " in out
    assert "one in about " in out
    assert "plain sampling, " in out


def test_json_holds_the_whole_record(cli):
    code, out, _ = cli("estimate", COMMON, "--json", "-s", 3)
    values = json.loads(out)
    assert code == 0
    assert values["low"] <= values["probability"] <= values["high"]
    assert (values["method"], values["seed"], values["notes"]) == (PLAIN, 3, [])


def test_python_gives_the_same_as_the_command_line(cli):
    estimate = pf.estimate(COMMON, seed=3)
    assert isinstance(estimate, pf.Estimate)
    assert json.loads(cli("estimate", COMMON, "--json", "-s", 3)[1])["probability"] == estimate.probability


@pytest.mark.parametrize("wrong", [["--replicates", 3], ["--max-execs", 0], ["--max-time", "0s"], ["-s", -1]])
def test_settings_that_make_no_sense_are_refused(cli, wrong):
    code, out, err = cli("estimate", COMMON, *wrong)
    assert (code, out) == (2, "")
    assert "expected" in err


def test_unhealthy_target_is_refused(cli, tmp_path):
    (tmp_path / "always.py").write_text(ALWAYS)
    code, _, err = cli("estimate", "always.py:make")
    assert code == 3
    assert "random episodes crash" in err
    code, out, _ = cli("estimate", "always.py:make", "--force", "--max-execs", 500)
    assert code == 0
    assert "a share of 1 of valid" in out


def test_finished_file_gives_the_result_again(cli, tmp_path):
    first = cli("estimate", COMMON, "-o", "e.npz", "--json")[1]
    assert cli("estimate", COMMON, "-o", "e.npz", "--json")[1] == first
    code, _, err = cli("estimate", COMMON, "-o", "e.npz", "-s", 1)
    assert code == 2
    assert "another seed: 0, now 1" in err


def test_changed_policy_is_refused(cli, tmp_path):
    (tmp_path / "policy.py").write_text("def act(observation):\n    return 0\n")
    target = ["estimate", "gym:CartPole-v1", "--policy", "py:policy.py:act", "--max-execs", 20, "--force"]
    assert cli(*target, "-o", "e.npz")[0] == 0
    (tmp_path / "policy.py").write_text("def act(observation):\n    return 1\n")
    code, _, err = cli(*target, "-o", "e.npz")
    assert code == 2
    assert "is an estimate with another policy file" in err


def test_help_tells_the_default_number_of_replicates():
    (option,) = (one for one in command.params if one.name == "replicates")
    assert option.default == REPLICATES


def test_check_says_what_a_target_lacks(cli):
    _, out, _ = cli("check", RARE, "--episodes", 20)
    assert "estimate: rare failures can be estimated" in out


@pytest.mark.slow
def test_rare_failures_are_the_same_with_two_workers(cli):
    arguments = ["estimate", RARE, "--max-execs", FEW, "--replicates", 8, "--json"]
    alone = json.loads(cli(*arguments)[1])
    assert alone["method"] == SUBSET
    assert json.loads(cli(*arguments, "-j", 2)[1]) == alone


@pytest.mark.slow
def test_killed_estimate_goes_on_as_if_nothing_had_happened(cli, start, tmp_path):
    # it stores what it has every second, so it must take several
    arguments = ["estimate", RARE, "--max-execs", 40 * FEW, "--replicates", 8, "--json"]
    path = tmp_path / "e.npz"
    process = start(*arguments, "-o", path)
    _wait_for_change(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    stopped = path.read_bytes()
    _, resumed, _ = cli(*arguments, "-o", path)
    assert path.read_bytes() != stopped
    assert json.loads(resumed) == json.loads(cli(*arguments)[1])


def _wait_for_change(path: Path) -> None:
    """Until the file is there, and another one than at first."""
    first = None
    for _ in range(3000):
        if path.exists():
            first = first or path.stat().st_mtime_ns
            if path.stat().st_mtime_ns != first:
                return
        time.sleep(0.02)
    raise AssertionError("the file did not change")
