"""Triage of whole campaigns, by the command line."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stdout

import pytest

from policyfuzz.cli.main import exit_code
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.triage_file import FILE_NAME, triage_of

TARGET = "ripple:dimensions=2,regions=2,probability=0.01"


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("triage") / "ripple"
    assert exit_code(["fuzz", TARGET, "--max-execs", "1500", "-o", str(folder), "--ui", "none"]) == 1
    return folder


@pytest.fixture
def campaign(fuzzed, tmp_path):
    return shutil.copytree(fuzzed, tmp_path / "campaign")


@pytest.fixture(scope="module")
def page_and_folder(fuzzed):
    """What a triage without a budget prints, and the campaign afterwards: to be read only."""
    folder, printed = shutil.copytree(fuzzed, fuzzed.with_name("triaged")), io.StringIO()
    with redirect_stdout(printed):
        assert exit_code(["triage", str(folder)]) == 1
    return printed.getvalue(), folder


@pytest.fixture
def triaged(page_and_folder, tmp_path):
    return shutil.copytree(page_and_folder[1], tmp_path / "triaged")


def known(folder):
    return triage_of(CampaignReader(folder))


def test_triage_finds_modes_witnesses_and_boundaries(page_and_folder):
    page, campaign = page_and_folder
    assert "M1  caught:" in page
    triage = known(campaign)
    for mode in triage.modes.modes:
        of_representative = triage.of(mode.representative)
        assert of_representative.avoidance is not None
        assert of_representative.boundary.crashes
    members = [number for mode in triage.modes.modes for number in mode.members]
    assert sorted(members) == [
        one.id for one in CampaignReader(campaign).findings() if one.status == "confirmed"
    ]


def test_triage_runs_nothing_again(triaged, capsys):
    before = (triaged / FILE_NAME).read_bytes()
    assert exit_code(["triage", str(triaged), "--json"]) == 1
    page = json.loads(capsys.readouterr().out)
    assert (page["episodes"], page["is_complete"]) == (0, True)
    assert (triaged / FILE_NAME).read_bytes() == before


def test_triage_keeps_to_its_budget_and_goes_on(campaign, triaged, capsys):
    for budget in (300, 600):
        assert exit_code(["triage", str(campaign), "--max-execs", str(budget), "--json"]) == 1
        page = json.loads(capsys.readouterr().out)
        assert 0 < page["episodes"] <= budget
        assert page["modes"]  # coarse ones, by fewer episodes
    exit_code(["triage", str(campaign), "--json"])
    assert json.loads(capsys.readouterr().out)["is_complete"]
    whole, parts = known(triaged), known(campaign)
    assert whole.modes == parts.modes
    for number, one in whole.findings.items():
        assert parts.findings[number] == one


def test_a_budget_that_is_too_small_is_said(campaign, capsys):
    assert exit_code(["triage", str(campaign), "--max-execs", "20"]) == 1
    out = capsys.readouterr().out
    assert "the failure modes are not known yet" in out
    assert "the budget is spent" in out


def test_other_seeds_keep_to_the_budget(triaged, capsys):
    assert exit_code(["triage", str(triaged), "--max-execs", "40", "--seeds", "64", "--json"]) == 1
    page = json.loads(capsys.readouterr().out)
    assert page["episodes"] <= 40
    assert not page["is_complete"]


def test_no_finding_is_no_mode(tmp_path, capsys):
    folder = tmp_path / "nothing"
    options = ["--max-execs", "50", "--samples", "20", "-o", str(folder), "--ui", "none"]
    assert exit_code(["fuzz", "ripple:dimensions=10,probability=1e-9", *options]) == 0
    capsys.readouterr()
    assert exit_code(["triage", str(folder)]) == 0
    assert "no failure modes" in capsys.readouterr().out


def test_fuzz_says_that_triage_is_next(tmp_path, capsys):
    options = ["--max-execs", "900", "-o", str(tmp_path / "c"), "--ui", "none"]
    assert exit_code(["fuzz", TARGET, *options]) == 1
    assert f"policyfuzz triage {tmp_path / 'c'}" in capsys.readouterr().out


@pytest.mark.slow
def test_workers_find_out_the_same(campaign, triaged, capsys):
    exit_code(["triage", str(campaign), "-j", "2"])
    assert (campaign / FILE_NAME).read_bytes() == (triaged / FILE_NAME).read_bytes()


@pytest.mark.slow
def test_a_killed_triage_goes_on_and_ends_alike(campaign, triaged):
    content = {path.name: path.read_bytes() for path in campaign.iterdir() if path.is_file()}
    command = [sys.executable, "-m", "policyfuzz", "triage", str(campaign)]
    for wanted in (1, 3):  # once modes are known, and among the witnesses
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and _answers(campaign) < wanted:
            time.sleep(0.01)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert {name: (campaign / name).read_bytes() for name in content} == content
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    assert (campaign / FILE_NAME).read_bytes() == (triaged / FILE_NAME).read_bytes()


def _answers(folder):
    """How much a triage that is under way has stored."""
    triage = known(folder)
    return (triage.modes is not None) + sum(one.avoidance is not None for one in triage.findings.values())
