"""Where a finding comes from: the draw that its lineage began with, and the episode that found it."""

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import Budget, Campaign, CampaignConfig, CampaignReader, CampaignWriter
from policyfuzz.core.settings import SearchSettings
from policyfuzz.search.strategies import STRATEGIES

sys.path.insert(0, str(Path(__file__).parent))
import planted_targets

GUIDED = [name for name in STRATEGIES if name != "random"]


@pytest.fixture(scope="module")
def campaign_of(tmp_path_factory) -> Callable[[str], CampaignReader]:
    """Gives the campaign of a strategy, which is run once and may only be read."""

    @cache
    def run(strategy: str) -> CampaignReader:
        folder, target = tmp_path_factory.mktemp("lineages") / strategy, planted_targets.plain()
        search = SearchSettings(samples=100)
        config = CampaignConfig(target.name, strategy=strategy, batch_size=target.batch_size, search=search)
        store = CampaignWriter.create(folder, config, target.inputs)
        Campaign(target, store, Budget(executions=1000)).run()
        store.close()
        return CampaignReader(folder)

    return run


def roots_of_seeds(campaign: CampaignReader) -> dict[int, int]:
    return {row["id"]: row["root"] for row in campaign.iterate("seeds")}


@pytest.mark.parametrize("strategy", GUIDED)
def test_children_have_the_root_of_their_parent(campaign_of, strategy):
    campaign = campaign_of(strategy)
    roots, children = roots_of_seeds(campaign), [one for one in campaign.findings() if one.parent is not None]
    assert children or strategy != "portfolio"
    for finding in children:
        assert finding.parent is not None
        assert finding.root == roots[finding.parent]
    kept = [row for row in campaign.iterate("seeds") if row["parent"] is not None]
    assert len(kept) > 20
    for row in kept:
        assert row["root"] == roots[row["parent"]]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_root_is_the_number_of_a_draw(campaign_of, strategy):
    campaign = campaign_of(strategy)
    findings = campaign.findings()
    drawn = [one.root for one in findings if one.parent is None]
    drawn += [
        row["root"] for row in campaign.iterate("seeds") if row["parent"] is None and not row["is_crash"]
    ]
    assert len(set(drawn)) == len(drawn) > 5, "a draw has one number, and no other has it"
    progress = campaign.progress()
    assert min(drawn) >= 1
    assert max(drawn) <= progress.samples + progress.mutants
    crashed_roots = {row["root"] for row in campaign.iterate("seeds") if row["parent"] is None}
    known = set(drawn) | crashed_roots
    assert {one.root for one in findings} <= known


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_lineages_are_the_roots_of_confirmed_findings(campaign_of, strategy):
    campaign = campaign_of(strategy)
    confirmed = [one for one in campaign.findings() if one.status == "confirmed"]
    assert campaign.progress().lineages == len({one.root for one in confirmed}) > 1


def test_random_campaign_has_as_many_lineages_as_findings(campaign_of):
    progress = campaign_of("random").progress()
    assert progress.lineages == progress.findings > 20


def test_mutants_share_few_lineages(campaign_of):
    progress = campaign_of("portfolio").progress()
    assert progress.findings > 4 * progress.lineages


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("strategy", ["portfolio", "mdpfuzz", "random"])
@pytest.mark.parametrize("make", [planted_targets.plain, planted_targets.noisy], ids=["plain", "noisy"])
def test_number_of_an_episode_is_its_place_among_all(run_campaign, make, strategy, window):
    target = make()
    campaign = run_campaign(target, executions=1000, strategy=strategy, window=window, batch_size=40)
    episodes, findings = target.simulator.episodes, campaign.findings()
    assert len(episodes) == campaign.progress().executions
    assert min(one.execution for one in findings) <= 40, "one of the first batch is among them"
    assert len(findings) > 20
    for finding in findings:
        assert episodes[finding.execution - 1] == (*finding.input.tolist(), finding.case_seed)


def test_number_of_an_episode_counts_the_runs_of_references(tmp_path):
    target, reference = planted_targets.avoidable(), planted_targets.careful()
    order: list[tuple[float | int, ...]] = []
    target.simulator.episodes = reference.simulator.episodes = order
    store = CampaignWriter.create(tmp_path, CampaignConfig(target.name, batch_size=40), target.inputs)
    Campaign(target, store, Budget(executions=1000), references=[reference]).run()
    store.close()
    findings = CampaignReader(tmp_path).findings()
    assert len(findings) > 20
    assert len(order) == 1000
    for finding in findings:
        assert order[finding.execution - 1] == (*finding.input.tolist(), finding.case_seed)


def test_first_crash_of_a_random_campaign_is_the_first_of_its_draws(run_campaign):
    target = planted_targets.plain()
    finding = run_campaign(target, strategy="random").finding(1)
    x = np.array([episode[0] for episode in target.simulator.episodes])
    assert finding.execution == 1 + np.flatnonzero(x < planted_targets.HOLDS_BELOW)[0]
