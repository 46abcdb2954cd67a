"""Findings do not depend on who runs the episodes, nor on how often they die."""

import os
import signal
import sys
import threading
from pathlib import Path

import pytest

import policyfuzz as pf
from policyfuzz import CampaignReader
from policyfuzz.core.code_files import load_file
from policyfuzz.core.errors import UsageError, WorkersFailed

sys.path.insert(0, str(Path(__file__).parent))
from campaign_tables import tables

kinds = load_file(Path(__file__).parents[1] / "execution" / "shipped_kinds.py", "test")

pytestmark = pytest.mark.slow

DEADLY = Path(__file__).parent / "deadly_targets.py"
BRAVE = {"policy": f"py:{DEADLY}:brave", "oracle": "terminated"}
SMALL = {"max_execs": 50, "samples": 30, "batch": 20}
#: Campaigns that one process survives: what is fuzzed, and how far.
SAFE = {
    "ripple": ({"target": "ripple:dimensions=3,probability=0.01"}, {"max_execs": 1000}),
    "raising": ({"target": f"gym:{DEADLY}:Raising", **BRAVE}, SMALL),
    "acasxu": ({"target": "acasxu"}, {"max_execs": 1500, "samples": 400}),
    "bipedal": ({"target": "bipedal"}, {"max_execs": 16, "samples": 8, "batch": 6, "force": True}),
}


def run(folder, subject, limits, **who):
    pf.fuzz(**subject, **limits, out=folder, seed=18, progress=False, **who)
    return tables(folder)


@pytest.mark.parametrize("name", SAFE)
def test_findings_are_the_same_for_any_number_of_workers(tmp_path, name):
    subject, limits = SAFE[name]
    inline = run(tmp_path / "inline", subject, limits)
    assert inline["findings"] or name == "bipedal", "nothing to compare"
    assert bool(inline["errors"]) == (name == "raising")
    for workers in (1, 2, 4):
        assert run(tmp_path / f"{workers}", subject, limits, workers=workers) == inline, workers
    progress = CampaignReader(tmp_path / "2").progress()
    assert progress.workers in (1, 2)
    assert progress.restarts == 0


def test_deadly_cases_cost_themselves_only_for_any_number_of_workers(tmp_path):
    subject = {"target": f"gym:{DEADLY}:Trap", **BRAVE}
    results = {
        workers: run(tmp_path / f"{workers}", subject, SMALL, workers=workers, timeout="3s")
        for workers in (1, 2, 4)
    }
    assert results[1] == results[2] == results[4]
    assert results[1]["findings"]
    expected = {0: "crashed", 1: "crashed", 2: "hung"}
    errors = results[1]["errors"]
    assert {int((row["start"] + 4) / 0.3) for row in errors} == set(expected), "not all dangers were met"
    for row in errors:
        assert row["kind"] == expected[int((row["start"] + 4) / 0.3)]
        assert row["step"] == 3
    progress = CampaignReader(tmp_path / "2").progress()
    assert progress.executions == 50 == progress.completed + progress.failures
    assert progress.failures == len(errors)
    assert progress.hangs == sum(row["kind"] == "hung" for row in errors)
    assert progress.simulator_crashes == sum(row["kind"] == "crashed" for row in errors)
    assert progress.restarts >= 2 * len(errors)
    check_texts(CampaignReader(tmp_path / "2"))


def check_texts(campaign):
    """Check that errors say what happened, and where in the environment."""
    texts = {int((float(one.input[0]) + 4) / 0.3): one.text for one in campaign.failed_episodes()}
    assert "SIGSEGV" in texts[0]
    assert "SIGKILL" in texts[1]
    assert texts[2].endswith("no answer within 3 s")
    for number in (0, 2):
        assert 'deadly_targets.py", line' in texts[number]


def test_campaign_goes_on_with_another_number_of_workers(tmp_path):
    subject = {"target": f"gym:{DEADLY}:Segfault", **BRAVE}
    whole = run(tmp_path / "whole", subject, SMALL, workers=2)
    assert any(row["kind"] == "crashed" for row in whole["errors"])
    stops = iter((1, 2))
    for who in ({"workers": 1}, {"workers": 3}, {"workers": 2}):
        last = next(stops, None)

        def stop(event, last=last):
            if isinstance(event, pf.BatchDone) and event.progress.batch == last:
                raise KeyboardInterrupt

        is_begun = (tmp_path / "parts").exists()
        run(tmp_path / "parts", subject, SMALL, callbacks=stop, resume=is_begun, **who)
    assert tables(tmp_path / "parts") == whole


def workers_of_this_process() -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command = (folder / "cmdline").read_bytes()
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if int(parent) == os.getpid() and b"processes.worker" in command:
                found.append(int(folder.name))
    return found


def test_files_that_change_in_a_campaign_do_not_change_it(tmp_path, monkeypatch):
    (tmp_path / "files").mkdir()
    kinds.write_files(tmp_path / "files")
    monkeypatch.chdir(tmp_path / "files")
    monkeypatch.syspath_prepend(tmp_path / "files")
    subject = {"target": "gym:cart.py:Cart:horizon=60,oracle=terminated", "policy": "npz:network.npz"}
    limits = {"max_execs": 300, "samples": 60, "batch": 30, "force": True}
    whole = run(tmp_path / "whole", subject, limits)
    assert len(whole["batches"]) > 6
    killed = []

    def disturb(event):
        if isinstance(event, pf.BatchDone) and event.progress.batch == 3:
            for name in ("network.npz", "cart.py"):
                Path(name).write_text("nothing that anybody could use")
            killed.extend(workers_of_this_process())
            for worker in killed:
                os.kill(worker, signal.SIGKILL)

    assert run(tmp_path / "disturbed", subject, limits, workers=2, callbacks=disturb) == whole
    assert len(killed) == 2
    assert CampaignReader(tmp_path / "disturbed").progress().restarts >= 2


def test_workers_that_cannot_start_end_the_campaign_in_their_own_words(tmp_path):
    with pytest.raises(WorkersFailed, match="PermissionError: no licence for this simulator") as caught:
        run(tmp_path / "c", {"target": f"{DEADLY}:unlicensed"}, {}, workers=2)
    assert caught.value.exit_code == 3
    assert workers_of_this_process() == []
    run(tmp_path / "c", {"target": "ripple"}, {"max_execs": 100})  # the folder is as good as new


def test_environment_that_cannot_be_sent_to_workers_is_refused_kindly(tmp_path):
    trap, lock = load_file(DEADLY, "test").Trap, threading.Lock()

    def locked():
        with lock:
            return trap()

    subject = {"target": locked, "policy": lambda observation: 1, "oracle": "terminated"}
    with pytest.raises(UsageError, match="lock"):
        run(tmp_path / "c", subject, SMALL, workers=1)
    assert workers_of_this_process() == []
