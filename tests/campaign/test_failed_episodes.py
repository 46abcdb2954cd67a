import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from policyfuzz import (
    Below,
    Budget,
    Campaign,
    CampaignConfig,
    CampaignReader,
    CampaignWriter,
    Target,
    load_target,
)
from policyfuzz.campaign.events import BatchDone, Event
from policyfuzz.core.errors import TargetCodeError
from policyfuzz.core.interfaces import NUMBERS, RAISED
from policyfuzz.core.oracle import Composable
from policyfuzz.core.settings import StopReason
from policyfuzz.core.target import Runner
from policyfuzz.oracles import NONE, Verdicts

sys.path.insert(0, str(Path(__file__).parent))
from campaign_tables import tables


@pytest.fixture(autouse=True)
def _faulty_targets(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)


@pytest.fixture(scope="module")
def campaign_of(tmp_path_factory) -> Callable[..., CampaignReader]:
    """Gives the campaign of a strategy against `brittle`, which is run once and may only be read."""

    @cache
    def run_once(strategy: str, *, is_error_a_crash: bool = False) -> CampaignReader:
        folder = tmp_path_factory.mktemp("failed") / "campaign"
        target: Target = load_target("faulty_targets:brittle")
        if is_error_a_crash:
            target = replace(target, oracle=AnyError())
        config = CampaignConfig(target.name, strategy=strategy, batch_size=target.batch_size)
        store = CampaignWriter.create(folder, config, target.inputs)
        Campaign(target, store, Budget(executions=1000)).run()
        store.close()
        return CampaignReader(folder)

    return run_once


def run(target, *rows):
    inputs = np.array(rows, np.float64)
    return Runner(target)(inputs, np.arange(len(inputs), dtype=np.uint64))


def test_episode_that_raises_costs_itself_only():
    executions = run(load_target("faulty_targets:brittle"), [0.5, 0.1], [0.95, 0.1], [0.6, 0.2])
    assert list(executions.errors) == [1]
    error = executions.errors[1]
    assert (error.kind, error.step) == (RAISED, 1)
    assert error.text.endswith("ZeroDivisionError: one bad start")
    assert "faulty_targets.py" in error.text
    assert (
        executions.returns[[0, 2]].tolist()
        == run(load_target("faulty_targets:healthy"), [0.5, 0.1], [0.6, 0.2]).returns.tolist()
    )
    assert np.isnan(executions.returns[1])


def test_episode_ends_at_the_first_nan():
    executions = run(load_target("faulty_targets:brittle"), [0.95, 0.7], [0.5, 0.1])
    assert executions.errors[0].kind == NUMBERS
    assert executions.errors[0].step == 3
    assert executions.lengths.tolist() == [4, 6]


def test_errors_follow_their_rows():
    executions = run(load_target("faulty_targets:brittle"), [0.5, 0.1], [0.95, 0.1], [0.96, 0.7])
    assert {row: error.kind for row, error in executions[::-1].errors.items()} == {0: NUMBERS, 1: RAISED}
    assert list(executions[np.array([1])].errors) == [0]
    assert executions[executions.sound].errors == {}


@pytest.mark.parametrize("strategy", ["portfolio", "mdpfuzz", "reward", "random"])
def test_campaign_goes_on_and_keeps_input_and_traceback(campaign_of, strategy):
    campaign = campaign_of(strategy)
    failed = campaign.failed_episodes()
    assert campaign.progress().executions == 1000
    assert campaign.progress().errors == len(failed) > 20
    assert campaign.progress().findings > 20
    assert [one.id for one in failed] == list(range(1, len(failed) + 1))
    for one in failed:
        assert one.input[0] > 0.9
        is_low = one.input[1] < 0.5
        assert one.kind == (RAISED if is_low else NUMBERS)
        assert ("Traceback" in one.text) == is_low
        assert one.summary == (
            "ZeroDivisionError: one bad start" if is_low else "the reward is NaN at step 3"
        )
    assert all(row["x"] <= 0.9 for row in campaign.iterate("seeds"))


@pytest.mark.parametrize("strategy", ["portfolio", "random"])
def test_sample_that_could_not_be_run_is_no_draw_that_passed(campaign_of, strategy):
    campaign = campaign_of(strategy)
    progress, failed = campaign.progress(), campaign.failed_episodes()
    kinds = progress.samples + progress.mutants + progress.findings + progress.flaky
    reseeded = sum(finding.reseeded or 0 for finding in campaign.findings())
    not_counted = progress.executions - kinds - reseeded
    samples = sum(one.purpose in ("sample", "explore") for one in failed)
    assert not_counted - samples in range(17), "the rest are replays of the health check"
    # crashes lie below 0.1 and errors above 0.9
    assert binomtest(progress.sample_crashes, progress.samples, 1 / 9).pvalue > 1e-3


def test_same_campaign_has_the_same_errors(campaign_of, run_campaign):
    first, second = campaign_of("portfolio"), run_campaign("faulty_targets:brittle", executions=1000)
    assert [one.input.tolist() for one in first.failed_episodes()] == [
        one.input.tolist() for one in second.failed_episodes()
    ]


@dataclass(frozen=True)
class AnyError(Composable):
    """Calls every episode that could not be run a crash."""

    kinds: tuple[str, ...] = ("error",)

    def judge(self, trajectories):
        kinds, steps = np.full((2, len(trajectories.lengths)), NONE)
        for row, error in trajectories.errors.items():
            kinds[row], steps[row] = 0, error.step
        return Verdicts(kinds, steps)


def test_error_is_a_confirmed_finding_where_the_oracle_says_so(campaign_of):
    campaign = campaign_of("portfolio", is_error_a_crash=True)
    findings, last = campaign.findings(), campaign.progress().executions
    # there is no episode left to confirm a crash of the very last one
    assert {finding.status for finding in findings if finding.execution < last} == {"confirmed"}
    assert campaign.progress().errors == sum(one.finding is None for one in campaign.failed_episodes())
    assert {one.finding for one in campaign.failed_episodes()} >= {finding.id for finding in findings}


def test_error_that_repeats_a_finding_is_counted_and_not_listed(campaign_of):
    campaign = campaign_of("portfolio", is_error_a_crash=True)
    findings, progress = campaign.findings(), campaign.progress()
    assert progress.repeats == sum(finding.repeats for finding in findings) > 20
    others = ("confirm", "reseed")
    of_findings = [one.finding for one in campaign.failed_episodes() if one.purpose not in others]
    assert len(of_findings) <= len(findings) + 16, "one each, and a few that the health check ran again"
    assert None not in of_findings


def test_policy_that_raises_stops_the_campaign_at_once(run_campaign):
    with pytest.raises(
        TargetCodeError, match=r"policy raised KeyError: 'no idea what to do'.*faulty_targets"
    ):
        run_campaign("faulty_targets:confused")


@pytest.mark.parametrize("strategy", ["portfolio", "random"])
def test_resumed_campaign_whose_errors_repeat_equals_an_uninterrupted_one(tmp_path, run_campaign, strategy):
    target = replace(load_target("faulty_targets:brittle"), oracle=AnyError() | Below("health", 0, "ill"))
    whole = run_campaign(target, "whole", strategy=strategy, executions=700)
    assert whole.progress().repeats > 10

    def interrupt(event: Event) -> None:
        if isinstance(event, BatchDone):
            raise KeyboardInterrupt

    CampaignWriter.create(tmp_path / "parts", whole.config, target.inputs).close()
    for _ in range(1000):
        store = CampaignWriter(tmp_path / "parts")
        reason = Campaign(target, store, Budget(executions=700), interrupt).run()
        store.close()
        if reason is not StopReason.INTERRUPTED:
            break
    assert tables(tmp_path / "parts") == tables(tmp_path / "whole")
