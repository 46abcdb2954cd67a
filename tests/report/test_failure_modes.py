import json
import math
from dataclasses import asdict

import pytest

import policyfuzz as pf
from policyfuzz.cli.console import json_text
from policyfuzz.cli.main import exit_code
from policyfuzz.core.branches import Segment
from policyfuzz.core.errors import UsageError
from policyfuzz.report.mode_summaries import find_mode, finding_named, mode_summaries
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.triage_file import FindingTriage, add_to_triage, triage_of
from policyfuzz.store.triage_records import (
    DECIDED,
    NONE_FOUND,
    WITNESS,
    Avoidance,
    Boundary,
    Change,
    Mode,
    Modes,
)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """A small campaign with made-up results of triage."""
    folder = tmp_path_factory.mktemp("modes") / "campaign"
    options = ["--max-execs", "600", "-o", str(folder), "--ui", "none"]
    assert exit_code(["fuzz", "ripple:dimensions=2,probability=0.02", *options]) == 1
    reader = CampaignReader(folder)
    first, second, *others = (finding.id for finding in reader.findings()[:6])
    step = reader.finding(first).crash_step
    avoidance = Avoidance(
        WITNESS,
        3,
        (Segment(1, 51, (1.0, 1.0)),),
        "all high from step 1 on",
        standing=DECIDED,
        last_chance=step - 1,
        blamed="swam too slowly",
    )
    boundary = Boundary((0.5, 0.5), (0.6, 0.5), 0.1, 0.001, (Change("x0", 0.6, 0.1, "m"),), ("x1",), 20)
    known = {
        first: FindingTriage(avoidance=avoidance, boundary=boundary),
        second: FindingTriage(avoidance=Avoidance(NONE_FOUND, 64)),
    }
    modes = Modes(
        (
            Mode(1, "caught", first, (first, second), 2, 0.25, "near the centre", 0.75, 0.5, 0.9, 6, 0.5, 32),
            Mode(2, "caught", others[0], tuple(others), 1, 0.1),
        ),
        is_stable=True,
        agreement=0.95,
        findings=len(others) + 2,
        random_crashes=8,
        random_draws=400,
    )
    add_to_triage(folder, reader.about["instance"], known, modes)
    return folder, first, second


def test_a_mode_counts_what_was_tried(campaign):
    folder, first, _ = campaign
    reader = CampaignReader(folder)
    one, two = mode_summaries(reader, triage_of(reader))
    assert (one.tried, one.witnesses, one.none_found, one.decided) == (2, 1, 1, 1)
    assert one.steps_before_crash == 1
    assert one.representative.id == first
    assert (two.tried, two.avoidable_text) == (0, "not known whether it can be avoided")


def test_findings_are_named_by_number_or_mode(campaign):
    folder, first, second = campaign
    reader = CampaignReader(folder)
    triage = triage_of(reader)
    assert finding_named(reader, triage, "M1").id == first
    assert finding_named(reader, triage, str(second)).id == second
    assert find_mode(triage, "7") is None
    for name in ("M3", "M0", "mx", "-1", "two", "9" * 30):
        with pytest.raises(UsageError):
            finding_named(reader, triage, name)


def test_show_leads_with_modes(campaign, capsys):
    folder, _, _ = campaign
    assert exit_code(["show", str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 failure modes in 6 confirmed findings, stable")
    assert "M1  caught: 2 findings from 2 lineages, 75% of random crashes (50% to 90%)" in out
    assert "1 of 2 tried can be avoided" in out
    assert "decided 1 steps before the crash" in out
    assert f"policyfuzz replay {folder} M1" in out


def test_show_lists_findings_if_it_is_asked_to(campaign, capsys):
    folder, _, _ = campaign
    for option in ("--findings", "--all", "--top=3"):
        assert exit_code(["show", str(folder), option]) == 0
        assert "at step" in capsys.readouterr().out


def test_show_tells_of_one_mode_and_one_finding(campaign, capsys):
    folder, first, _ = campaign
    assert exit_code(["show", str(folder), "m1"]) == 0
    out = capsys.readouterr().out
    assert "last chance" in out
    assert "swam too slowly" in out
    assert "x0 +0.1 m" in out
    assert exit_code(["show", str(folder), str(first)]) == 0
    assert "M1: near the centre" in capsys.readouterr().out


def test_modes_of_a_campaign_without_triage_are_asked_for(tmp_path, capsys):
    options = ["--max-execs", "600", "-o", str(tmp_path / "c"), "--ui", "none"]
    assert exit_code(["fuzz", "ripple:dimensions=2,probability=0.02", *options]) == 1
    capsys.readouterr()
    assert exit_code(["show", str(tmp_path / "c"), "--modes"]) == 2
    assert "policyfuzz triage" in capsys.readouterr().err


def test_modes_and_witnesses_from_python(campaign):
    folder, first, second = campaign
    result = pf.open_result(folder)
    assert [mode.number for mode in result.modes] == [1, 2]
    representative = result.modes[0].representative
    assert representative.id == first
    assert representative.witness.words == "all high from step 1 on"
    assert representative.mode.number == 1
    assert result.finding(second).witness is None
    assert [one.id for one in result.modes[0].findings] == [first, second]
    assert representative.replay().crashes
    assert "near the centre" in repr(result.modes)
    assert ">M1</td>" in result.modes._repr_html_()


def test_modes_are_a_data_frame(campaign):
    pytest.importorskip("pandas")
    table = pf.open_result(campaign[0]).modes.to_pandas()
    assert table.loc[1, "witnesses"] == 1
    assert table.loc[2, "findings"] == 4


def test_a_branch_that_leaves_numbers_to_the_policy_is_json():
    known = Avoidance(WITNESS, 1, (Segment(1, 2, (math.nan, 1.0)),))
    assert json.loads(json_text(asdict(known)))["branch"][0]["numbers"] == [None, 1.0]
