"""policyfuzz minimize and Result.minimize."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import CampaignReader, open_result
from policyfuzz.targets.ripple.target import Pond

WALLS = f"{Path(__file__).parent / 'walls.py'}:make"


def room(campaign):
    """How far finding 1 is from the end of its crash region."""
    pond = Pond.make(3, 1, 0.01)
    finding = CampaignReader(campaign).finding(1).input
    return pond.half_width - np.abs(finding - pond.centres[0]).max()


def test_pair_changes_and_the_command_to_replay_are_printed(cli, campaign):
    code, out, _ = cli("minimize", campaign, 1)
    assert code == 1
    lines = out.splitlines()
    assert lines[0].startswith("finding 1 crashes; the nearest input found that passes is 0.")
    assert lines[1].split() == ["finding", "crashes", "passes"]
    for name in ("x0", "x1", "x2"):
        assert [line for line in lines if f"    {name} 0." in line and " -> " in line]
    assert lines[-1] == f"replay it:   policyfuzz replay {campaign} 1"


def test_json_has_both_sides_and_the_true_distance(cli, campaign):
    code, out, _ = cli("minimize", campaign, 1, "--json", "--max-execs", 100)
    page = json.loads(out)
    assert code == 1
    assert (page["finding"], page["crashes"], page["no_matter"], page["not_known"]) == (1, True, [], [])
    assert page["episodes"] <= 100
    assert page["distance"] == pytest.approx(room(campaign), rel=0.1)
    assert set(page["input"]) == set(page["crashing"]) == set(page["passing"]) == {"x0", "x1", "x2"}
    assert {change["dimension"] for change in page["changes"]} == {"x0", "x1", "x2"}
    assert "rule" not in page


def test_python_gives_the_same_as_the_command_line(cli, campaign):
    page = json.loads(cli("minimize", campaign, 1, "--json")[1])
    found = open_result(campaign).minimize(1)
    assert (found.distance, found.episodes) == (page["distance"], page["episodes"])
    assert [one.value for one in found.changes] == [one["value"] for one in page["changes"]]


def test_rule_is_printed_with_its_interval_and_coverage(cli, campaign):
    code, out, _ = cli("minimize", campaign, 1, "--rule")
    assert code == 1
    text = out[out.index("rule: it crashes where x0 0.") :]
    assert " and x1 0." in text
    assert "of 150 fresh draws crash (95 %: " in text
    assert "others lie in it" in text
    page = json.loads(cli("minimize", campaign, 1, "--rule", "--json")[1])
    assert page["rule"]["rule"]["precision_low"] >= 0.8
    assert len(page["rule"]["conditions"]) == 3


def test_missing_rule_is_told_with_its_reason(cli, tmp_path):
    folder = tmp_path / "many"
    target = "ripple:dimensions=8,probability=0.1"
    assert cli("fuzz", target, "--max-execs", 300, "-o", folder, "--ui", "none")[0] == 1
    _, out, _ = cli("minimize", folder, 1, "--rule")
    assert "no rule: rules are for up to 6 dimensions, and the input has 8 (0 episodes)" in out


@pytest.mark.slow
def test_workers_give_the_same(cli, campaign):
    alone = cli("minimize", campaign, 1, "--rule", "--json")
    assert cli("minimize", campaign, 1, "--rule", "--json", "-j", 2)[:2] == alone[:2]


def test_finding_that_another_policy_survives_is_told(cli, tmp_path):
    folder = tmp_path / "walls"
    assert cli("fuzz", WALLS, "--max-execs", 400, "-o", folder, "--ui", "none")[0] == 1
    saved = next(one for one in CampaignReader(folder).findings() if one.input[1] < 0.5)
    code, out, _ = cli("minimize", folder, saved.id, "--target", WALLS, "--policy", "careful")
    assert code == 0
    assert f"finding {saved.id} does not crash any more with careful" in out
    code, out, _ = cli("minimize", folder, saved.id, "--trust", "--policy", "careful", "--json")
    assert (code, json.loads(out)["crashes"]) == (0, False)


def test_code_that_only_the_campaign_names_is_not_run(cli, tmp_path):
    folder = tmp_path / "walls"
    assert cli("fuzz", WALLS, "--max-execs", 400, "-o", folder, "--ui", "none")[0] == 1
    code, _, err = cli("minimize", folder, 1)
    assert code == 2
    assert "walls.py" in err


def test_changed_policy_is_refused(cli, campaign, tmp_path):
    changed = shutil.copytree(campaign, tmp_path / "changed")
    with closing(sqlite3.connect(changed / "campaign.sqlite")) as connection, connection:
        connection.execute(
            'UPDATE about SET value = replace(value, \'"policy_sha256": ""\', \'"policy_sha256": "other"\')'
        )
    code, _, err = cli("minimize", changed, 1)
    assert code == 2
    assert "has changed since" in err


def test_other_target_is_refused(cli, campaign):
    code, _, err = cli("minimize", campaign, 1, "--target", "ripple:dimensions=5")
    assert code == 2
    assert "name the target that the campaign was run on" in err


def test_finding_that_is_not_there_is_refused(cli, campaign):
    assert cli("minimize", campaign, 999_999)[0] == 2
