"""The soak run in short, and whether its checks would notice anything."""

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.soak.accounts import Journal, compare
from benchmarks.soak.flaky_simulator import RATES, RECORD, Fate, fates, keys
from benchmarks.soak.watch import Sample, marked, trends

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def soaked(tmp_path_factory):
    """Folder of a soak run of some seconds whose coordinator was killed and interrupted, and what it said."""
    folder = tmp_path_factory.mktemp("soak")
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "soak",
        "--minutes",
        "0.3",
        "--keep",
        str(folder / "kept"),
    ]
    done = subprocess.run(
        [*command, "--raw", str(folder / "raw.json")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def wrong(folder: Path) -> set[str]:
    return {
        entry.what
        for entry in compare(folder / "campaign", Journal.read(folder / "journal"))
        if not entry.is_right
    }


@pytest.mark.slow
def test_accounts_are_exact_after_crashes_hangs_and_a_killed_coordinator(soaked):
    raw = json.loads((soaked / "raw.json").read_text())
    totals = raw["totals"]
    parts = totals["completed"] + totals["errors"] + totals["hangs"] + totals["simulator_crashes"]
    assert totals["executions"] == parts
    assert min(totals["errors"], totals["hangs"] + totals["simulator_crashes"], totals["restarts"]) > 0
    assert {sample["life"] for sample in raw["samples"]} == {1, 2, 3}
    assert wrong(soaked / "kept") == set()
    assert marked(f"FLAKY_JOURNAL={soaked}") == {}


@pytest.mark.slow
def test_books_show_a_result_that_was_lost(soaked, tmp_path):
    shutil.copytree(soaked / "kept", tmp_path / "kept")
    with sqlite3.connect(tmp_path / "kept" / "campaign" / "campaign.sqlite") as connection:
        connection.execute("DELETE FROM errors WHERE id = 1")
    connection.close()
    assert "cases with another error than their own" in wrong(tmp_path / "kept")


@pytest.mark.slow
def test_books_show_an_episode_that_was_run_and_not_asked_for(soaked, tmp_path):
    shutil.copytree(soaked / "kept", tmp_path / "kept")
    (tmp_path / "kept" / "journal" / "stranger").write_bytes(
        RECORD.pack(12345, 0, 0) + RECORD.pack(12345, 0, 1)
    )
    assert {"episodes asked for", "episodes completed"} <= wrong(tmp_path / "kept")


def test_fates_are_as_frequent_as_they_should_be():
    rng = np.random.default_rng(0)
    numbers = keys(rng.random((200_000, 3)), rng.integers(0, 2**63, 200_000, dtype=np.uint64))
    assert len(np.unique(numbers)) == 200_000
    counts = np.bincount(fates(numbers), minlength=len(Fate))
    for fate, rate in RATES.items():
        assert counts[fate] == pytest.approx(200_000 * rate, rel=0.25)


def test_fate_depends_on_input_and_seed():
    row, seed = np.array([[0.1, 0.2, 0.3]]), np.array([7], np.uint64)
    assert keys(row, seed) == keys(row.copy(), seed.copy())
    assert keys(row, seed) != keys(row, seed + np.uint64(1))
    assert keys(row, seed) != keys(row[:, ::-1], seed)


def life(memory_at_the_end: float, seconds: float = 1000.0) -> list[Sample]:
    times = np.linspace(0.0, seconds, 100)
    growth = np.linspace(0.0, memory_at_the_end - 100.0, 100)
    return [Sample(1, at, 100.0 + more, 0.0, 20, 1, 5, 0) for at, more in zip(times, growth, strict=True)]


def test_memory_that_grows_is_not_flat():
    assert all(trend.is_flat for trend in trends(life(102.0)))
    assert [trend.what for trend in trends(life(200.0)) if not trend.is_flat] == ["memory"]


def test_short_lives_tell_nothing():
    assert trends(life(200.0, seconds=60.0)) == []
