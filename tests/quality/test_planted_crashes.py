"""The search finds what is there: targets whose crash region is known in closed form."""

import numpy as np
import pytest
from scipy.stats import binomtest

from policyfuzz import load_target
from policyfuzz.search.strategies import STRATEGIES
from policyfuzz.targets.ripple.target import Pond

pytestmark = pytest.mark.slow

THREE_REGIONS = "ripple:dimensions=2,regions=3,probability=0.0001"
POND = Pond.make(2, 3, 1e-4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_findings_are_the_planted_crashes_with_their_steps(run_campaign, strategy):
    campaign = run_campaign(THREE_REGIONS, executions=30_000, strategy=strategy)
    findings = campaign.findings()
    assert findings
    inputs = np.array([finding.input for finding in findings])
    steps = np.array([finding.crash_step for finding in findings])
    np.testing.assert_array_equal(steps, POND.crash_steps(inputs))


@pytest.mark.parametrize("strategy", ["mdpfuzz", "reward"])
def test_guided_search_finds_every_region_over_three_seeds(run_campaign, strategy):
    regions: set[int] = set()
    for seed in range(3):
        campaign = run_campaign(THREE_REGIONS, f"c{seed}", executions=30_000, strategy=strategy, seed=seed)
        regions |= set(POND.nearest(np.array([finding.input for finding in campaign.findings()]))[0].tolist())
    assert regions == {0, 1, 2}


@pytest.mark.parametrize("strategy", ["mdpfuzz", "reward"])
def test_guided_search_finds_more_than_random_when_crashes_are_rare(run_campaign, strategy):
    guided = run_campaign(THREE_REGIONS, "guided", executions=30_000, strategy=strategy)
    random = run_campaign(THREE_REGIONS, "random", executions=30_000, strategy="random")
    assert guided.progress().findings > 3 * random.progress().findings


@pytest.mark.parametrize(("dimensions", "probability"), [(1, 0.02), (3, 0.01), (12, 0.005), (50, 0.01)])
def test_random_sampling_crashes_as_often_as_planted(run_campaign, dimensions, probability):
    name = f"ripple:dimensions={dimensions},probability={probability}"
    progress = run_campaign(load_target(name), executions=20_000, strategy="random").progress()
    chance = binomtest(progress.sample_crashes, progress.samples, probability).pvalue
    assert chance > 1e-3
