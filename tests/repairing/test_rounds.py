import multiprocessing
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.target import Runner
from policyfuzz.policies.mlp import read_npz
from policyfuzz.repairing.files import policy_file
from policyfuzz.repairing.journal import Journal
from policyfuzz.repairing.rounds import Exam, Repair, RepairSettings, paired_chance
from policyfuzz.repairing.states import Cases, Ends, States, record_moments
from policyfuzz.repairing.training import TrainingSettings, blend, weights_of
from tests.repairing.planted_gaps import BUG, bank_file, load, world

torch = pytest.importorskip("torch")

SETTINGS = RepairSettings(
    rounds=2, budget=2400, training=TrainingSettings(rate=3e-3, batch=128, steps=120, looks=4)
)


def search(target, episodes, seed, folder):
    """Stands for a campaign: random cases, of which the rounds keep those that crash."""
    rng = np.random.default_rng(seed)
    return Cases(target.inputs.sample(rng, episodes // 10), np.zeros(episodes // 10, np.uint64))


@pytest.fixture(autouse=True)
def planted_files(monkeypatch):
    monkeypatch.setattr("policyfuzz.repairing.rounds.policy_file", _planted_file)


@pytest.fixture
def make_repair(tmp_path):
    def make(name="repair", settings=SETTINGS, tell=lambda _text: None):
        journal = Journal.open(tmp_path / name, {"seed": settings.seed})
        return Repair(world(), bank_file(), journal, settings, load, search, tell)

    return make


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A repair from its beginning to its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("policyfuzz.repairing.rounds.policy_file", _planted_file)
        journal = Journal.open(tmp_path_factory.mktemp("whole"), {"seed": 0})
        return Repair(world(), bank_file(), journal, SETTINGS, load, search).run(findings())


def _planted_file(target):
    if target.policy_uri is None:
        return policy_file(target)
    from pathlib import Path

    return bank_file(read_npz(Path(target.policy_uri.partition(":")[2])))


def findings():
    gaps = np.linspace(*BUG, 20)[:, None]
    return Cases(gaps, np.zeros(20, np.uint64))


def same_decisions(path):
    """The share of decisions that stay the same in episodes that have nothing to do with the bug."""
    gaps = np.linspace(-0.9, 0.9, 400)[:, None]
    is_outside = (gaps[:, 0] < BUG[0] - 0.1) | (gaps[:, 0] > BUG[1] + 0.1)
    cases = Cases(gaps[is_outside], np.zeros(is_outside.sum(), np.uint64))
    states = record_moments(Runner(world()), cases, batch=64).states
    new = read_npz(path)(states.observations, np.zeros(len(states), np.int64)).argmax(axis=1)
    return (new == states.actions[:, 0]).mean()


def test_a_planted_bug_is_repaired_and_nothing_else_changes(whole):
    repaired = whole

    assert repaired.candidate is not None
    last = repaired.rounds[-1] if repaired.rounds[-1].is_accepted else repaired.rounds[0]
    assert last.newly_broken == 0
    inputs = np.linspace(-0.9, 0.9, 400)[:, None]
    before, after = (_crashed(target, inputs) for target in (world(), load(repaired.candidate)))
    assert before.sum() > 20
    assert after.sum() <= before.sum() / 2
    assert not (after & ~before).any()
    assert same_decisions(repaired.candidate) > 0.9


def _crashed(target, inputs):
    return Runner(target)(inputs, np.zeros(len(inputs), np.uint64)).crashed


@pytest.mark.slow
def test_wrong_labels_are_rejected(make_repair, monkeypatch):
    learn = Repair._learn

    def opposite(self, runners, crashes):
        lessons = learn(self, runners, crashes)
        wrong = States(lessons.changes.observations, lessons.changes.previous, 2.0 - lessons.changes.actions)
        return replace(lessons, changes=wrong, kept=wrong)

    monkeypatch.setattr(Repair, "_learn", opposite)
    repaired = make_repair().run(findings())

    assert repaired.candidate is None, repaired.rounds
    assert not any(one.is_accepted for one in repaired.rounds)


def test_blends_go_a_part_of_the_way():
    networks = bank_file().load()
    before = weights_of(networks)
    with torch.no_grad():
        for one in networks.parameters():
            one.add_(1.0)

    ways = []
    for share in blend(networks, before, (0.5, 0.25)):
        moved = [(one - old).detach() for one, old in zip(networks.parameters(), before, strict=True)]
        ways.append((share, {round(float(value), 5) for one in moved for value in one.ravel()}))
    assert ways == [(0.5, {0.5}), (0.25, {0.25})]


def test_where_all_candidates_are_refused_blends_are_tried(make_repair, monkeypatch):
    told = []
    judge = Exam.badness

    def refuse(self, ends, allowed):
        is_blend = "of the way" in told[-1]
        return judge(self, ends, allowed) if is_blend else None

    monkeypatch.setattr(Exam, "badness", refuse)
    repaired = make_repair(tell=told.append, settings=replace(SETTINGS, rounds=1)).run(findings())

    assert sum("of the way" in text for text in told) == 3
    assert repaired.rounds[0].is_accepted
    assert repaired.rounds[0].crashes_after < repaired.rounds[0].crashes_before


def test_the_same_seed_gives_the_same_networks_to_the_bit(make_repair, whole):
    again = make_repair().run(findings())

    assert again.rounds == whole.rounds
    assert again.candidate.read_bytes() == whole.candidate.read_bytes()


@pytest.mark.slow
def test_another_seed_gives_other_networks(make_repair, whole):
    other = make_repair("other", replace(SETTINGS, seed=1)).run(findings())

    assert whole.candidate.read_bytes() != other.candidate.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("when", [2, 5])
def test_a_repair_that_was_killed_goes_on_to_the_same_networks(make_repair, whole, when):
    told = []

    def kill(text):
        told.append(text)
        if len(told) == when:
            os.kill(os.getpid(), signal.SIGKILL)

    child = multiprocessing.get_context("fork").Process(
        target=lambda: make_repair("killed", tell=kill).run(findings())
    )
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL
    resumed = make_repair("killed").run(findings())

    assert resumed.rounds == whole.rounds
    assert resumed.candidate.read_bytes() == whole.candidate.read_bytes()


def test_a_folder_of_another_repair_is_refused(tmp_path):
    Journal.open(tmp_path / "one", {"seed": 0})

    with pytest.raises(CampaignError, match="another policy, or with other settings"):
        Journal.open(tmp_path / "one", {"seed": 1})


def ends_with(crashed):
    crashed = np.array(crashed, bool)
    none = np.zeros(len(crashed))
    return Ends(crashed, np.ones(len(crashed), bool), none.astype(np.int64), none, none)


def exam_of(before):
    count = len(before)
    return Exam(Cases(np.zeros((count, 1)), np.zeros(count, np.uint64)), np.ones(count, bool), before, before)


def test_a_candidate_that_costs_nominal_return_is_refused():
    before = replace(ends_with([1] * 20 + [0] * 20), returns=np.arange(40.0))
    exam, fixed = exam_of(before), ends_with([0] * 40)

    assert exam.badness(replace(fixed, returns=before.returns - 5.0), allowed=0.1) is None
    assert exam.badness(replace(fixed, returns=before.returns), allowed=0.1) is not None
    # what happens where the old policy crashed is no nominal return
    assert exam.badness(replace(fixed, returns=before.returns - 5.0 * (before.returns < 20)), 0.1) is not None


def test_how_much_a_candidate_may_newly_break_is_said_by_the_user():
    before, after = ends_with([1] * 20 + [0] * 20), ends_with([0] * 20 + [1] * 4 + [0] * 16)
    exam = exam_of(before)

    assert exam.badness(after, allowed=0.1) is None
    assert exam.badness(after, allowed=0.2) is not None


def test_to_break_more_than_is_fixed_cannot_be_allowed():
    with pytest.raises(UsageError, match="expected 0 to 1"):
        RepairSettings(allowed=1.5)


def test_what_chance_gives_is_no_improvement():
    assert paired_chance(gained=0, lost=0) == 1.0
    assert paired_chance(gained=4, lost=0) > 0.05
    assert paired_chance(gained=5, lost=0) < 0.05


def test_crashes_that_nothing_avoids_teach_nothing(make_repair):
    from policyfuzz.core.actions import ActionSpace

    told = []
    repair = make_repair(tell=told.append)
    repair._target = replace(world(), actions=ActionSpace.choices(("left",)))
    repaired = repair.run(findings())

    assert repaired.rounds == ()
    assert repaired.candidate is None
    assert told[-1] == "round 1: nothing was found that avoids a crash"
