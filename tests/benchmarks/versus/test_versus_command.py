import csv

import numpy as np
import pytest

from benchmarks.versus import peers
from benchmarks.versus.trial import Trial

EASY = "ripple:dimensions=2,regions=3,probability=0.01"


@pytest.mark.slow
def test_versus_runs_reports_and_goes_on_where_it_was(bench, tmp_path):
    arguments = ("--target", EASY, "--contestant", "default", "--contestant", "random", "--episodes", 300)
    code, out, err = bench("versus", *arguments, "--seeds", 1, "--page", "page.md")
    assert code == 0, "one seed tells nothing about goals"
    assert "default: 1 of 10 seeds" in " ".join((tmp_path / "page.md").read_text().split())
    assert "ripple-dimensions=2-regions=3-probability=0.01, 300 episodes" in out
    assert "default seed 0" in err
    code, out, err = bench("versus", *arguments, "--seeds", 2, "--page", "page.md")
    assert "2 of 4 trials are there already, and are not run again" in err
    assert "seed 0" not in err
    assert err.count("seed 1") == 2
    with (tmp_path / "versus" / "trials.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["contestant"], row["seed"]) for row in rows] == [
        ("default", "0"),
        ("default", "1"),
        ("random", "0"),
        ("random", "1"),
    ]
    assert sum(int(row["findings"]) for row in rows) > 0
    assert (tmp_path / "versus" / "episodes.png").exists()
    page = (tmp_path / "page.md").read_text()
    assert "seeds: 0, 1 for default, random" in page
    for seeds in (1, 2):
        words = f"--contestant default --contestant random --episodes 300 --seeds {seeds} --page page.md"
        assert f"- command: `python -m benchmarks versus --target {EASY} {words}`" in page


@pytest.mark.slow
def test_versus_can_run_trials_side_by_side(bench, tmp_path):
    code, _, err = bench(
        "versus",
        "--target",
        EASY,
        "--contestant",
        "random",
        "--seeds",
        2,
        "--episodes",
        300,
        "-j",
        2,
    )
    assert code == 0
    assert "random seed 0" in err
    assert "random seed 1" in err
    assert len(list((tmp_path / "versus" / "raw").glob("*/*/*.npz"))) == 2


def test_versus_says_where_a_peer_broke_off(bench, monkeypatch):
    def give_up(target, episodes, seed):
        inputs = np.empty((0, len(target.inputs.dimensions)))
        return Trial(40, 1.0, 1.0, np.empty(0, np.int64), inputs, np.empty(0, np.uint64))

    monkeypatch.setattr(peers, "PEERS", {"quitter": lambda: give_up})
    code, out, err = bench(
        "versus", "--target", EASY, "--contestant", "quitter", "--seeds", 1, "--episodes", 300
    )
    assert code == 0
    assert "quitter seed 0: 0 findings, 0 distinct, broke off after 40 of 300 episodes" in err
    assert "1 broke off" in out


def test_versus_reports_without_running(bench):
    code, _, err = bench("versus", "--report-only", "-o", "nothing")
    assert code == 2
    assert "no raw files in nothing" in err


def test_versus_has_a_help_of_its_own(bench):
    code, out, _ = bench("versus", "--help")
    assert code == 0
    assert "python -m benchmarks versus [OPTIONS]" in out
    assert "--report-only" in out
    assert "--strategy" not in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--target", "acasx"], "did you mean 'acasxu'?"),
        (["--contestant", "randm", "--target", "ripple-2"], "did you mean 'random'?"),
        (["--target", "ripple-2", "--contestant", "random", "--seeds", "0"], "seeds is 0"),
        (["--target", "ripple-2", "--contestant", "random", "--jobs", "0"], "jobs is 0"),
    ],
)
def test_versus_refuses_what_makes_no_sense(bench, arguments, complaint):
    code, _, err = bench("versus", *arguments)
    assert code == 2
    assert complaint in err
