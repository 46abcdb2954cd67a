"""Findings as JUnit XML."""

import sys
from pathlib import Path
from xml.etree import ElementTree

from policyfuzz.report.junit import write_junit
from policyfuzz.report.ranking import representatives

sys.path.append(str(Path(__file__).parent))
from hostile_campaigns import hostile_target


def test_every_finding_is_a_failed_test_case(run_campaign, tmp_path):
    campaign = run_campaign("ripple:dimensions=2,probability=0.02", executions=600)
    findings = representatives(campaign, 4)
    write_junit(campaign, findings, tmp_path / "f.xml")
    suite = ElementTree.parse(tmp_path / "f.xml").getroot()[0]
    assert len(findings) > 1
    assert suite.get("tests") == suite.get("failures") == str(len(findings))
    cases = suite.findall("testcase")
    assert [one.get("name") for one in cases] == [
        f"finding {one.id}: caught at step {one.crash_step}" for one in findings
    ]
    for case, finding in zip(cases, findings, strict=True):
        values = {one.get("name"): one.get("value") for one in case.iter("property")}
        assert values["case_seed"] == str(finding.case_seed)
        assert values["input.x0"] == repr(float(finding.input[0]))
        failure = case.find("failure")
        assert failure is not None
        assert failure.get("type") == "caught"
        assert f"policyfuzz replay {campaign.folder} {finding.id}" in str(failure.text)


def test_texts_of_strangers_are_escaped(run_campaign, tmp_path):
    campaign = run_campaign(hostile_target(), executions=200)
    write_junit(campaign, representatives(campaign, 2), tmp_path / "f.xml")
    root = ElementTree.parse(tmp_path / "f.xml").getroot()
    assert len(root.findall("./testsuite/testcase/failure")) == 2
    (first, *_) = root.findall("./testsuite/testcase")
    assert "'''\"\"\"]]>&<!--\\x1b\\x85\\u2028" in str(first.get("name"))


def test_campaign_without_findings_is_a_test_that_passes(run_campaign, tmp_path):
    campaign = run_campaign("ripple:dimensions=2,probability=1e-9", executions=100)
    write_junit(campaign, [], tmp_path / "f.xml")
    suite = ElementTree.parse(tmp_path / "f.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "0")
    (case,) = suite.findall("testcase")
    assert case.find("failure") is None
