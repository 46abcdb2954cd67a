"""Findings as JUnit XML, for the dashboards of CI servers."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from policyfuzz.core.visible import visible
from policyfuzz.core.whole_file import whole_file
from policyfuzz.report.tables import totals
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Finding

#: Totals of a campaign that are properties of the test suite.
_TOTALS = (
    "policy",
    "strategy",
    "seed",
    "executions",
    "findings",
    "distinct_findings",
    "lineages",
    "stop_reason",
)


def write_junit(campaign: CampaignReader, findings: Sequence[Finding], path: Path) -> None:
    """Write `findings` of `campaign` to `path`, a failed test case each; without any, one that passes."""
    tree = ElementTree.ElementTree(junit_tree(campaign, findings))
    with whole_file(path) as unfinished:
        tree.write(unfinished, "utf-8", xml_declaration=True)


def junit_tree(campaign: CampaignReader, findings: Sequence[Finding]) -> Element:
    """The XML for `findings` of `campaign`."""
    progress, counts = campaign.progress(), {"tests": max(len(findings), 1), "failures": len(findings)}
    seconds = f"{progress.seconds:.3f}"
    root = _element(None, "testsuites", name="policyfuzz", time=seconds, **counts)
    suite = _element(root, "testsuite", name=campaign.config.target, time=seconds, errors=0, **counts)
    facts = totals(campaign, progress, campaign.stop_reason())
    _add_properties(suite, {name: facts[name] for name in _TOTALS})
    for finding in findings:
        _add_finding(suite, campaign, finding)
    if not findings:
        name = f"no distinct findings in {progress.executions:,} episodes"
        _element(suite, "testcase", classname=campaign.config.target, name=name, time=seconds)
    return root


def _add_finding(suite: Element, campaign: CampaignReader, finding: Finding) -> None:
    what = f"{finding.kind} at step {finding.crash_step}"
    name = f"finding {finding.id}: {what}"
    case = _element(suite, "testcase", classname=campaign.config.target, name=name, time="0")
    names = (str(dimension["name"]) for dimension in campaign.dimensions)
    values = dict(zip(names, finding.input.tolist(), strict=True))
    _add_properties(
        case,
        {
            "finding": finding.id,
            "case_seed": finding.case_seed,
            "return": finding.episode_return,
            "margin": finding.margin,
            **{f"input.{name}": repr(value) for name, value in values.items()},
        },
    )
    message = f"{what}, return {finding.episode_return!r}"
    failure = _element(case, "failure", message=message, type=finding.kind)
    inputs = "".join(f"\n  {name} = {value!r}" for name, value in values.items())
    command = f"policyfuzz replay {shlex.quote(str(campaign.folder))} {finding.id}"
    failure.text = visible(f"{message}\ninput{inputs}\ncase seed {finding.case_seed}\nreplay it: {command}")


def _add_properties(parent: Element, values: Mapping[str, object]) -> None:
    properties = _element(parent, "properties")
    for name, value in values.items():
        _element(properties, "property", name=name, value=value)


def _element(parent: Element | None, tag: str, /, **attributes: object) -> Element:
    """A new element; characters that XML forbids are escaped as for a terminal."""
    texts = {name: visible(str(value)) for name, value in attributes.items()}
    return Element(tag, texts) if parent is None else SubElement(parent, tag, texts)
