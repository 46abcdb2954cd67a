"""The search finds what is there: targets whose crash region is known in closed form."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.stats import binomtest

from policyfuzz import Budget, Campaign, CampaignConfig, CampaignReader, CampaignWriter, load_target
from policyfuzz.search.strategies import STRATEGIES
from policyfuzz.targets.ripple.target import Pond

pytestmark = pytest.mark.slow

THREE_REGIONS = "ripple:dimensions=2,regions=3,probability=0.0001"
POND = Pond.make(2, 3, 1e-4)


@pytest.fixture(scope="module")
def campaign_of(tmp_path_factory) -> Callable[..., CampaignReader]:
    """Gives the campaign of a strategy and a seed, which is run once and may only be read."""

    @cache
    def run(strategy: str, seed: int) -> CampaignReader:
        folder, target = tmp_path_factory.mktemp("planted") / "campaign", load_target(THREE_REGIONS)
        config = CampaignConfig(target.name, strategy=strategy, seed=seed, batch_size=target.batch_size)
        store = CampaignWriter.create(folder, config, target.inputs)
        # the published searches ask for a few cases at a time, so their episodes take longest
        Campaign(target, store, Budget(executions=10_000 if "published" in strategy else 30_000)).run()
        store.close()
        return CampaignReader(folder)

    return run


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_findings_are_the_planted_crashes_with_their_steps(campaign_of, strategy):
    findings = campaign_of(strategy, 0).findings()
    assert findings
    inputs = np.array([finding.input for finding in findings])
    steps = np.array([finding.crash_step for finding in findings])
    np.testing.assert_array_equal(steps, POND.crash_steps(inputs))


@pytest.mark.parametrize("strategy", ["mdpfuzz", "reward"])
def test_guided_search_finds_every_region_over_three_seeds(campaign_of, strategy):
    regions: set[int] = set()
    for seed in range(3):
        campaign = campaign_of(strategy, seed)
        regions |= set(POND.nearest(np.array([finding.input for finding in campaign.findings()]))[0].tolist())
    assert regions == {0, 1, 2}


@pytest.mark.parametrize("strategy", ["mdpfuzz", "reward"])
def test_guided_search_finds_more_than_random_when_crashes_are_rare(campaign_of, strategy):
    guided, random = campaign_of(strategy, 0), campaign_of("random", 0)
    assert guided.progress().findings > 3 * random.progress().findings


@pytest.mark.parametrize(("dimensions", "probability"), [(1, 0.02), (3, 0.01), (12, 0.005), (50, 0.01)])
def test_random_sampling_crashes_as_often_as_planted(run_campaign, dimensions, probability):
    name = f"ripple:dimensions={dimensions},probability={probability}"
    campaign = run_campaign(load_target(name), executions=20_000, strategy="random", batch_size=1000)
    progress = campaign.progress()
    chance = binomtest(progress.sample_crashes, progress.samples, probability).pvalue
    assert chance > 1e-3
