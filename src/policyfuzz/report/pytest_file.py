"""Findings as a test file that fails while they are there, and needs no campaign.

A campaign file may come from a stranger. Its texts get into the file only as literals in ASCII, comments
included: nothing that they hold can end a line or a string.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import IN_MEMORY
from policyfuzz.core.whole_file import whole_file
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Finding
from policyfuzz.targets.trust import named_code

#: Characters of a kind of crash in the name of a test.
_LONGEST_KIND = 40

_HEAD = '''\
"""Failures that PolicyFuzz found: each test fails while its failure is there."""

# To test another policy, set the environment variable POLICYFUZZ_POLICY to its URI, or edit POLICY.
{about}
import os

import policyfuzz
import pytest

TARGET = {target}
#: None for the policy that comes with the target.
POLICY = {policy}
#: True runs the code that TARGET and POLICY name, and loads policy files that can run code.
TRUST = {trust}
DIMENSIONS = {dimensions}
#: Name, input, case seed, and what was found.
FINDINGS = [
{findings}
]


@pytest.fixture(scope="module")
def known_cases():
    return policyfuzz.KnownCases(
        TARGET,
        POLICY,
        dimensions=DIMENSIONS,
        named_policy=os.environ.get("POLICYFUZZ_POLICY"),
        trust=TRUST,
    )


@pytest.mark.parametrize(
    ("row", "case_seed", "found"), [pytest.param(*rest, id=name) for name, *rest in FINDINGS]
)
def test_policy_survives(known_cases, row, case_seed, found):
    result = known_cases.run(row, case_seed)
    assert not result.crashes, f"{{result}}\\n{{found}}"
    assert result.error is None, f"{{result}}\\n{{found}}"
'''


def write_pytest_file(campaign: CampaignReader, findings: Sequence[Finding], trust: bool, path: Path) -> None:
    """Write tests of `findings` of `campaign` to `path`; `trust` becomes part of the file."""
    text = pytest_text(campaign, findings, trust)
    with whole_file(path) as unfinished:
        unfinished.write_text(text, "ascii")


def pytest_text(campaign: CampaignReader, findings: Sequence[Finding], trust: bool) -> str:
    """The test file for `findings` of `campaign`."""
    config = campaign.config
    if config.target.partition(":")[0] == IN_MEMORY:
        raise UsageError(
            f"target {config.target} was made by a Python program, and exists only there",
            "put the target into FILE.py:function, and fuzz it by that name",
        )
    if not findings:
        raise UsageError(
            f"the campaign in {campaign.folder} has no distinct findings to test", "let it search for longer"
        )
    names = [str(dimension["name"]) for dimension in campaign.dimensions]
    return _HEAD.format(
        about="\n".join(_about(config.target, config.policy, trust)),
        target=ascii(config.target),
        policy=ascii(config.policy),
        trust=trust,
        dimensions=ascii(names),
        findings="\n".join(_literal(campaign, one) for one in findings),
    )


def _about(target: str, policy: str | None, trust: bool) -> list[str]:
    """Comments on the code that these names run."""
    code = named_code(target, policy)
    if not code:
        return []
    decided = (
        "It is run: the file was exported with --trust."
        if trust
        else "It is refused: look at it first, then set TRUST, or export the file with --trust."
    )
    return [
        "#",
        "# These names, which the campaign gave, run code that is no part of PolicyFuzz:",
        *(f"#   {one.place!a} {one.role!a}" for one in code),
        f"# {decided}",
        "",
    ]


def _literal(campaign: CampaignReader, finding: Finding) -> str:
    """One finding as a tuple, its numbers exact."""
    command = f"policyfuzz replay {shlex.quote(str(campaign.folder))} {finding.id}"
    found = (
        f"finding {finding.id} was {finding.kind} at step {finding.crash_step}, return"
        f" {finding.episode_return!r}; to see it, if you have the campaign: {command}"
    )
    row = tuple(finding.input.tolist())
    return f"    ({case_name(finding)!a}, {row!r}, {finding.case_seed!r}, {found!a}),"


def case_name(finding: Finding) -> str:
    """The name of the test of `finding`."""
    kind = re.sub(r"[^A-Za-z0-9]+", "-", finding.kind)[:_LONGEST_KIND].strip("-")
    return f"finding-{finding.id}-{kind or 'crash'}-at-step-{finding.crash_step}"
