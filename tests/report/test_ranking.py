"""Findings are listed by how bad and how different they are."""

import json
import shutil

import numpy as np
import pytest

from policyfuzz import CampaignReader, fuzz
from policyfuzz.cli.main import exit_code
from policyfuzz.report.ranking import farthest_first, ranked, representatives, worst_and_most_different
from policyfuzz.store.triage_file import add_to_triage
from policyfuzz.store.triage_records import Mode, Modes

RIPPLE = "ripple:dimensions=3,probability=0.02,regions=2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranking") / "c"
    assert fuzz(RIPPLE, out=folder, max_execs=1500, progress=False).progress.distinct_findings > 20
    return folder


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("found", lambda one: one.id),
        ("return", lambda one: (one.episode_return, one.crash_step, one.id)),
        ("time", lambda one: (one.crash_step, one.episode_return, one.id)),
    ],
)
@pytest.mark.parametrize("distinct_only", [False, True])
def test_findings_are_sorted_and_paged(folder, order, key, distinct_only):
    campaign = CampaignReader(folder)
    expected = sorted(campaign.findings(distinct_only), key=key)
    found = ranked(campaign, order, distinct_only, None, 0)
    assert [one.id for one in found] == [one.id for one in expected]
    page = ranked(campaign, order, distinct_only, 4, 3)
    assert [one.id for one in page] == [one.id for one in expected[3:7]]


def test_summary_and_distance_begin_with_the_worst_and_go_on_with_the_most_different(folder):
    campaign = CampaignReader(folder)
    worst = min(campaign.findings(True), key=lambda one: (one.margin, one.episode_return))
    shown = worst_and_most_different(campaign, 5)
    by_distance = list(ranked(campaign, "distance", True, 5, 0))
    for found in (shown, by_distance):
        assert found[0].id == worst.id
        assert len({one.id for one in found}) == 5
    first = campaign.findings(True)[:5]
    assert spread(by_distance) > spread(first)


def spread(findings):
    """The least distance between two of `findings`."""
    points = np.array([one.input for one in findings])
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    return apart[np.triu_indices(len(points), 1)].min()


def test_farthest_points_come_first():
    points = np.array([[0.0], [0.1], [1.0], [0.5], [0.0]])
    assert farthest_first(points, 3) == [0, 2, 3]
    assert sorted(farthest_first(points, 99)) == [0, 1, 2, 3, 4]
    assert farthest_first(np.empty((0, 1)), 3) == []


def test_show_lists_the_worst(folder, capsys):
    assert exit_code(["show", str(folder), "--top", "3", "--json"]) == 0
    margins = [one["margin"] for one in json.loads(capsys.readouterr().out)]
    every = sorted(one.margin for one in CampaignReader(folder).findings(True))
    assert margins == every[:3]
    assert exit_code(["show", str(folder), "--sort", "return", "--limit", "3", "--json"]) == 0
    returns = [one["return"] for one in json.loads(capsys.readouterr().out)]
    assert returns == sorted(one.episode_return for one in CampaignReader(folder).findings(True))[:3]
    assert exit_code(["show", str(folder), "--sort", "distance", "--limit", "2"]) == 0
    assert exit_code(["show", str(folder), "1", "--top", "3"]) == 2
    assert "--sort and --top are for lists of findings" in capsys.readouterr().err


def test_representatives_are_the_worst_and_most_different_before_triage(folder):
    campaign = CampaignReader(folder)
    found = [one.id for one in representatives(campaign, 4)]
    assert found == [one.id for one in worst_and_most_different(campaign, 4)]


@pytest.mark.parametrize("is_stable", [True, False])
def test_representatives_are_those_of_stable_modes(folder, tmp_path, is_stable):
    copy = CampaignReader(shutil.copytree(folder, tmp_path / "c"))
    numbers = [one.id for one in copy.findings(distinct_only=True)[3:6]]
    modes = [Mode(place, "caught", number, (number,), 1, 0.1) for place, number in enumerate(numbers, 1)]
    known = Modes(tuple(modes), is_stable, 1.0, 3, 0, 0)
    add_to_triage(copy.folder, copy.about["instance"], {}, known)
    found = [one.id for one in representatives(copy, 2)]
    assert (found == numbers[:2]) == is_stable
    assert len(found) == 2
