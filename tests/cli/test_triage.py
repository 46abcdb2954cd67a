"""References, luck and triage by the command line and from Python."""

import json
import shutil
from pathlib import Path

import pytest

import policyfuzz as pf
from policyfuzz import CampaignReader
from policyfuzz.cli.main import exit_code
from policyfuzz.store.triage_file import FILE_NAME, Triage, read_triage

WALLS = f"{Path(__file__).parent / 'walls.py'}:make"
NOISY = f"{WALLS}:noise=yes"


def fuzz(folder, *options, target=WALLS, episodes=800):
    arguments = ["fuzz", target, "--max-execs", episodes, "-o", folder, "--ui", "none", *options]
    return exit_code([str(one) for one in arguments])


def looks_at(folder):
    """What triage has found out about the campaign in `folder`."""
    found = read_triage(folder, CampaignReader(folder).about["instance"]).findings
    runs = {int(number): one for number, one in found.items()}
    return {
        number: one
        for number, one in runs.items()
        if one.seeds_tried or one.survived_by or one.not_survived_by
    }


@pytest.fixture(scope="module")
def bold(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triage") / "bold"
    assert fuzz(folder) == 1
    return folder


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triage") / "noisy"
    assert fuzz(folder, target=NOISY, episodes=1200) == 1
    return folder


@pytest.fixture
def campaign(bold, tmp_path):
    """A copy, so that what one test learns is not known to the next."""
    return shutil.copytree(bold, tmp_path / "campaign")


def test_only_crashes_that_a_reference_survives_are_findings(tmp_path, capsys):
    assert fuzz(tmp_path / "c", "--reference", "careful") == 1
    out = capsys.readouterr().out
    assert "that no reference policy survives" in out
    assert "every finding is survived by careful" in out
    findings = CampaignReader(tmp_path / "c").findings()
    assert {one.survived_by for one in findings if one.status == "confirmed"} == {"careful"}
    assert all(one.input[1] < 0.5 for one in findings if one.status == "confirmed")


def test_nothing_is_found_when_no_reference_survives():
    result = pf.fuzz(WALLS, "careful", reference="bold", max_execs=600, progress=False)
    assert result.progress.findings == 0
    assert result.progress.unsolved > 0


def test_references_of_a_campaign_are_kept_when_it_is_resumed(tmp_path, capsys):
    assert fuzz(tmp_path / "c", "--reference", "careful", episodes=400) == 1
    assert fuzz(tmp_path / "c", "--resume", "--trust") == 1
    assert CampaignReader(tmp_path / "c").config.references == "careful"
    assert CampaignReader(tmp_path / "c").progress().executions == 800
    capsys.readouterr()
    assert fuzz(tmp_path / "c", "--resume", "--reference", "as bold", "--trust") == 2
    assert "is the policy that is tested" in capsys.readouterr().err


def test_reference_that_only_the_campaign_names_is_not_run_without_trust(tmp_path, capsys):
    assert fuzz(tmp_path / "c", "--reference", "careful", "--policy", "bold", episodes=400) == 1
    capsys.readouterr()
    assert fuzz(tmp_path / "c", "--resume", "--policy", "bold") == 2
    assert "careful" in capsys.readouterr().err


def test_python_takes_a_reference_or_a_list():
    results = [
        pf.fuzz(WALLS, "bold", reference=reference, max_execs=600, progress=False)
        for reference in ("careful", ["careful"])
    ]
    assert [one.progress.unsolved for one in results] == [results[0].progress.unsolved] * 2
    assert results[0].progress.unsolved > 0


def test_triage_tells_which_findings_another_policy_survives(campaign, capsys):
    assert exit_code(["triage", str(campaign), "--reference", "careful", "--trust"]) == 1
    out = capsys.readouterr().out
    reader = CampaignReader(campaign)
    distinct = reader.findings(distinct_only=True)
    saved = [one for one in distinct if one.input[1] < 0.5]
    assert f"{len(distinct):,} distinct findings were run again" in out
    assert f"{len(saved):,} are survived by careful" in out
    looks = looks_at(campaign)
    assert {number for number, look in looks.items() if look.survived_by} == {one.id for one in saved}
    assert exit_code(["show", str(campaign), str(saved[0].id)]) == 0
    assert "careful survives" in capsys.readouterr().out


def test_triage_goes_on_where_it_was_stopped(campaign, monkeypatch, capsys):
    assert exit_code(["triage", str(campaign), "--reference", "careful", "--trust", "--top", "1"]) in (0, 1)
    (first,) = looks_at(campaign)
    ran = []
    original = pf.core.target.Runner.__call__

    def counted(self, inputs, seeds, observer=None, *, branches=None):
        if self.target.policy_name == "careful":
            ran.extend(inputs.tolist())
        return original(self, inputs, seeds, observer, branches=branches)

    monkeypatch.setattr(pf.core.target.Runner, "__call__", counted)
    exit_code(["triage", str(campaign), "--reference", "careful", "--trust"])
    reader = CampaignReader(campaign)
    assert len(ran) == reader.progress().distinct_findings - 1
    assert reader.finding(first).input.tolist() not in ran
    capsys.readouterr()


def test_triage_runs_findings_with_other_seeds(noisy, tmp_path, capsys):
    campaign = shutil.copytree(noisy, tmp_path / "c")
    assert exit_code(["triage", str(campaign), "--seeds", "64", "--trust", "--json"]) == 1
    page = json.loads(capsys.readouterr().out)
    assert page["tried_with_other_seeds"] == page["findings"] > 0
    for look in looks_at(campaign).values():
        assert look.seeds == look.seeds_tried == 64
        assert look.seed_crashes > 32  # only starts at the left wall hold, and they crash 19 times in 20


def test_summary_tells_luck_from_what_holds(noisy, capsys):
    reader = CampaignReader(noisy)
    progress = reader.progress()
    assert progress.lucky > 0
    assert exit_code(["status", str(noisy)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"{progress.lucky:,} need a lucky one and are not distinct" in out
    lucky = next(one for one in reader.findings() if one.needs_luck)
    assert lucky.input[0] >= 0.1
    assert exit_code(["show", str(noisy), str(lucky.id)]) == 0
    out = capsys.readouterr().out
    assert "needs a lucky case seed" in out
    assert f"crashes with {lucky.reseeded_crashes} of {lucky.reseeded} other case seeds" in out


def test_findings_that_need_luck_come_last(noisy, capsys):
    assert exit_code(["show", str(noisy), "--all", "--sort", "severity", "--limit", "0", "--json"]) == 0
    needs_luck = [one["needs_luck"] for one in json.loads(capsys.readouterr().out)]
    assert any(needs_luck)
    assert needs_luck == sorted(needs_luck)


def test_triage_runs_no_code_that_only_the_campaign_names(campaign, capsys):
    assert exit_code(["triage", str(campaign), "--seeds", "2"]) == 2
    assert "walls.py" in capsys.readouterr().err
    assert not (campaign / FILE_NAME).exists()


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "{",
        '{"instance": "INSTANCE", "findings": {"1": {"seeds": 1}}}',
        '{"instance": "INSTANCE", "findings": {"1": {"survived_by": 3, "not_survived_by": [],'
        ' "seeds_tried": 0, "seeds": 0, "seed_crashes": 0}}}',
        '{"instance": "INSTANCE", "findings": {"1": {"survived_by": [], "not_survived_by": [],'
        ' "seeds_tried": 9, "seeds": 2, "seed_crashes": 3}}}',
    ],
)
def test_damaged_results_are_refused_with_a_sentence(campaign, content, capsys):
    instance = CampaignReader(campaign).about["instance"]
    (campaign / FILE_NAME).write_text(content.replace("INSTANCE", instance))
    assert exit_code(["show", str(campaign)]) == 2
    assert "run policyfuzz triage again" in capsys.readouterr().err


def test_another_reference_is_tried_though_one_survives(campaign, capsys):
    both = ["--reference", "careful", "--reference", "timid"]
    assert exit_code(["triage", str(campaign), *both[:2], "--trust"]) == 1
    assert exit_code(["triage", str(campaign), *both[2:], "--trust"]) == 1
    assert "are survived by timid" in capsys.readouterr().out
    for look in looks_at(campaign).values():
        assert "timid" in look.survived_by
        assert "careful" in (*look.survived_by, *look.not_survived_by)


def test_results_of_a_campaign_that_was_there_before_are_not_shown(campaign):
    exit_code(["triage", str(campaign), "--reference", "careful", "--trust"])
    assert looks_at(campaign)
    assert read_triage(campaign, "another campaign") == Triage("another campaign")


def test_results_are_not_written_through_a_link(campaign, tmp_path, capsys):
    (campaign / FILE_NAME).symlink_to(tmp_path / "elsewhere")
    assert exit_code(["triage", str(campaign), "--seeds", "2", "--trust"]) == 2
    assert "is a link" in capsys.readouterr().err
    assert not (tmp_path / "elsewhere").exists()
