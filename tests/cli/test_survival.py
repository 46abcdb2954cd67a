"""Campaigns that are killed, starved and stopped, as processes of their own."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from policyfuzz import CampaignReader
from policyfuzz.core.errors import CampaignError
from policyfuzz.store.database import is_being_written

pytestmark = pytest.mark.slow

RIPPLE = "ripple:dimensions=3,probability=0.003"
FUZZ = ["fuzz", RIPPLE, "--max-execs", "60000", "--seed", "11", "--ui", "none", "--json"]


def batches(folder: Path) -> int:
    try:
        return CampaignReader(folder).progress().batch
    except CampaignError:
        return 0


def wait_for(condition, process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)


def findings(folder: Path) -> list[tuple]:
    return [
        (f.id, f.status, f.is_distinct, f.crash_step, f.episode_return, f.parent, *f.input)
        for f in CampaignReader(folder).findings()
    ]


def test_killed_campaign_resumes_to_the_same_findings(start, tmp_path):
    whole = start(*FUZZ, "-o", "whole")
    assert whole.wait() == 1
    luck, kills, saved = random.Random(0), 0, 0
    while True:
        process = start(*FUZZ, "-o", "killed", *(["--resume"] if batches(tmp_path / "killed") else []))
        aim = batches(tmp_path / "killed") + luck.randint(1, 40)
        while process.poll() is None and batches(tmp_path / "killed") < aim:
            time.sleep(luck.random() * 0.01)
        if process.poll() is not None:
            assert process.returncode == 1, process.communicate()
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        assert batches(tmp_path / "killed") >= max(aim, saved), "a committed batch was lost"
        saved = batches(tmp_path / "killed")
        if not (tmp_path / "killed" / "campaign.sqlite").exists():
            shutil.rmtree(tmp_path / "killed", ignore_errors=True)
    assert kills >= 3
    assert findings(tmp_path / "killed") == findings(tmp_path / "whole")
    executions = [CampaignReader(tmp_path / name).progress().executions for name in ("killed", "whole")]
    assert executions == [60000, 60000]


def test_second_process_is_refused_while_the_first_runs(start, tmp_path):
    first = start("fuzz", RIPPLE, "-o", "c", "--ui", "none")
    wait_for(lambda: batches(tmp_path / "c") > 0, first)
    second = start("fuzz", RIPPLE, "-o", "c", "--ui", "none", "--resume")
    _, err = second.communicate()
    assert second.returncode == 2
    assert "another process is writing" in err
    assert is_being_written(tmp_path / "c")
    assert first.poll() is None


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_campaign_is_saved_and_exits_130(start, tmp_path, signal_number):
    def listen() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored in what a shell has put into the background

    process = start("fuzz", RIPPLE, "-o", "c", "--ui", "none", "--json", preexec_fn=listen)
    wait_for(lambda: batches(tmp_path / "c") > 3, process)
    process.send_signal(signal_number)
    out, err = process.communicate()
    assert process.returncode == 130, err
    assert json.loads(out)["stop_reason"] == "interrupted"
    assert "Traceback" not in err
    resumed = start("fuzz", RIPPLE, "-o", "c", "--resume", "--max-execs", "1", "--ui", "none")
    assert resumed.wait() in (0, 1)


def starve(process_size: int):
    """Make writes beyond `process_size` bytes fail, as on a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (process_size, process_size))

    return limit


def check_readable_and_resumable(start, tmp_path: Path, folder: str, code: int, err: str) -> None:
    assert code == 2
    assert "disk full?" in err
    assert "Traceback" not in err
    saved = CampaignReader(tmp_path / folder).progress()
    assert saved.batch > 0
    status = start("status", folder, "--json")
    out, _ = status.communicate()
    assert json.loads(out)["executions"] == saved.executions
    resumed = start(*FUZZ, "-o", folder, "--resume")
    assert resumed.wait() == 1
    assert start(*FUZZ, "-o", "whole").wait() == 1
    assert findings(tmp_path / folder) == findings(tmp_path / "whole")


def test_campaign_stays_readable_when_files_cannot_grow(start, tmp_path):
    process = start(*FUZZ, "-o", "c", preexec_fn=starve(600_000))
    _, err = process.communicate()
    check_readable_and_resumable(start, tmp_path, "c", process.returncode, err)


def test_campaign_stays_readable_when_the_disk_is_full(start, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=900k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only; the test above starves the process instead")
    try:
        process = start(*FUZZ, "-o", "disk/c")
        _, err = process.communicate()
        assert process.returncode == 2, err
        shutil.copytree(disk / "c", tmp_path / "c")
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    check_readable_and_resumable(start, tmp_path, "c", process.returncode, err)


@pytest.mark.parametrize("reader", ["head -1", "true"])
@pytest.mark.parametrize("words", ["show {} --all", "show {} --all --json", "fuzz --help"])
def test_output_to_a_closed_pipe_is_no_error(campaign, words, reader):
    words = words.format(campaign)
    command = f"{sys.executable} -m policyfuzz {words} | {reader}; exit ${{PIPESTATUS[0]}}"
    process = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")


def test_campaign_goes_on_when_nobody_reads_its_log(start, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    process = start(*FUZZ[:-3], "--ui", "plain", "--json", "-o", "c", stderr=writer)
    os.close(writer)
    out, _ = process.communicate()
    assert process.returncode == 1
    assert json.loads(out)["executions"] == 60000
