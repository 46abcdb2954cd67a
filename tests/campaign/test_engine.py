from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from policyfuzz import Budget, Campaign, CampaignConfig, CampaignReader, CampaignWriter, load_target
from policyfuzz.campaign.events import BatchDone, Event, Examined, Started, Stopped
from policyfuzz.core.executions import Outcome
from policyfuzz.core.settings import PublishedSettings, SearchSettings, StopReason
from policyfuzz.core.target import Runner
from policyfuzz.search.published import published_settings
from policyfuzz.search.strategies import STRATEGIES

RIPPLE = "ripple:dimensions=3,probability=0.01"


def results(campaign: CampaignReader) -> list[Any]:
    """All that must be the same whenever and wherever the campaign ran: no times."""
    findings = [
        (
            f.id,
            f.status,
            f.is_distinct,
            f.kind,
            f.crash_step,
            f.episode_return,
            f.parent,
            f.case_seed,
            *f.input,
        )
        for f in campaign.findings()
    ]
    seeds = [
        tuple(value for name, value in row.items() if name != "seconds") for row in campaign.iterate("seeds")
    ]
    return [findings, seeds, campaign.progress().executions]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_seed_gives_same_findings(run_campaign, strategy):
    first = run_campaign(RIPPLE, "first", executions=1000, strategy=strategy, seed=5)
    second = run_campaign(RIPPLE, "second", executions=1000, strategy=strategy, seed=5)
    assert first.findings(), "nothing to compare"
    assert results(first) == results(second)


def test_other_seed_gives_other_findings(run_campaign):
    first, second = (run_campaign(RIPPLE, f"seed{seed}", executions=500, seed=seed) for seed in (1, 2))
    assert results(first) != results(second)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("executions", [1, 7, 100, 999])
def test_executions_are_exactly_the_budget(run_campaign, strategy, executions):
    campaign = run_campaign(RIPPLE, strategy=strategy, executions=executions)
    assert campaign.progress().executions == executions


def assert_confirmed(campaign):
    """All findings are but the very last execution, for which nothing may be left."""
    *earlier, last = [finding.status for finding in campaign.findings()]
    assert set(earlier) == {"confirmed"}
    assert last in ("confirmed", "new")
    return [*earlier, last]


def test_every_finding_is_confirmed_when_budget_ends(run_campaign):
    campaign = run_campaign(RIPPLE, executions=1500)
    statuses = assert_confirmed(campaign)
    assert campaign.progress().findings == statuses.count("confirmed")


def test_finding_is_valid_and_solvable_and_replays_alone_bit_for_bit(run_campaign):
    target = load_target("acasxu")
    campaign = run_campaign(target, executions=1500)
    findings = campaign.findings()
    assert findings, "the campaign found nothing to replay"
    inputs = np.array([finding.input for finding in findings])
    assert target.inputs.is_valid(inputs).all()
    assert target.solvable is not None
    assert target.solvable(inputs).all()
    runner = Runner(target)
    for finding in findings[:: max(1, len(findings) // 20)]:
        alone = runner(finding.input[None], np.array([finding.case_seed], np.uint64))
        assert (alone.returns[0], alone.verdicts.steps[0]) == (finding.episode_return, finding.crash_step)


def test_window_does_not_change_what_a_batch_gives(run_campaign):
    """Larger windows delay the feedback: other findings, but each still confirmed."""
    assert_confirmed(run_campaign(RIPPLE, executions=1000, window=4))


def run_parts(target, folder, config, parts):
    """Run in several parts, each resuming the one before, with growing budgets."""
    CampaignWriter.create(folder, config, target.inputs).close()
    for budget in parts:
        store = CampaignWriter(folder)
        Campaign(target, store, budget).run()
        store.close()
    return CampaignReader(folder)


def test_stop_by_findings_when_enough_are_confirmed(tmp_path):
    target = load_target(RIPPLE)
    config = CampaignConfig(target.name, strategy="random", batch_size=64)
    campaign = run_parts(target, tmp_path, config, [Budget(findings=3)])
    assert campaign.progress().findings >= 3
    assert campaign.about["stop_reason"] == StopReason.MAX_FINDINGS


def test_campaign_ends_when_the_search_has_nothing_left_to_try(tmp_path):
    target = load_target(RIPPLE)
    settings = replace(PUBLISHED, published=PublishedSettings(children=1, when_empty="stop"))
    config = CampaignConfig(target.name, strategy="reward-published", batch_size=64, search=settings)
    once = run_parts(target, tmp_path / "once", config, [Budget(executions=100_000)])
    assert once.about["stop_reason"] == StopReason.SEARCH_ENDED
    assert 200 <= once.progress().executions < 100_000, "samples and their probes at least"
    assert {finding.status for finding in once.findings()} <= {"confirmed"}
    twice = run_parts(target, tmp_path / "twice", config, [Budget(executions=100_000)] * 2)
    assert twice.about["stop_reason"] == StopReason.SEARCH_ENDED
    assert results(twice) == results(once)


def test_events_tell_the_story_in_order(tmp_path):
    target = load_target(RIPPLE)
    events: list[Event] = []
    config = CampaignConfig(target.name, batch_size=target.batch_size)
    store = CampaignWriter.create(tmp_path, config, target.inputs)
    Campaign(target, store, Budget(executions=1000), events.append).run()
    store.close()
    kinds = [type(event) for event in events]
    assert kinds[:3] == [Started, Examined, BatchDone]
    assert kinds[-1] is Stopped
    batches = [event for event in events if isinstance(event, BatchDone)]
    assert [event.progress.batch for event in batches] == list(range(1, len(batches) + 1))
    assert sum(len(event.findings) for event in batches) == len(CampaignReader(tmp_path).findings())


def test_interrupt_saves_what_is_done_and_resume_equals_uninterrupted(tmp_path, run_campaign):
    target = load_target(RIPPLE)
    whole = run_campaign(target, "whole", executions=1000)
    config = replace(whole.config)
    store = CampaignWriter.create(tmp_path / "parts", config, target.inputs)

    def interrupt(event: Event) -> None:
        if isinstance(event, BatchDone) and event.progress.batch == 6:
            raise KeyboardInterrupt

    assert Campaign(target, store, Budget(executions=1000), interrupt).run() is StopReason.INTERRUPTED
    store.close()
    assert CampaignReader(tmp_path / "parts").progress().batch == 6
    store = CampaignWriter(tmp_path / "parts")
    Campaign(target, store, Budget(executions=1000)).run()
    store.close()
    assert results(CampaignReader(tmp_path / "parts")) == results(whole)


PUBLISHED = replace(
    published_settings(SearchSettings(samples=100), RIPPLE), published=PublishedSettings(children=1)
)


@pytest.mark.parametrize(
    ("strategy", "settings", "executions"),
    [
        ("portfolio", SearchSettings(samples=50), 800),
        ("mdpfuzz", SearchSettings(samples=100, sensitivity="exact"), 800),
        ("mdpfuzz-published", replace(PUBLISHED, samples=40), 200),  # batches of a few episodes each
    ],
)
def test_resume_after_every_batch_equals_one_run(tmp_path, run_campaign, strategy, settings, executions):
    target = load_target("ripple:dimensions=3,probability=0.1")
    whole = run_campaign(target, "whole", executions=executions, strategy=strategy, search=settings)

    def interrupt(event: Event) -> None:
        if isinstance(event, BatchDone):
            raise KeyboardInterrupt

    CampaignWriter.create(tmp_path / "parts", whole.config, target.inputs).close()
    for _ in range(1000):
        store = CampaignWriter(tmp_path / "parts")
        reason = Campaign(target, store, Budget(executions=executions), interrupt).run()
        store.close()
        if reason is not StopReason.INTERRUPTED:
            break
    assert whole.findings(), "nothing to compare"
    assert results(CampaignReader(tmp_path / "parts")) == results(whole)


def test_time_split_covers_the_campaign_and_counts_nothing_twice(run_campaign):
    progress = run_campaign(RIPPLE, executions=1500, strategy="mdpfuzz").progress()
    assert set(progress.time_split) == {"simulate", "validate", "density", "search", "store"}
    assert all(seconds > 0 for seconds in progress.time_split.values())
    assert sum(progress.time_split.values()) <= progress.seconds


def test_confirmation_asks_for_the_same_kind_step_and_return():
    outcome = Outcome(0, 5, 1.5)
    assert outcome.is_same(Outcome(0, 5, 1.5))
    for other in (Outcome(1, 5, 1.5), Outcome(0, 6, 1.5), Outcome(0, 5, np.nextafter(1.5, 2))):
        assert not outcome.is_same(other)
    assert Outcome(0, 5, np.nan).is_same(Outcome(0, 5, np.nan))
