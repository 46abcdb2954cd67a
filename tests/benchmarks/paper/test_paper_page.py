from dataclasses import replace

import pytest

from benchmarks.paper.page import write_page
from benchmarks.paper.results import Identity, Result
from benchmarks.paper.scenarios import STRATEGIES
from benchmarks.paper.selection import select
from policyfuzz.store.monitor_record import (
    Auc,
    Count,
    CrashWarnings,
    Curve,
    LeadAuc,
    MethodRecord,
    MonitorRecord,
)
from policyfuzz.store.plain_records import to_plain

ABOUT = {
    "command": "python -m benchmarks paper --public-networks /home/somebody/networks -o out",
    "machine": "a machine",
    "python": "3.11",
    "versions": {},
    "date": "2026-01-01T00:00:00",
}


def campaign(strategy, label="acasxu-public", budget="small", episodes=100, seed=0, crashes=(0, 1, 3, 7)):
    size = {"episodes": episodes, "replaced": 10}
    identity = Identity(f"campaign-{strategy}", label, budget, size, seed, "", "", "code")
    points = [0, episodes // 3, 2 * episodes // 3, episodes]
    found = {
        "executions": episodes,
        "samples": 50,
        "sample_crashes": 5,
        "crashes": crashes[-1],
        "distinct": 2,
        "lineages": 1,
        "curves": {"episodes": points, "crashes": list(crashes), "lineages": [0, 0, 1, 1]},
    }
    shares = {"simulate": 0.5, "validate": 0.1, "density": 0.2, "search": 0.1, "store": 0.1}
    return Result(identity, found, {"cpu_seconds": 2.0, "is_resumed": False, "shares": shares}, ABOUT)


def look(part, found, label="acasxu-public", costs=None):
    identity = Identity(part, label, "small", {"episodes": 100, "replaced": 10}, 0, "", "", "code")
    return Result(identity, found, costs or {"cpu_seconds": 1.0}, ABOUT)


WARNED = CrashWarnings(Count(7, 8, 0.5, 1.0), Count(8, 8, 0.6, 1.0), (9,), Count())


def method(name, given):
    leads = (LeadAuc(5, Auc(0.71, 0.6, 0.8), Auc(0.93, 0.9, 0.95)),)
    curves = tuple(Curve(name, (0.0, 0.5, 1.0), (0.0, 0.9, 1.0)) for name in ("near-miss", "nominal"))
    rates = Count(), Count(3, 1000), Count()
    return MethodRecord(name, given, 0.9, Auc(0.88), leads, curves, 1.0, *rates, WARNED, WARNED)


RECORD = MonitorRecord(
    "fit", "acasxu", "nets", ("default",), 12, 20, 50, 60, 70, 800, 20, 5, 0.01, "density", "observations",
    (method("mean-shift", "activations"), method("density", "observations")),
)  # fmt: skip


@pytest.fixture
def page(tmp_path):
    """Write a page and give back its text."""

    def write(*results, notes=""):
        path = tmp_path / "paper.md"
        write_page(results, path, notes)
        return path.read_text(encoding="utf-8")

    return write


def test_page_has_the_papers_numbers_beside_ours(page):
    text = page(*(campaign(strategy) for strategy in STRATEGIES))
    row = next(line for line in text.splitlines() if "135.7 in 161,543" in line)
    assert row.count("**7** (2; 1)") == len(STRATEGIES)
    assert "100.00 of 1,000" in row


def test_page_counts_late_crashes_with_and_without_freshness(page):
    with_freshness = campaign("mdpfuzz-published", crashes=(0, 1, 3, 7))
    without = campaign("reward-published", crashes=(0, 5, 6, 6))
    text = page(with_freshness, without)
    assert "| `acasxu-public` | 6 | 1 | +5 | not run | not run |" in text


def test_page_says_what_was_not_run(page):
    text = page(campaign("random"))
    assert "| `bipedal` | 124.0 in 6,602 | not run |" in text


def test_page_can_be_written_without_any_result(page):
    assert "nothing was run" in page()


def test_page_does_not_tell_where_folders_lie(page):
    text = page(campaign("random"))
    assert "/home/somebody" not in text
    assert "--public-networks networks -o out" in text


def test_notes_stand_in_their_sections(page):
    text = page(campaign("random"), notes="First of all.\n\n## time\n\nBecause of time.\n")
    assert text.index("First of all.") < text.index("## Results")
    where = text.index("Because of time.")
    assert text.index("## Where the time goes") < where < text.index("## With and without freshness")


def test_notes_of_an_unknown_section_are_refused(page):
    with pytest.raises(Exception, match="tiem"):
        page(campaign("random"), notes="## tiem\n\nBecause of time.\n")


def test_the_budget_with_all_strategies_is_shown_before_a_larger_one_without():
    small = [campaign(strategy) for strategy in STRATEGIES]
    full = campaign("random", budget="full", episodes=5000)
    assert select([full, *small]).episodes("acasxu-public") == 100
    whole = [campaign(strategy, budget="full", episodes=5000) for strategy in STRATEGIES]
    assert select([*small, *whole]).episodes("acasxu-public") == 5000


def test_seeds_of_a_strategy_are_shown_together(page):
    seeds = [campaign("mdpfuzz", seed=seed, crashes=(0, 0, 0, seed)) for seed in (0, 1)]
    assert "**0.5** (2; 1)" in page(*seeds)


def test_page_has_the_areas_of_both_detectors_and_their_curves(page, tmp_path):
    text = page(look("detector", {"campaign": "default", "record": to_plain(RECORD)}))
    row = next(line for line in text.splitlines() if line.startswith("| `acasxu-public` | 0.95 |"))
    assert "| 50, 12 | 0.880 | 0.930 (0.900 to 0.950) | 0.710 (0.600 to 0.800) | density on observ" in row
    assert "7 of 8 | 3 of 1,000" in row
    assert (tmp_path / "paper-roc.png").exists()


def test_page_prints_no_area_for_too_few_lineages(page, tmp_path):
    record = replace(RECORD, why_no_auc="4 lines of descent, expected 10 or more: get more")
    text = page(look("detector", {"campaign": "default", "record": to_plain(record)}))
    assert "no area: 4 lines of descent, expected 10 or more |" in text
    assert not (tmp_path / "paper-roc.png").exists()


def test_page_has_crashes_before_and_after_a_repair_with_its_tests(page):
    found = {"before": 40, "after": 9, "holds": False, "tests": ["passed: fewer", "failed: returns"]}
    text = page(look("repair", found))
    assert "40 crashes in 100 episodes of `mdpfuzz-published` before, 9 after." in text
    assert "does not pass every test" in text
    assert "- failed: returns" in text


def test_page_compares_the_cost_of_a_question_with_four_corpora(page):
    costs = {"distance": {str(size): size * 1e-5 for size in (100, 500, 1000, 3000)}, "cpu_seconds": 1.0}
    costs |= {"mixture_alone": 2e-4, "mixture_in_batch": 1e-4, "published_score_and_learn": 3e-3}
    found = {"batch": 256, "steps": 100, "dimensions": 17, "components": 10}
    text = page(look("freshness-cost", found, label="general", costs=costs))
    assert "| 3,000 | 156.87 s | 0.25 s | 30 ms | 0.2 ms | 0.1 ms | 3 ms |" in text


def test_a_killed_campaign_has_no_cost(page):
    one = campaign("default")
    text = page(replace(one, costs=one.costs | {"is_resumed": True}))
    assert "not known" in text
    assert "before they were killed" in text
