import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policyfuzz import Budget, Campaign, CampaignConfig, CampaignWriter
from policyfuzz.campaign.health import Level, Nominal, check_target, examine, is_unhealthy, verdict
from policyfuzz.core.errors import UnhealthyTarget
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import CRASHED, HUNG, RAISED, EpisodeError
from policyfuzz.core.settings import StopReason
from policyfuzz.core.target import Diagnosis
from policyfuzz.targets.registry import load_target

sys.path.insert(0, str(Path(__file__).parent))


def diagnosis(name: str, target: str):
    diagnoses = check_target(load_target(f"faulty_targets:{target}"), episodes=200, seed=0)
    return next(one for one in diagnoses if one.name == name)


def test_check_finds_nothing_wrong_when_target_is_healthy():
    diagnoses = check_target(load_target("faulty_targets:healthy"), episodes=200, seed=0)
    assert {one.level for one in diagnoses} == {Level.GOOD}


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("determinism", "noisy"),
        ("errors", "diverging"),
        ("errors", "raising"),
        ("numbers", "infinite"),
        ("oracle", "always_crashing"),
    ],
)
def test_check_calls_target_unhealthy_when_search_would_mean_nothing(name, target):
    found = diagnosis(name, target)
    assert is_unhealthy([found])
    assert found.hint


@pytest.mark.parametrize(
    ("levels", "word"),
    [
        ([Level.GOOD, Level.WARNING], Level.GOOD),
        ([Level.GOOD, Level.WEAK, Level.WARNING], Level.WEAK),
        ([Level.WEAK, Level.UNHEALTHY], Level.UNHEALTHY),
    ],
)
def test_verdict_is_the_worst_that_is_said_of_the_policy(levels, word):
    assert verdict([Diagnosis("any", level, "") for level in levels]) is word


@pytest.mark.parametrize(
    ("crashes", "level"), [(0, Level.GOOD), (32, Level.GOOD), (33, Level.WEAK), (61, Level.UNHEALTHY)]
)
def test_policy_that_crashes_from_most_draws_is_weak(crashes, level):
    executions = Executions.of(np.linspace(0, 1, 64), np.arange(64) < crashes)
    found = examine(
        load_target("faulty_targets:healthy"), Nominal(executions, executions[:2], None, 1.0, 1.0)
    )
    assert next(one for one in found if one.name == "oracle").level is level


def test_solvable_is_said_only_where_it_is_tested():
    tested = load_target("faulty_targets:healthy")
    executions = Executions.of(np.linspace(0, 1, 64), np.zeros(64, np.bool_))
    nominal = Nominal(executions, executions[:2], None, 1.0, 1.0)

    def said(target):
        return next(one.message for one in examine(target, nominal) if one.name == "inputs")

    always = replace(tested, solvable=lambda inputs: np.ones(len(inputs), np.bool_))
    assert said(always) == "100.0% of drawn inputs are valid and solvable"
    assert said(replace(tested, solvable=None)) == "100.0% of drawn inputs are valid"


def test_check_warns_when_return_is_flat():
    assert diagnosis("return", "flat").level is Level.WARNING


def test_sampling_gives_up_when_nothing_is_valid():
    with pytest.raises(UnhealthyTarget, match="0 were valid"):
        check_target(load_target("faulty_targets:nothing_valid"), episodes=10, seed=0)


def test_finding_is_flaky_and_not_counted_when_second_run_differs(run_campaign):
    campaign = run_campaign(load_target("faulty_targets:flaky"), strategy="random", executions=4000)
    statuses = [finding.status for finding in campaign.findings()]
    assert statuses.count("flaky") > 0
    assert campaign.progress().findings == statuses.count("confirmed")
    assert campaign.progress().flaky == statuses.count("flaky")
    assert campaign.progress().sample_crashes == len(statuses), "a crash by chance is a failure all the same"


def test_policy_that_always_crashes_is_noticed_with_small_batches(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent)
    target = load_target("faulty_targets:always_crashing")
    config = CampaignConfig(target.name, batch_size=4)
    store = CampaignWriter.create(tmp_path, config, target.inputs)
    assert Campaign(target, store, Budget(executions=100)).run() is StopReason.UNHEALTHY
    store.close()


def with_error(executions: Executions, row: int, kind: str) -> Executions:
    """The same, where the episode at `row` has ended in an error."""
    returns = np.where(np.arange(len(executions)) == row, np.nan, executions.returns)
    return replace(executions, returns=returns, errors={row: EpisodeError(kind, 3, f"it {kind}")})


@pytest.mark.parametrize("is_second", [True, False])
@pytest.mark.parametrize(
    ("kind", "level", "told"),
    [
        (
            CRASHED,
            Level.WARNING,
            "1 of 4 episodes could be run only once, the other time one killed its worker",
        ),
        (
            HUNG,
            Level.WARNING,
            "1 of 4 episodes could be run only once, the other time one hung: it hung (step 3)",
        ),
        (RAISED, Level.UNHEALTHY, "1 of 4 episodes gave another result when run again"),
    ],
)
def test_worker_that_is_lost_in_one_of_two_runs_is_not_called_randomness(kind, level, told, is_second):
    both = Executions.of(np.arange(4.0), np.zeros(4))
    runs = [both, with_error(both, 2, kind)]
    first, second = runs if is_second else runs[::-1]
    target = replace(load_target("faulty_targets:healthy"), further_checks=None)
    diagnoses = {one.name: one for one in examine(target, Nominal(first, second, None, 1.0, 1.0))}
    assert diagnoses["determinism"].level is level
    assert told in diagnoses["determinism"].message


def test_worker_that_is_lost_does_not_hide_randomness():
    both = Executions.of(np.arange(4.0), np.zeros(4))
    other = replace(with_error(both, 2, CRASHED), returns=np.array([0.0, 7.0, np.nan, 3.0]))
    target = replace(load_target("faulty_targets:healthy"), further_checks=None)
    diagnoses = {one.name: one for one in examine(target, Nominal(both, other, None, 1.0, 1.0))}
    assert diagnoses["determinism"].message == "1 of 4 episodes gave another result when run again"


def test_first_error_is_told_with_its_place():
    found = diagnosis("errors", "raising")
    assert "(faulty_targets.py:" in found.message


def seed_told(target):
    return next(one.message for one in check_target(target, episodes=60, seed=0) if one.name == "case seed")


def test_check_says_what_the_case_seed_does():
    unused = load_target("faulty_targets:healthy")
    assert seed_told(unused) == "another case seed changes none of 8 episodes"
    noise = load_target("planted_targets:noisy")
    assert re.match(r"another case seed changes \d of 8 episodes: findings are tried with", seed_told(noise))
    situation = replace(noise, seed_is_situation=True)
    assert seed_told(situation) == "the case seed is part of the situation, as the input is"
