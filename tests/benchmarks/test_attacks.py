"""Attacks in small numbers: each really happens, and leaves no difference."""

import shutil
import sqlite3

import numpy as np
import pytest

from benchmarks.attacks import command, models
from benchmarks.attacks.victim import Outcome, Victim

TIMES = {
    "kills": 5,
    "worker-kills": 2,
    "stops": 1,
    "second-writers": 2,
    "copies": 2,
    "cuts": 3,
    "full-disks": 1,
    "limited-files": 1,
    "out-of-memory": 1,
    "untrusted-models": 4,
}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Folder for the attacks, and for the campaigns that they are compared with."""
    return tmp_path_factory.mktemp("attacks")


@pytest.mark.slow
@pytest.mark.parametrize("name", TIMES)
def test_attacked_campaign_ends_like_one_that_was_left_alone(work, name):
    outcome = command.attack(name, TIMES[name], 0, work / name)
    if not outcome.is_possible:
        pytest.skip(outcome.remark)
    assert outcome.differences == ()
    assert outcome.times >= TIMES[name]


@pytest.mark.slow
def test_one_changed_value_is_a_difference(work):
    victim = Victim(work / "changed", seed=0)
    victim.whole()
    shutil.copytree(victim.undisturbed, work / "changed")
    assert victim.differences(work / "changed") == []
    with sqlite3.connect(work / "changed" / "campaign.sqlite") as connection:
        connection.execute("UPDATE findings SET crash_step = crash_step + 1 WHERE id = 7")
        connection.execute("UPDATE seeds SET seconds = seconds + 1")
    connection.close()
    assert victim.differences(work / "changed") == ["changed: findings"]


def test_attack_that_happened_too_rarely_is_a_difference(monkeypatch, tmp_path):
    monkeypatch.setitem(command.ATTACKS, "kills", (55, lambda *_: Outcome("coordinator killed", 3)))
    assert command.attack("kills", 5, 0, tmp_path / "kills").differences == ("done 3 times of 5",)


def test_code_in_a_model_that_runs_is_a_difference(monkeypatch, tmp_path):
    def load(words, cwd, **_options):
        with np.load(words[-1].removeprefix("npz:"), allow_pickle=True) as arrays:
            arrays["parameters"]
        return models.subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(models, "_FORMATS", {"npz": models._write_npz})
    monkeypatch.setattr(models.subprocess, "run", load)
    outcome = models.untrusted_models(tmp_path / "models", 1, np.random.default_rng(0))
    assert outcome.differences[0] == "0.npz: its code was run by check"


def test_differences_are_printed_and_give_code_1(bench, monkeypatch):
    monkeypatch.setitem(command.ATTACKS, "cuts", (9, lambda *_: Outcome("log cut", 9, ("cut-1: seeds",))))
    code, out, _ = bench("attacks", "--only", "cuts", "--cuts", 9)
    assert code == 1
    assert "log cut: cut-1: seeds" in out
    assert bench("attacks", "--only", "cut")[0] == 2
