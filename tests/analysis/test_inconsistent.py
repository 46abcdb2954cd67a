import json
from dataclasses import replace

import numpy as np
import pytest

import policyfuzz
from policyfuzz.analysis import inconsistent
from policyfuzz.analysis.inconsistent import SHARES, replace_decisions
from policyfuzz.cli.main import exit_code
from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Runner, Target
from policyfuzz.execution.executor import choose_executor
from policyfuzz.targets.registry import load_target

STEPS = 20


class Obeys:
    """Crashes with the first action that is not the one that the policy always takes."""

    signals = ("obeys",)
    capacity = None

    def reset(self, inputs, seeds):
        self._obeys = np.ones(len(inputs))
        self._inputs = inputs
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        same = np.abs(actions.reshape(len(rows), -1) - OWN).max(axis=1) < 1e-12
        self._obeys[rows] = np.where(same & (self._inputs[rows, 0] >= 0), self._obeys[rows], -1.0)
        return self._frame(rows)

    def _frame(self, rows):
        obeys = self._obeys[rows][:, None]
        return Frame(obeys, obeys, obeys, np.zeros(len(rows)), np.zeros(len(rows), np.bool_))


OWN = 2.0


class Always:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.full((len(rows), 1), OWN)


def obeying(actions):
    """Half of its inputs crash whatever is done."""
    return Target(
        "obeying",
        InputSpace((Real("x", -1, 1),)),
        Obeys,
        Always,
        Below("obeys", 0.0, kind="other"),
        STEPS,
        actions=actions,
    )


@pytest.mark.parametrize(
    "actions",
    [ActionSpace.choices("abc"), ActionSpace.box(np.zeros(1), np.full(1, 3.0))],
    ids=["choices", "box"],
)
def test_every_replaced_decision_is_another_one(actions):
    target = obeying(actions)
    found = replace_decisions(target, Runner(target), 200)
    assert found.episodes == 200
    assert 330 < found.draws < 480  # half of the inputs are not normal
    for one in found.shares:
        expected = 1 - (1 - one.share) ** STEPS  # one replaced decision is enough
        assert abs(one.crash_rate - expected) < 4 * np.sqrt(expected * (1 - expected) / 200) + 1e-4
        assert one.low <= one.crash_rate <= one.high
        assert one.episodes == 200
        assert one.decisions == 200 * STEPS
        spread = 4 * np.sqrt(one.share * (1 - one.share) / one.decisions)
        assert abs(one.replaced / one.decisions - one.share) < spread


def test_episodes_crash_if_and_only_if_a_decision_was_replaced():
    target = obeying(ActionSpace.choices("abc"))
    cases, _ = inconsistent._normal_episodes(target, Runner(target), 100, 0, lambda _done: None)
    drawn = [
        others.is_replaced(0.05) for _, _, others in inconsistent._drawn(target, target.actions, cases, 0)
    ]
    (found,) = replace_decisions(target, Runner(target), 100, 0, (0.05,)).shares
    assert found.crashes == np.concatenate(drawn).any(axis=1).sum()


def test_what_a_small_share_breaks_a_large_one_breaks_too():
    target = obeying(ActionSpace.choices("abc"))
    crashes = [one.crashes for one in replace_decisions(target, Runner(target), 100).shares]
    assert crashes == sorted(crashes)


def test_all_other_choices_are_drawn_alike():
    space = ActionSpace.choices("abcde")
    turns = inconsistent._other_choices(space, np.random.default_rng(0), 4000)
    values, counts = np.unique(space.added(np.full((4000, 1), 3.0), turns), return_counts=True)
    assert values.tolist() == [0, 1, 2, 4]
    assert counts.min() > 900


def test_several_numbers_of_both_kinds_are_replaced_together():
    space = ActionSpace.joint(
        [("a", ActionSpace.choices("xyz")), ("b", ActionSpace.box(np.zeros(1), np.ones(1)))]
    )
    target = replace(obeying(space), batch_size=4)
    cases, _ = inconsistent._normal_episodes(target, Runner(obeying(None)), 4, 0, lambda _done: None)
    ((_, _, others),) = inconsistent._drawn(target, space, cases, 0)
    branches = others.branches(1.0)
    assert branches.numbers.shape == (4, 2 * STEPS, 2)
    assert np.isnan(branches.numbers[:, :STEPS, 0]).all()
    assert np.isnan(branches.numbers[:, STEPS:, 1]).all()
    assert branches.is_added[:, STEPS:].all()
    assert not branches.is_added[:, :STEPS].any()


def test_results_do_not_depend_on_how_many_episodes_run_at_once(monkeypatch):
    target = load_target("acasxu")
    whole = replace_decisions(target, Runner(target), 40, 5, (0.5,))
    monkeypatch.setattr(inconsistent, "_NUMBERS_AT_ONCE", 7 * target.horizon)
    assert replace_decisions(target, Runner(target), 40, 5, (0.5,)) == whole


@pytest.mark.slow
def test_workers_give_the_same():
    target = load_target("acasxu")
    executor = choose_executor(None, 2)
    with_workers = replace_decisions(target, executor.make_runner(target), 60, 1)
    assert with_workers == replace_decisions(target, Runner(target), 60, 1)


def test_long_episodes_are_run_a_few_at_a_time():
    target = replace(obeying(ActionSpace.box(np.zeros(9), np.ones(9))), horizon=100_000, batch_size=1024)
    cases, _ = inconsistent._normal_episodes(
        replace(target, horizon=2), Runner(replace(target, horizon=2)), 6, 0, lambda _done: None
    )
    _, some, others = next(inconsistent._drawn(target, target.actions, cases, 0))
    assert len(some) == 2
    assert sum(part.nbytes for part in others.branches(0.5).arrays) < 50e6


def test_a_target_without_other_actions_is_refused():
    for actions in (None, ActionSpace.choices("a")):
        with pytest.raises(UsageError, match="no other actions"):
            replace_decisions(obeying(actions), Runner(obeying(actions)), 10)


def test_a_policy_that_always_crashes_is_refused():
    target = replace(obeying(ActionSpace.choices("abc")), inputs=InputSpace((Real("x", -2, -1),)))
    with pytest.raises(UsageError, match="only 0 of"):
        replace_decisions(target, Runner(target), 5)


@pytest.mark.parametrize(
    ("episodes", "seed", "shares"), [(0, 0, SHARES), (5, -1, SHARES), (5, 0, ()), (5, 0, (1.5,))]
)
def test_settings_that_mean_nothing_are_refused(episodes, seed, shares):
    target = obeying(ActionSpace.choices("abc"))
    with pytest.raises(UsageError, match="expected"):
        replace_decisions(target, Runner(target), episodes, seed, shares)


def test_the_command_and_python_say_the_same(capsys):
    assert exit_code(["inconsistent", "acasxu", "--episodes", "30", "-s", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    found = policyfuzz.inconsistent("acasxu", episodes=30, seed=2)
    assert [one["crashes"] for one in told["shares"]] == [one.crashes for one in found.shares]
    assert told["shares"][4]["replaced"] == found.shares[4].replaced > 0


def test_the_table_has_the_numbers_of_the_paper_beside(capsys):
    assert exit_code(["inconsistent", "acasxu", "--episodes", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "acasxu: policy shipped networks, horizon 100 steps"
    assert [line.split()[-1] for line in lines[3:]] == ["0.0%", "1.5%", "2.3%", "6.0%", "11.5%"]
