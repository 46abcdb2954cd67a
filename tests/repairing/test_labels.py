from dataclasses import replace

import numpy as np

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.oracle import Below
from policyfuzz.repairing.choices import Runners, learn_choices
from policyfuzz.repairing.numbers import learn_numbers
from policyfuzz.repairing.states import Cases, record_moments
from tests.repairing.planted_gaps import BUG, STEPS, STRIDE, WIDTH, Walk, world


def crashes(count=6):
    return Cases(np.linspace(BUG[0] + 0.01, BUG[1] - 0.01, count)[:, None], np.zeros(count, np.uint64))


class PushedWalk(Walk):
    """Actions are numbers: how far to step, and to which side."""

    def step(self, actions, rows):
        return super().step(np.asarray(actions)[:, 0] + 1.0, rows)


class AwayPolicy:
    """Runs away from every gap."""

    def begin(self, count): ...

    def act(self, observations, rows):
        return -np.sign(observations[:, 1:] - observations[:, :1])


def pushed_world():
    space = ActionSpace.box(np.array([-1.0]), np.array([1.0]))
    return replace(world(), simulator=PushedWalk, policy=AwayPolicy, actions=space)


def test_what_was_seen_and_done_is_kept_step_by_step():
    moments = record_moments(Runners.of(world(), 3).short, crashes(2), batch=64)

    assert moments.episodes.tolist() == [0] * STEPS + [1] * STEPS
    assert moments.steps.tolist() == [*range(1, STEPS + 1)] * 2
    first = moments.states[:STEPS]
    assert np.isnan(first.previous[0]).all()
    np.testing.assert_array_equal(first.previous[1:], first.actions[:-1])
    moved = first.observations[1:, 0] - first.observations[:-1, 0]
    np.testing.assert_allclose(moved, STRIDE * (first.actions[:-1, 0] - 1))


def test_labels_say_what_saves_an_episode():
    lessons = learn_choices(Runners.of(world(), 3), crashes())

    assert lessons.saved == 6
    assert len(lessons.changes) > 6
    assert (lessons.changes.actions == 2.0).all()  # to the right, where the gaps are


class Pole:
    """n poles that are pushed to the left or to the right at every step, and fall beyond 1."""

    signals = ("upright",)
    capacity = None

    def reset(self, inputs, seeds):
        self._tilt, self._step = inputs[:, 0].copy(), 0
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self._step += 1
        self._tilt[rows] += 0.3 * (2 * actions - 1.0)
        return self._frame(rows)

    def _frame(self, rows):
        upright = 1 - np.abs(self._tilt[rows])
        seen = self._tilt[rows, None].copy()
        return Frame(seen, seen, upright[:, None], upright, upright < 0)


class FearfulPolicy:
    """Pushes back, but out of despair to the right where a pole leans that way already."""

    def begin(self, count): ...

    def act(self, observations, rows):
        tilt = observations[:, 0]
        return ((tilt < 0) | (tilt > 0.5)).astype(float)


def test_where_nothing_may_be_held_for_long_brief_actions_are_labels():
    target = replace(
        world(),
        simulator=Pole,
        policy=FearfulPolicy,
        oracle=Below("upright", 0.0, kind="fell"),
        horizon=20,
        actions=ActionSpace.choices(("left", "right")),
    )
    starts = Cases(np.linspace(0.55, 0.85, 4)[:, None], np.zeros(4, np.uint64))

    lessons = learn_choices(Runners.of(target, 3), starts)

    assert lessons.saved == 4
    leaning = lessons.changes.observations[:, 0] > 0.5
    assert leaning.any()
    assert (lessons.changes.actions[leaning] == 0.0).all()


def test_no_state_behind_the_point_of_no_return_is_labelled():
    lessons = learn_choices(Runners.of(world(), 3), crashes())

    place, gap = lessons.changes.observations.T
    on_the_way_back = place < 0  # the policy has run away
    gone = np.rint(-place / STRIDE)  # steps away from the start, and so steps of the episode
    reachable = place + (STEPS - gone) * STRIDE >= gap - WIDTH - 1e-9
    assert on_the_way_back.any()
    assert reachable[on_the_way_back].all()


def test_labels_of_numbers_are_what_a_witness_did():
    lessons = learn_numbers(Runners.of(pushed_world(), 3), crashes(), seed=0)

    assert lessons.saved == 6
    assert (np.abs(lessons.changes.actions) <= 1.0).all()
    assert lessons.changes.actions.mean() > 0  # towards the gaps
    assert lessons.episodes > 6
