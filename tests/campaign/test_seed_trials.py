"""Findings that are the luck of one case seed, where the seed makes noise."""

import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import Budget, Campaign, CampaignReader, CampaignWriter
from policyfuzz.campaign.events import BatchDone, Event
from policyfuzz.campaign.seed_trials import SeedTrials, holds
from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import StopReason
from policyfuzz.search.cases import Cases
from policyfuzz.search.strategies import STRATEGIES

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[1] / "store"))
import planted_targets
from campaign_tables import tables
from example_findings import a_finding


def ran(cases, crashed):
    """Executions of `cases`, of which those with `crashed` (n,) did."""
    return Executions.of(np.zeros(len(cases)), crashed)


@pytest.mark.parametrize(
    ("crashes", "runs", "rate", "expected"),
    [
        (0, 8, 0.0, False),
        (1, 8, 0.0, True),
        (1, 16, 0.0, False),
        (2, 16, math.nan, True),
        (3, 16, 0.1, False),
        (4, 16, 0.1, True),
        (15, 16, 0.9, False),
        (16, 16, 0.9, True),
        (0, 0, 0.5, True),
    ],
)
def test_finding_holds_when_it_crashes_more_often_than_random_draws(crashes, runs, rate, expected):
    assert holds(crashes, runs, rate) is expected


def test_finding_is_tried_with_other_seeds_and_no_more_when_none_of_the_first_crashes():
    trials, finding = SeedTrials(2, seed=5), a_finding(3, input=np.array([0.5, 0.25]), parent=7)
    trials.add(finding, 2)
    cases = trials.take(100)
    assert (cases.inputs == finding.input).all()
    assert len(set(cases.seeds.tolist()) - {finding.case_seed}) == len(cases) == 8
    assert trials.learn(cases[:5], ran(cases[:5], np.zeros(5))) == []
    assert len(trials) == 1
    (over,) = trials.learn(cases[5:], ran(cases[5:], np.zeros(3)))
    assert (over.finding, over.runs, over.crashes) == (3, 8, 0)
    assert (over.case.parents.tolist(), over.case.emitters.tolist()) == ([7], [2])
    assert (len(trials), trials.waiting) == (0, 0)


def test_finding_is_tried_once_more_when_one_of_the_first_crashes():
    trials = SeedTrials(3, seed=5)
    trials.add(a_finding(1), 0)
    first = trials.take(100)
    assert trials.learn(first, ran(first, np.arange(8) == 6)) == []
    second = trials.take(100)
    assert len(set(first.seeds.tolist()) | set(second.seeds.tolist())) == 16
    (over,) = trials.learn(second, ran(second, np.arange(8) < 3))
    assert (over.runs, over.crashes) == (16, 4)


def test_run_that_failed_does_not_count():
    trials = SeedTrials(3, seed=5)
    trials.add(a_finding(1), 0)
    cases = trials.take(100)
    lost = Executions.of(np.zeros(8), np.zeros(8), errors={2: "no", 3: "no"})
    (over,) = trials.learn(cases, lost)
    assert (over.runs, over.crashes) == (6, 0)


def test_restored_trials_go_on_like_those_that_were_left():
    trials, again = SeedTrials(3, seed=5), SeedTrials(3, seed=5)
    for number in (1, 2, 5):
        trials.add(a_finding(number), number)
    early = trials.take(10)
    trials.learn(early, ran(early, np.arange(10) % 4 == 0))
    again.restore(trials.state())
    while len(trials):
        ours, theirs = trials.take(7), again.take(7)
        np.testing.assert_array_equal(ours.inputs, theirs.inputs)
        np.testing.assert_array_equal(ours.seeds, theirs.seeds)
        crashed = ours.seeds % 3 == 0
        first, second = trials.learn(ours, ran(ours, crashed)), again.learn(theirs, ran(theirs, crashed))
        for one, other in zip(first, second, strict=True):
            assert (one.finding, one.runs, one.crashes) == (other.finding, other.runs, other.crashes)
            assert one.case.emitters.tolist() == other.case.emitters.tolist()
    assert len(again) == 0


def test_cases_of_findings_that_are_not_on_trial_are_refused():
    trials = SeedTrials(3, seed=5)
    trials.add(a_finding(1), 0)
    nobody = {"trials": np.empty((0, 8), np.int64), "inputs": np.empty((0, 3))}
    with pytest.raises(ValueError, match="not on trial"):
        SeedTrials(3, seed=5).restore(trials.state() | nobody)
    with pytest.raises(ValueError, match="do not fit"):
        SeedTrials(3, seed=5).restore(trials.state() | {"inputs": np.empty((0, 3))})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_luck_is_not_distinct_and_what_holds_is(run_campaign, strategy):
    campaign = run_campaign(planted_targets.noisy(), strategy=strategy, executions=3000)
    tried = [finding for finding in campaign.findings() if finding.reseeded is not None]
    lucky = [one for one in tried if one.input[0] >= planted_targets.HOLDS_BELOW]
    held = [one for one in tried if one.input[0] < planted_targets.HOLDS_BELOW]
    assert len(lucky) > 2
    assert len(held) > 2
    assert not any(one.is_distinct for one in lucky)
    assert all(one.is_distinct for one in held)
    assert all(one.status == "confirmed" and one.is_novel for one in tried)
    progress = campaign.progress()
    assert progress.lucky == len(lucky) == sum(one.needs_luck for one in campaign.findings())
    assert progress.distinct_findings == len(held) == len(campaign.findings(distinct_only=True))
    assert campaign.about["case_seed"] == "noise"


def test_runs_of_a_trial_are_those_that_are_stored(run_campaign):
    target = planted_targets.noisy()
    campaign = run_campaign(target, executions=1000)
    runs = Counter(episode[:2] for episode in set(target.simulator.episodes))
    luck = {episode: np.random.default_rng(episode[2]).random() for episode in set(target.simulator.episodes)}
    tried = [finding for finding in campaign.findings() if finding.reseeded is not None]
    assert {finding.reseeded for finding in tried} == {8, 16}
    for finding in tried:
        chance = (
            planted_targets.OFTEN
            if finding.input[0] < planted_targets.HOLDS_BELOW
            else planted_targets.SELDOM
        )
        own = (*finding.input.tolist(), finding.case_seed)
        others = [value for episode, value in luck.items() if episode[:2] == own[:2] and episode != own]
        if finding.execution > 100:  # the health check runs some of the first with one more seed
            assert runs[own[:2]] == 1 + finding.reseeded
            assert sum(value < chance for value in others) == finding.reseeded_crashes


@pytest.mark.parametrize(
    ("target", "told", "tried"),
    [
        (planted_targets.plain(), "unused", lambda novel: int(math.log2(novel)) + 1),  # to be sure
        (replace(planted_targets.noisy(), seed_is_situation=True), "situation", lambda novel: 0),
    ],
    ids=["unused", "situation"],
)
def test_few_are_tried_where_the_seed_makes_no_noise(run_campaign, target, told, tried):
    campaign = run_campaign(target, executions=1000)
    assert campaign.about["case_seed"] == told
    findings, progress = campaign.findings(), campaign.progress()
    assert progress.distinct_findings > 3
    assert sum(finding.reseeded is not None for finding in findings) == tried(progress.distinct_findings)
    assert [one.is_distinct for one in findings if one.status == "confirmed"] == [
        one.is_novel for one in findings if one.status == "confirmed"
    ]
    assert (progress.lucky, progress.in_trial) == (0, 0)


@pytest.mark.parametrize("executions", [1, 7, 100, 333, 999])
@pytest.mark.parametrize("strategy", ["portfolio", "random"])
def test_executions_are_exactly_the_budget_of_a_noisy_target(run_campaign, strategy, executions):
    target = planted_targets.noisy()
    campaign = run_campaign(target, strategy=strategy, executions=executions)
    assert campaign.progress().executions == executions == len(target.simulator.episodes)


def interrupted_always(target, folder, config, budget, **parts):
    """Run a campaign that is interrupted after every batch and resumed."""

    def interrupt(event: Event) -> None:
        if isinstance(event, BatchDone):
            raise KeyboardInterrupt

    CampaignWriter.create(folder, config, target.inputs).close()
    for _ in range(1000):
        store = CampaignWriter(folder)
        reason = Campaign(target, store, budget, interrupt, **parts).run()
        store.close()
        if reason is not StopReason.INTERRUPTED:
            return
    raise AssertionError("it does not end")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_resumed_campaign_of_a_noisy_target_equals_an_uninterrupted_one(tmp_path, run_campaign, strategy):
    target = planted_targets.noisy()
    whole: CampaignReader = run_campaign(target, "whole", strategy=strategy, executions=500)
    assert whole.progress().lucky
    interrupted_always(target, tmp_path / "parts", whole.config, Budget(executions=500))
    assert tables(tmp_path / "parts") == tables(tmp_path / "whole")


def test_trial_cases_are_marked_by_their_finding():
    trials = SeedTrials(3, seed=5)
    trials.add(a_finding(1), 0)
    trials.add(a_finding(2), 0)
    taken = Cases.concatenate([trials.take(9), trials.take(100)])
    assert taken.parents.tolist() == [1] * 8 + [2] * 8


class RarelyNoisy(planted_targets.Noisy):
    """Noise that shows only in whether an episode crashes, and so in none of the first ones."""

    def rewards(self, rows):
        return self.inputs[rows, 0]

    def health(self, rows, actions):
        chance = np.where(self.inputs[rows, 0] < planted_targets.HOLDS_BELOW, 1.0, 0.02)
        return np.where(self.luck(rows) < chance, -1.0, 1.0)


def test_noise_that_findings_show_makes_all_of_them_doubtful(run_campaign):
    campaign = run_campaign(replace(planted_targets.noisy(), simulator=RarelyNoisy), executions=1500)
    assert campaign.about["case_seed"] == "noise"
    findings, progress = campaign.findings(), campaign.progress()
    distinct = [one for one in findings if one.is_distinct]
    assert progress.distinct_findings == len(distinct) > 0
    assert all(one.reseeded for one in distinct), "none counts that was found before noise was known"
    assert all(one.input[0] < planted_targets.HOLDS_BELOW for one in distinct)
    assert progress.lucky == sum(one.needs_luck for one in findings) > 0
