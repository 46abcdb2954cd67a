"""Findings as a test file."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import CampaignReader, KnownCases
from policyfuzz.cli.main import exit_code
from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.report.pytest_file import pytest_text
from policyfuzz.report.ranking import representatives

sys.path.append(str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "store"))
from example_findings import a_finding
from hostile_campaigns import HOSTILE, hostile_target

RIPPLE = "ripple:dimensions=3,probability=0.02"
WALLS = f"{Path(__file__).parents[1] / 'cli' / 'walls.py'}:make"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pytest file") / "c"
    words = ["fuzz", RIPPLE, "--max-execs", "600", "-o", str(folder), "--ui", "none"]
    assert exit_code(words) == 1
    return folder


def constants(text):
    """Names to values of the literals at the top of a module, and the kinds of all its statements."""
    body = ast.parse(text).body
    found = {one.targets[0].id: ast.literal_eval(one.value) for one in body if isinstance(one, ast.Assign)}
    return found, [type(one).__name__ for one in body]


def test_inputs_and_case_seeds_are_exact(folder):
    campaign = CampaignReader(folder)
    findings = representatives(campaign, 5)
    found, _ = constants(pytest_text(campaign, findings, trust=False))
    assert [(row, seed) for _, row, seed, _ in found["FINDINGS"]] == [
        (tuple(one.input.tolist()), one.case_seed) for one in findings
    ]
    assert (found["TARGET"], found["POLICY"], found["TRUST"]) == (RIPPLE, None, False)


def test_message_names_what_was_found_and_how_to_see_it(folder):
    campaign = CampaignReader(folder)
    (finding,) = representatives(campaign, 1)
    ((name, _, _, said),) = constants(pytest_text(campaign, [finding], trust=False))[0]["FINDINGS"]
    assert name == f"finding-{finding.id}-caught-at-step-{finding.crash_step}"
    assert f"caught at step {finding.crash_step}, return {finding.episode_return!r}" in said
    assert f"policyfuzz replay '{folder}' {finding.id}" in said


def test_texts_of_strangers_stay_literals(run_campaign):
    campaign = run_campaign(hostile_target(), executions=200, policy=f"py:{HOSTILE}")
    text = pytest_text(campaign, representatives(campaign, 2), trust=False)
    found, kinds = constants(text)
    assert kinds == ["Expr", *["Import"] * 3, *["Assign"] * 5, "FunctionDef", "FunctionDef"]
    assert found["TARGET"] == f"x{HOSTILE}.py:make"
    assert found["POLICY"] == f"py:{HOSTILE}"
    assert found["DIMENSIONS"] == [f"x{HOSTILE}"]
    assert all(f"fall{HOSTILE}" in said for *_, said in found["FINDINGS"])
    assert text.isascii()
    assert all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("trust", [False, True])
def test_code_that_is_named_is_said_and_trusted_only_if_the_user_did(run_campaign, trust):
    campaign = run_campaign(hostile_target(), executions=200)
    text = pytest_text(campaign, representatives(campaign, 1), trust)
    assert "run code that is no part of PolicyFuzz" in text
    assert ("It is run" in text) == trust
    assert constants(text)[0]["TRUST"] == trust


def test_built_in_target_needs_no_word_about_code(folder):
    campaign = CampaignReader(folder)
    assert "run code that is no part" not in pytest_text(campaign, representatives(campaign, 1), False)


def test_target_of_a_python_program_is_refused(folder):
    campaign = CampaignReader(folder)
    object.__setattr__(campaign.config, "target", "python:mine")
    with pytest.raises(UsageError, match="exists only there"):
        pytest_text(campaign, [a_finding()], trust=False)


def test_campaign_without_findings_is_refused(folder):
    with pytest.raises(UsageError, match="no distinct findings"):
        pytest_text(CampaignReader(folder), [], trust=False)


def test_known_cases_run_as_they_were_found(folder):
    campaign = CampaignReader(folder)
    (finding,) = representatives(campaign, 1)
    known = KnownCases(RIPPLE, dimensions=["x0", "x1", "x2"])
    result = known.run(finding.input.tolist(), finding.case_seed)
    assert (result.kind, result.crash_step) == (finding.kind, finding.crash_step)
    assert result.episode_return == finding.episode_return
    far = np.where(finding.input < 0.5, 1.0, 0.0)  # regions are 0.27 wide
    assert not known.run(far.tolist(), 1).crashes


def test_known_cases_of_another_target_are_refused():
    with pytest.raises(UsageError, match="the findings have"):
        KnownCases(RIPPLE, dimensions=["x0"])


def test_code_of_known_cases_is_not_run_without_trust():
    with pytest.raises(CampaignError, match="names code to run"):
        KnownCases(WALLS, "bold", dimensions=["x", "y"])
    with pytest.raises(CampaignError, match="names code to run"):
        KnownCases(WALLS, dimensions=["x", "y"], named_policy="bold")
    assert KnownCases(WALLS, "bold", dimensions=["x", "y"], trust=True).run([0.1, 0.9], 1).crashes


@pytest.mark.slow
def test_exported_tests_fail_on_the_old_policy_and_pass_on_a_fixed_one(tmp_path):
    campaign, file = tmp_path / "c", tmp_path / "test_findings.py"
    assert exit_code(["fuzz", WALLS, "--max-execs", "400", "-o", str(campaign), "--ui", "none"]) == 1
    words = ["export", str(campaign), "--what", "pytest", "-o", str(file), "--top", "3", "--trust"]
    assert exit_code(words) == 0
    for path in campaign.iterdir():
        path.unlink()

    def tested(**variables):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
        environment = os.environ | variables
        return subprocess.run(
            [*command, str(file)], env=environment, capture_output=True, text=True, cwd=tmp_path
        )

    old = tested()
    assert old.returncode == 1, old.stderr
    assert "3 failed" in old.stdout
    assert "wall at step 2" in old.stdout
    fixed = tested(POLICYFUZZ_POLICY="timid")
    assert fixed.returncode == 0, fixed.stdout
    file.write_text(file.read_text().replace("POLICY = 'bold'", "POLICY = 'timid'"))
    edited = tested()
    assert edited.returncode == 0, edited.stdout
    assert "3 passed" in edited.stdout
