"""Distinct findings are as many as there are ways to fail, however many inputs lead to each."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "campaign"))
import planted_targets

pytestmark = pytest.mark.slow

WAYS = len(planted_targets.REGIONS)


def spreads(findings):
    """(regions, irrelevant dimensions) range of the inputs of `findings`."""
    inputs = np.array([finding.input for finding in findings])
    regions = planted_targets.region_of(inputs)
    return np.array([np.ptp(inputs[regions == number, 1:], axis=0) for number in range(WAYS)])


@pytest.mark.parametrize("strategy", ["portfolio", "random"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_distinct_findings_are_the_regions_whatever_varies_besides(run_campaign, strategy, seed):
    campaign = run_campaign(planted_targets.regions(), executions=3000, strategy=strategy, seed=seed)
    findings = [one for one in campaign.findings() if one.status == "confirmed"]
    assert len(findings) > 20 * WAYS
    assert (spreads(findings) > 0.4).all(), "the inputs differ widely where it plays no part"
    distinct = campaign.findings(distinct_only=True)
    assert len(distinct) == campaign.progress().distinct_findings == WAYS
    assert set(planted_targets.region_of(np.array([one.input for one in distinct]))) == set(range(WAYS))


@pytest.mark.parametrize("strategy", ["portfolio", "random"])
def test_crashes_that_are_equal_to_the_bit_are_one_finding(run_campaign, strategy):
    campaign = run_campaign(planted_targets.plain_regions(), executions=3000, strategy=strategy)
    findings, progress = campaign.findings(), campaign.progress()
    assert len(findings) == progress.distinct_findings == WAYS
    assert len({one.outcome for one in findings}) == WAYS
    assert progress.repeats == sum(one.repeats for one in findings) > 20
    crashes = progress.sample_crashes + progress.mutant_crashes
    assert crashes == progress.repeats + len(findings)
