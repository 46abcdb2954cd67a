import json
import os
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from benchmarks.paper import results
from benchmarks.paper.command import run_part
from benchmarks.paper.parts import Part, parts_of
from benchmarks.paper.repaired import NEEDED
from benchmarks.paper.results import Identity
from benchmarks.paper.scenarios import choose

EPISODES = 64
#: Longer than any start of a campaign takes on a busy machine.
PATIENCE_SECONDS = 300


def arguments(folder):
    return ["paper", "--target", "acasxu", "--episodes", EPISODES, "-o", folder]


def found_in(folder):
    """What every result file holds, but for costs and circumstances."""
    return {
        path.relative_to(folder): [json.loads(path.read_text())[name] for name in ("identity", "found")]
        for path in sorted(Path(folder).glob("*/*/*.json"))
    }


def killed_in_the_middle(folder):
    """Start the bench, and kill it once it has begun its third campaign."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks", *map(str, arguments(folder))],
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
    )
    try:
        patience = time.monotonic() + PATIENCE_SECONDS
        while len(list(folder.glob("*/*/campaigns/*.begun"))) < 3:
            assert process.poll() is None, "the bench ended before it could be killed"
            assert time.monotonic() < patience, "the bench does not get on"
            time.sleep(0.01)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_results_are_the_same_after_a_kill_and_a_second_start(bench, tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    assert bench(*arguments(undisturbed))[0] == 0
    killed_in_the_middle(killed)
    assert len(found_in(killed)) < len(found_in(undisturbed))
    assert bench(*arguments(killed), "-j", 2)[0] == 0
    assert found_in(killed) == found_in(undisturbed)

    before = {path: path.stat().st_mtime_ns for path in killed.glob("*/*/*.json")}
    page = tmp_path / "docs" / "paper.md"
    assert bench(*arguments(killed), "--page", page)[0] == 0
    assert {path: path.stat().st_mtime_ns for path in killed.glob("*/*/*.json")} == before
    assert f"`acasxu`, {EPISODES} episodes" in page.read_text(encoding="utf-8")
    assert (page.parent / "paper-curves.png").exists()


def test_the_repair_waits_for_its_two_campaigns_and_what_looks_at_all_for_all(tmp_path):
    (scenario,) = choose(("acasxu",), "small", EPISODES, None)
    parts = {part.identity.part: part for part in parts_of(scenario, scenario.load(), tmp_path, seeds=1)}
    campaigns = {part.file for part in parts.values() if part.is_campaign}
    assert not any(part.needs for part in parts.values() if part.is_campaign)
    assert parts["coverage"].needs == campaigns
    assert parts["repair"].needs == {parts[f"campaign-{name}"].file for name in NEEDED}


@pytest.fixture
def part(tmp_path):
    """A part that counts how often it was run, with code that may change."""
    runs = count(1)

    def make(code):
        identity = Identity("counted", "acasxu", "small", {}, 0, "", "", code)
        return Part(identity, tmp_path / "counted-0.json", lambda: ({"runs": next(runs)}, {}))

    return make


def runs_of(part):
    return results.load(part.file).found["runs"]


def test_a_part_with_a_result_is_not_run_again(part):
    for _ in range(2):
        run_part(part("now"), keep_outdated=False)
    assert runs_of(part("now")) == 1


def test_a_part_of_other_code_runs_again_unless_it_is_kept(part, capsys):
    run_part(part("before"), keep_outdated=False)
    run_part(part("now"), keep_outdated=True)
    assert runs_of(part("now")) == 1
    run_part(part("now"), keep_outdated=False)
    assert runs_of(part("now")) == 2
    said = capsys.readouterr().err
    assert "kept" in said
    assert "code was 'before', now 'now'" in said


def test_a_misspelt_target_is_refused_with_a_suggestion(bench):
    code, _, err = bench("paper", "--target", "acasxuu")
    assert code == 2
    assert "acasxu" in err


def test_a_budget_of_no_episodes_is_refused(bench):
    code, _, err = bench("paper", "--target", "acasxu", "--episodes", 3)
    assert code == 2
    assert "10 or more" in err
