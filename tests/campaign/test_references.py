"""Reference policies: what none of them survives is no finding."""

import sys
from pathlib import Path

import pytest

from policyfuzz import Budget, Campaign, CampaignConfig, CampaignReader, CampaignWriter
from policyfuzz.campaign.events import BatchDone, Event
from policyfuzz.core.settings import StopReason

sys.path.insert(0, str(Path(__file__).parent))
import planted_targets
from campaign_tables import tables


def run(folder, references, executions=1500, listener=lambda event: None, strategy="portfolio"):
    """Run or resume a campaign on the target that some policies survive; return why it stopped."""
    target = planted_targets.avoidable()
    if not folder.exists():
        config = CampaignConfig(target.name, strategy=strategy, batch_size=target.batch_size)
        CampaignWriter.create(folder, config, target.inputs).close()
    store = CampaignWriter(folder)
    try:
        return Campaign(target, store, Budget(executions=executions), listener, references=references).run()
    finally:
        store.close()


@pytest.fixture(scope="module")
def campaign(tmp_path_factory) -> CampaignReader:
    folder = tmp_path_factory.mktemp("references") / "c"
    run(folder, [planted_targets.careful()])
    return CampaignReader(folder)


def test_crash_is_a_finding_when_a_reference_survives(campaign):
    confirmed = [one for one in campaign.findings() if one.status == "confirmed"]
    assert len(confirmed) > 10
    assert all(one.input[1] < planted_targets.SAVED_BELOW for one in confirmed)
    assert {one.survived_by for one in confirmed} == {"careful"}
    assert any(one.is_distinct for one in confirmed)


def test_crash_is_unsolved_and_no_finding_when_no_reference_survives(campaign):
    unsolved = [one for one in campaign.findings() if one.status == "unsolved"]
    assert len(unsolved) > 10
    assert all(one.input[1] >= planted_targets.SAVED_BELOW for one in unsolved)
    assert {one.survived_by for one in unsolved} == {None}
    assert not any(one.is_distinct for one in unsolved)


def test_totals_count_findings_and_unsolved_crashes_apart(campaign):
    findings, progress = campaign.findings(), campaign.progress()
    statuses = [one.status for one in findings]
    assert progress.findings == statuses.count("confirmed")
    assert progress.unsolved == statuses.count("unsolved")
    assert progress.distinct_findings == sum(one.is_distinct for one in findings)
    assert progress.lineages == len({one.root for one in findings if one.status == "confirmed"})


def test_first_reference_that_survives_is_named(tmp_path):
    run(tmp_path / "c", [planted_targets.helpless(), planted_targets.careful()])
    findings = CampaignReader(tmp_path / "c").findings()
    assert {one.survived_by for one in findings if one.status == "confirmed"} == {"careful"}
    assert {one.status for one in findings} >= {"confirmed", "unsolved"}


def test_later_reference_does_not_run_what_an_earlier_one_survives(tmp_path):
    later = planted_targets.helpless()
    run(tmp_path / "c", [planted_targets.careful(), later])
    assert later.simulator.episodes
    assert all(episode[1] >= planted_targets.SAVED_BELOW for episode in later.simulator.episodes)


def test_every_crash_is_a_finding_without_references(tmp_path):
    run(tmp_path / "c", [])
    findings = CampaignReader(tmp_path / "c").findings()
    assert {one.status for one in findings} <= {"confirmed", "new"}
    assert {one.survived_by for one in findings} == {None}
    assert any(one.input[1] >= planted_targets.SAVED_BELOW for one in findings)


@pytest.mark.parametrize("executions", [1, 2, 7, 100, *range(331, 341), 1999])
@pytest.mark.parametrize("references", [1, 2])
def test_executions_are_exactly_the_budget_with_references(tmp_path, executions, references):
    others = [planted_targets.helpless(), planted_targets.careful()][-references:]
    run(tmp_path / "c", others, executions)
    campaign = CampaignReader(tmp_path / "c")
    assert campaign.progress().executions == executions
    statuses = [one.status for one in campaign.findings()]
    assert "new" not in statuses[:-3], "all but the last are judged"


def test_resumed_campaign_with_references_equals_an_uninterrupted_one(tmp_path):
    def interrupt(event: Event) -> None:
        if isinstance(event, BatchDone):
            raise KeyboardInterrupt

    references = [planted_targets.helpless(), planted_targets.careful()]
    run(tmp_path / "whole", references)
    for _ in range(1000):
        if run(tmp_path / "parts", references, listener=interrupt) is not StopReason.INTERRUPTED:
            break
    assert tables(tmp_path / "parts") == tables(tmp_path / "whole")
