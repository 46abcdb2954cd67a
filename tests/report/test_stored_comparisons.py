"""Comparisons beside a campaign, which a stranger may have written."""

import json

import numpy as np
import pytest

from policyfuzz import CampaignReader, Comparison
from policyfuzz.report.campaign_report import beside
from policyfuzz.report.campaign_report.view import read_view
from policyfuzz.report.comparison import Pair, counted
from policyfuzz.report.stored_comparisons import stored_comparisons
from policyfuzz.report.tally import Tally
from policyfuzz.store.comparisons import ERROR, FAILS, FINDINGS_OF_A, PASSES, POOL, Ending, endings_text
from policyfuzz.triage.compare import Case
from tests.report.reported_campaigns import HOSTILE, write_campaign

FAIL, PASS, FAULT = Ending(FAILS, "crash", 3, -1.0), Ending(PASSES), Ending(ERROR)
ENDS = [(POOL, PASS, FAIL, 9), (POOL, PASS, PASS, 50), (POOL, FAULT, PASS, 1), (FINDINGS_OF_A, FAIL, PASS, 4)]


def comparison_of(config, **changes):
    pairs = [
        Pair(Case(group, None, np.array([0.5]), place), a, b)
        for group, a, b, count in ENDS
        for place in range(count)
    ]
    values = {"a": "old", "b": "new", "policy_sha256": (config.policy_sha256, "b" * 64)} | changes
    return Comparison(
        config.target,
        groups=counted(pairs),
        planned=len(pairs),
        pairs=tuple(pairs),
        dimensions=("x",),
        **values,
    )


@pytest.fixture
def folder(tmp_path):
    return write_campaign(tmp_path / "c")


def config_of(folder):
    return CampaignReader(folder).config


def stored(folder, values, name="compare.json"):
    (folder / name).write_text(values if isinstance(values, str) else json.dumps(values))
    (one,) = stored_comparisons(folder, config_of(folder))
    return one


def test_what_was_printed_as_json_comes_back(folder):
    made = comparison_of(config_of(folder))
    assert stored(folder, made.summary()).tally.summary() == Tally.summary(made)


def test_file_that_a_comparison_goes_on_from_holds_its_summary(folder):
    made = comparison_of(config_of(folder))
    text = endings_text({"a" * 32: (FAIL, PASS)}, "identity", Tally.summary(made))
    assert stored(folder, text).tally.summary() == Tally.summary(made)


@pytest.mark.parametrize("text", ["", endings_text({"a" * 32: (FAIL, PASS)}, "identity")])
def test_comparison_that_still_runs_is_no_damage(folder, text):
    assert stored(folder, text).problem == "the comparison has not come to its end"


def test_comparison_of_others_is_not_shown(folder):
    other = comparison_of(config_of(folder), policy_sha256=("a" * 64, "b" * 64))
    assert "other policies" in stored(folder, other.summary()).problem


def test_verdict_of_a_stranger_counts_for_nothing(folder):
    summary = comparison_of(config_of(folder)).summary() | {"verdict": "better", "p_value": 1e-9}
    tally = stored(folder, summary).tally
    assert tally is not None
    assert tally.verdict == "worse"


@pytest.mark.parametrize(
    "changes",
    [
        {"cases": -1},
        {"fixed": 10**6},
        {"errors_of_a": 70},
        {"errors_of_a": 0},
        {"both_pass": "50"},
        {"more": 1},
    ],
)
def test_counts_that_contradict_each_other_are_refused(folder, changes):
    summary = comparison_of(config_of(folder)).summary()
    summary["groups"][POOL] |= changes
    assert "holds no comparison" in stored(folder, summary).problem


@pytest.mark.parametrize(
    "changes",
    [
        {"groups": {}},
        {"groups": {"others": {}}},
        {"planned": 3},
        {"policy_sha256": ["a"]},
        {"campaigns": [{"folder": "x", "executions": 1, "distinct_findings": 1, "lineages": 1}]},
        {"a": None},
    ],
)
def test_summaries_that_make_no_sense_are_refused(folder, changes):
    assert (
        "holds no comparison" in stored(folder, comparison_of(config_of(folder)).summary() | changes).problem
    )


@pytest.mark.parametrize("text", ["[]", "[" * 100_000, '{"summary": 1}', "{}x", "1"])
def test_damaged_file_is_told_and_hurts_nobody(folder, text):
    assert stored(folder, text).problem


def test_link_is_not_followed(folder, tmp_path):
    (tmp_path / "secret").write_text(json.dumps(comparison_of(config_of(folder)).summary()))
    (folder / "compare.json").symlink_to(tmp_path / "secret")
    (one,) = stored_comparisons(folder, config_of(folder))
    assert one.tally is None
    assert "link" in one.problem


def test_report_shows_comparisons_and_what_is_wrong_with_others(folder):
    made = comparison_of(config_of(folder), b=f"new{HOSTILE}")
    (folder / "compare-1.json").write_text(json.dumps(made.summary()))
    (folder / "compare-2.json").write_text("no")
    page = str(beside.policies(read_view(folder)))
    assert "B is worse" in page
    assert "newly failing" in page
    assert "compare-2.json: not shown" in page
    assert "<script>pwned" not in page
