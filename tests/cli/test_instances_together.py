"""Several instances at once, as processes of their own."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from policyfuzz import CampaignReader
from policyfuzz.campaign.sync.files import read_sync_batch
from policyfuzz.core.errors import CampaignError

RIPPLE = "ripple:dimensions=4,probability=0.001,regions=3"
#: The command line, with instances that look at each other all the time.
EAGER = (
    "import sys; from policyfuzz.campaign.sync.synchronizer import Synchronizer;"
    "Synchronizer.__init__.__defaults__ = (0.3,);"
    "from policyfuzz.cli.main import run; run(sys.argv[1:])"
)


@pytest.fixture
def instance(tmp_path):
    """Start an instance in the folder `shared`, as a process of its own."""
    processes: list[subprocess.Popen[str]] = []

    def run(*arguments: object) -> subprocess.Popen[str]:
        command = ["fuzz", RIPPLE, "--sync", "shared", "--ui", "plain", *map(str, arguments)]
        pipe = subprocess.PIPE
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", EAGER, *command], stdout=pipe, stderr=pipe, text=True, cwd=tmp_path
            )
        )
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
        with process:  # closes its pipes
            process.wait()


def imports(folder: Path) -> int:
    try:
        return CampaignReader(folder).progress().imports
    except CampaignError:
        return -1


def wait_for(condition, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def cases(rows) -> list[tuple]:
    return [(row["case_seed"], *(row[f"x{i}"] for i in range(4))) for row in rows]


def sent(folder: Path) -> set[tuple]:
    count = json.loads((folder / "exchange" / "progress.json").read_text())["parcels"]
    batches = [read_sync_batch(folder, number, 4) for number in range(1, count + 1)]
    return {
        (int(seed), *row.tolist())
        for batch in batches
        for seed, row in zip(batch.seeds, batch.inputs, strict=True)
    }


@pytest.mark.slow
def test_two_instances_exchange_while_one_is_killed_again_and_again(instance, tmp_path):
    limits = {"plain": 100_000, "fresh": 50_000}
    plain = ["--max-execs", limits["plain"], "--seed", 1, "-o", "plain", "--strategy", "reward"]
    fresh = ["--max-execs", limits["fresh"], "--seed", 2, "-o", "fresh", "--strategy", "mdpfuzz"]
    first, second = instance(*plain), instance(*fresh)
    folder = tmp_path / "shared" / "fresh"
    for _ in range(3):
        before = imports(folder)
        wait_for(lambda before=before: imports(folder) > max(before, 0), second)
        second.send_signal(signal.SIGKILL)
        second.wait()
        second = instance(*fresh, "--resume")
    for process in (first, second):
        _, err = process.communicate()
        assert process.returncode == 1, err
    for name, other in (("plain", "fresh"), ("fresh", "plain")):
        campaign = CampaignReader(tmp_path / "shared" / name)
        progress = campaign.progress()
        found = list(campaign.iterate("findings", "origin IS NOT NULL"))
        kept = list(campaign.iterate("seeds", "origin IS NOT NULL"))
        assert {row["origin"] for row in found} == {row["origin"] for row in kept} == {other}
        taken = cases([*found, *kept])
        assert len(taken) == len(set(taken)) == progress.imports, "nothing twice, and nothing lost"
        assert set(taken) <= sent(tmp_path / "shared" / other)
        assert progress.executions == limits[name]
        assert progress.imported_findings == sum(row["status"] == "confirmed" for row in found)


@pytest.mark.slow
def test_instances_that_start_at_once_get_seeds_and_folders_of_their_own(instance, tmp_path):
    strategies = ("portfolio", "portfolio", "random")
    started = [instance("--max-execs", 300, "--strategy", name) for name in strategies]
    for process in started:
        _, err = process.communicate()
        assert process.returncode in (0, 1), err
    folders = sorted((tmp_path / "shared").iterdir())
    assert len(folders) == 3
    configs = [CampaignReader(folder).config for folder in folders]
    assert len({(config.strategy, config.seed) for config in configs}) == 3
    for folder, config in zip(folders, configs, strict=True):
        assert folder.name.endswith(f"-{config.strategy}-{config.seed}")


@pytest.mark.slow
def test_status_of_a_folder_tells_running_stopped_and_killed_apart(instance, cli, tmp_path):
    stopped = instance("--max-execs", 2000, "-o", "stopped")
    assert stopped.wait() in (0, 1)
    killed, running = instance("-o", "killed"), instance("-o", "running", "--strategy", "random")
    for name, process in (("killed", killed), ("running", running)):
        folder = tmp_path / "shared" / name
        wait_for(
            lambda folder=folder: imports(folder) >= 0 and CampaignReader(folder).progress().batch, process
        )
    killed.kill()
    killed.wait()
    (tmp_path / "shared" / "notes").mkdir()
    (tmp_path / "shared" / "broken").mkdir()
    (tmp_path / "shared" / "broken" / "campaign.sqlite").write_text("garbage")
    code, out, _ = cli("status", "shared", "--json")
    summary = json.loads(out)
    assert code == 0
    states = {row["name"]: row["state"] for row in summary["instances"]}
    assert states == {
        "broken": "damaged",
        "killed": "killed",
        "notes": "foreign",
        "running": "running",
        "stopped": "stopped",
    }
    rows = {row["name"]: row for row in summary["instances"]}
    assert rows["stopped"]["stop_reason"] == "max-execs"
    assert (summary["together"]["instances"], summary["together"]["running"]) == (3, 1)
    code, out, _ = cli("status", "shared")
    assert code == 0
    lines = {line.split()[0].rstrip(":"): line for line in out.splitlines() if line.strip()}
    assert "max-execs" in lines["stopped"]
    assert "running" in lines["running"]
    assert "1/3 running" in lines["together"]
    assert "of valid, solvable inputs" in lines["failure"]
    assert summary["together"]["failure_probability"]["draws"] > rows["stopped"]["executions"] / 10
    assert "not a database" in lines["broken"]
    assert "killed did not stop cleanly: continue it with --resume" in out


@pytest.mark.slow
def test_other_target_in_the_folder_is_told_to_the_user(cli, instance):
    assert instance("--max-execs", 600).wait() in (0, 1)
    code, _, err = cli("fuzz", "ripple", "--sync", "shared", "--max-execs", 600, "--ui", "plain")
    assert code in (0, 1)
    assert err.count("nothing is exchanged with it: it fuzzes ripple:dimensions=4") == 1


def test_folder_outside_of_the_shared_one_is_refused(cli, tmp_path):
    code, _, err = cli("fuzz", RIPPLE, "--sync", "shared", "-o", "elsewhere/mine", "--max-execs", 100)
    assert code == 2
    assert "does not lie directly in shared" in err
    assert not list(tmp_path.iterdir())


def test_folder_that_is_a_campaign_cannot_be_shared(cli):
    cli("fuzz", RIPPLE, "-o", "mine", "--max-execs", 300, "--ui", "none")
    code, _, err = cli("fuzz", RIPPLE, "--sync", "mine", "--max-execs", 300, "--ui", "none")
    assert code == 2
    assert "mine is a campaign itself" in err


def test_failed_start_leaves_no_folder_behind(cli, tmp_path):
    code, _, _ = cli("fuzz", RIPPLE, "--sync", "shared", "--batch", 0, "--ui", "none")
    assert code == 2
    assert not list((tmp_path / "shared").iterdir())


def test_given_seed_that_is_taken_gets_a_folder_of_its_own(cli, tmp_path):
    for _ in range(2):
        arguments = ["--sync", "shared", "--seed", 7, "--max-execs", 300, "--ui", "none"]
        assert cli("fuzz", RIPPLE, *arguments)[0] in (0, 1)
    names = sorted(path.name for path in (tmp_path / "shared").iterdir())
    assert [name.partition("portfolio")[2] for name in names] == ["-7", "-7-2"]
