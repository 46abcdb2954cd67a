import dataclasses
from pathlib import Path

import numpy as np
import pytest

from benchmarks.campaigns import finished_campaign
from benchmarks.versus import contestants, peers, targets, trials
from benchmarks.versus.contestants import CampaignContestant, find_contestant
from benchmarks.versus.judge import Verdict
from benchmarks.versus.raw import Task
from benchmarks.versus.trial import Recorder, Trial
from benchmarks.versus.trials import Plan, run_all
from policyfuzz import load_target
from policyfuzz.campaign.engine import Campaign
from policyfuzz.core.errors import CampaignError, MissingExtra, UsageError
from policyfuzz.core.settings import DEFAULT_STRATEGY, CampaignOptions
from policyfuzz.store.records import CONFIRMED

EASY = "ripple:dimensions=2,regions=3,probability=0.01"


def task(contestant: str = "random", seed: int = 0) -> Task:
    return Task("easy", EASY, None, contestant, seed, 600)


def lie(target, episodes, seed) -> Trial:
    """Claims a crash at every episode, whatever came of it."""
    inputs = target.inputs.sample(np.random.default_rng(seed), episodes)
    seeds = np.zeros(episodes, np.uint64)
    return Trial(episodes, 1.0, 1.0, np.arange(1, episodes + 1), inputs, seeds)


@pytest.fixture
def add_peer(monkeypatch):
    def add(name, contestant):
        monkeypatch.setattr(peers, "PEERS", {**peers.PEERS, name: lambda: contestant})

    return add


@pytest.mark.parametrize("name", ["default", "mdpfuzz", "reward", "random"])
def test_own_contestant_runs_exactly_its_episodes_and_claims_only_crashes(name):
    target = load_target(EASY)
    trial = find_contestant(name)(target, 600, 3)
    assert trial.episodes == 600
    assert len(trial.numbers) > 0
    assert trial.numbers.max() <= 600
    assert 0 < trial.simulated_seconds < trial.seconds
    assert (np.diff(trial.times) >= 0).all()
    assert (trials.Judge(target)(trial, 600).verdicts == Verdict.FINDING).all()


def test_same_seed_gives_the_same_claims_and_another_seed_others():
    target = load_target(EASY)
    run = CampaignContestant("random")
    first, again, other = (run(target, 600, seed) for seed in (1, 1, 2))
    assert (first.inputs == again.inputs).all()
    assert first.inputs.shape != other.inputs.shape or (first.inputs != other.inputs).any()


def test_target_that_always_crashes_runs_all_the_same():
    always = dataclasses.replace(load_target("ripple:dimensions=1,probability=0.5"), solvable=None)
    low = targets.Pond.make(1, 1, 0.5)
    space = dataclasses.replace(
        always.inputs, sampler=lambda rng, n: low.centres + low.half_width * rng.uniform(-0.5, 0.5, (n, 1))
    )
    trial = CampaignContestant("random")(dataclasses.replace(always, inputs=space), 100, 0)
    assert trial.episodes == 100
    assert len(trial.numbers) > 30


def test_interrupted_campaign_is_no_result(monkeypatch):
    def interrupt(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(Campaign, "_loop", interrupt)
    with pytest.raises(KeyboardInterrupt):
        CampaignContestant("random")(load_target(EASY), 600, 0)


def test_liar_gets_what_is_true_of_its_claims(add_peer, tmp_path):
    add_peer("liar", lie)
    (done,) = run_all([task("liar")], tmp_path, 1, print)
    counts = np.bincount(done.result.verdicts, minlength=4)
    assert counts[Verdict.FINDING] + counts[Verdict.NOT_REPRODUCED] == 600
    # three regions of one per cent
    assert 3 <= counts[Verdict.FINDING] <= 45
    assert set(done.result.regions[done.result.verdicts == Verdict.FINDING]) <= {0, 1, 2}
    assert done.result.known_regions == 3


def test_trial_that_is_there_is_not_run_again(tmp_path):
    said = []
    assert len(list(run_all([task(), task(seed=1)], tmp_path, 1, said.append))) == 2
    assert said == []
    again = list(run_all([task(), task(seed=1), task(seed=2)], tmp_path, 1, said.append))
    assert [done.task.seed for done in again] == [2]
    assert said == ["2 of 3 trials are there already, and are not run again"]


def test_trials_of_older_code_are_pointed_out(tmp_path, monkeypatch):
    said = []
    list(run_all([task()], tmp_path, 1, said.append))
    monkeypatch.setattr(trials, "code_digest", lambda: "another")
    list(run_all([task()], tmp_path, 1, said.append))
    assert said[1] == "1 of them (random) are of another state of our code; delete them to run them anew"


def test_peer_that_fails_is_told_and_does_not_stop_the_others(add_peer, tmp_path):
    def fail(target, episodes, seed):
        raise ZeroDivisionError("no episodes a second")

    add_peer("broken", fail)
    first, second = run_all([task("broken"), task("random")], tmp_path, 1, print)
    assert first.result is None
    assert "contestant broken raised ZeroDivisionError: no episodes a second" in first.problem
    assert second.result is not None
    assert "no episodes a second" in trials.raw.failures(tmp_path)["easy", "broken"]


def test_what_is_not_here_is_left_out_and_said(monkeypatch):
    def missing():
        raise MissingExtra("ribs", "pip install 'policyfuzz[versus]'")

    monkeypatch.setattr(peers, "PEERS", {"cma-me": missing})
    entries = targets.choose(("acasxu-public", "ripple-2"), None, None)
    plan = Plan.make(entries, ("random", "cma-me"), 2, 1)
    assert [(one.label, one.contestant, one.seed) for one in plan.tasks] == [
        ("ripple-2", "random", 0),
        ("ripple-2", "random", 1),
    ]
    assert [line.split(":")[0] for line in plan.left_out] == [
        "cma-me is left out",
        "acasxu-public is left out",
    ]


def test_slow_peers_have_fewer_episodes_and_seeds(monkeypatch):
    monkeypatch.setattr(peers, "PEERS", {"pypi-mdpfuzz": lambda: lie, "cma-me": lambda: lie})
    names = ("random", "pypi-mdpfuzz", "cma-me")
    plan = Plan.make(targets.choose(("acasxu",), None, None), names, 4, 2)
    counts = {name: [one.episodes for one in plan.tasks if one.contestant == name] for name in names}
    assert counts == {"random": [20_000] * 4, "pypi-mdpfuzz": [5_000] * 2, "cma-me": [20_000] * 4}


def test_number_of_episodes_can_be_chosen_for_all():
    (entry,) = targets.choose(("acasxu",), None, 300)
    assert (entry.episodes, entry.slow_peer_episodes) == (300, 300)
    (entry,) = targets.choose(("acasxu",), None, 50_000)
    assert (entry.episodes, entry.slow_peer_episodes) == (50_000, 5_000)


def test_any_target_with_a_colon_can_be_chosen():
    (entry,) = targets.choose((EASY,), None, None)
    assert entry.target == EASY
    assert entry.label == "ripple-dimensions=2-regions=3-probability=0.01"


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: targets.choose(("acasx",), None, None), "did you mean 'acasxu'"),
        (lambda: targets.choose((), None, 3), "expected 10 or more"),
        (lambda: Plan.make([], (), 0, 1), "seeds is 0"),
        (lambda: find_contestant("randon"), "did you mean 'random'"),
        (lambda: list(run_all([], Path(), 0, print)), "jobs is 0"),
    ],
)
def test_what_makes_no_sense_is_refused(call, complaint):
    with pytest.raises(UsageError) as caught:
        call()
    assert complaint in str(caught.value)


@pytest.mark.parametrize("name", ["ripple", EASY, "ripple:dimensions=12,regions=2,probability=0.0001"])
def test_known_regions_are_those_of_the_target(name):
    count, _ = targets.regions_of(name, np.empty((0, 12)))
    target = load_target(name)
    run = trials.Judge(target)
    pond_inputs = np.full((count, len(target.inputs.dimensions)), 0.5)
    options = targets.split_options(name)[1]
    pond = targets.Pond.make(len(target.inputs.dimensions), count, float(options.get("probability", 1e-3)))
    pond_inputs[:, : pond.centres.shape[1]] = pond.centres
    assert targets.regions_of(name, pond_inputs)[1].tolist() == list(range(count))
    numbers, seeds = np.arange(1, count + 1), np.zeros(count, np.uint64)
    claims = Trial(count, 1.0, 1.0, numbers, pond_inputs, seeds)
    assert (run(claims, count).verdicts == Verdict.FINDING).all()


def test_all_names_of_contestants_are_known():
    names = contestants.contestant_names()
    assert names[0] == "default"
    assert {"mdpfuzz", "reward", "random", *peers.PEERS} < set(names)
    assert DEFAULT_STRATEGY not in names, "it takes part once"
    assert set(contestants.SLOW_PEERS) <= set(contestants.contestant_names())


def test_any_strategy_can_take_part(monkeypatch):
    monkeypatch.setattr(contestants, "strategy_names", lambda: ("random", "somebody-elses"))
    assert find_contestant("somebody-elses") == CampaignContestant("somebody-elses")
    assert contestants.is_own("somebody-elses")
    assert not contestants.is_own("half-noise")


def test_claims_of_a_campaign_carry_the_episode_that_the_campaign_stored():
    target, options = load_target(EASY), CampaignOptions(strategy="random", seed=3)
    with finished_campaign(target, 600, options, force=True) as store:
        stored = [one.execution for one in store.findings() if one.status == CONFIRMED]
    assert find_contestant("random")(target, 600, 3).numbers.tolist() == sorted(stored)


def test_claims_of_a_peer_carry_the_exact_episode():
    target = load_target(EASY)
    recorder, rng = Recorder(target, 700), np.random.default_rng(0)
    inputs, seeds = target.inputs.sample(rng, 700), np.arange(700, dtype=np.uint64)
    crashed = np.concatenate(
        [recorder.run(inputs[part], seeds[part]).crashed for part in (slice(0, 300), slice(300, 700))]
    )
    assert recorder.trial().numbers.tolist() == (np.flatnonzero(crashed) + 1).tolist()


def test_roots_are_those_of_the_campaign_where_it_stores_them(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class Rooted:
        id: int
        root: int | None

    monkeypatch.setattr(contestants, "Finding", Rooted)
    found = [Rooted(1, 7), Rooted(2, 7), Rooted(3, None), Rooted(4, None)]
    roots = contestants._roots(found)  # type: ignore[arg-type]
    assert roots is not None
    assert len(set(roots.tolist())) == 3, "what descends from nothing is a lineage of its own"


def test_plan_is_refused_where_the_reference_set_is_of_another_policy(monkeypatch):
    known = trials.reference.find("ripple-2")
    assert known is not None
    other = dataclasses.replace(known, origin=dataclasses.replace(known.origin, policy_sha256="f00"))
    monkeypatch.setattr(trials.reference, "find", lambda _label: other)
    with pytest.raises(CampaignError, match="reference set of ripple-2 was made for another policy"):
        Plan.make(targets.choose(("ripple-2",), None, None), ("random",), 1, 1)


def test_code_is_stamped_as_it_was_before_the_trial(add_peer, monkeypatch, tmp_path):
    state = {"code": "before"}
    monkeypatch.setattr(trials, "surroundings", lambda: dict(state))

    def edit(target, episodes, seed):
        state["code"] = "after"
        return lie(target, episodes, seed)

    add_peer("editor", edit)
    (done,) = run_all([task("editor")], tmp_path, 1, lambda line: None)
    assert done.result.about["code"] == "before"
