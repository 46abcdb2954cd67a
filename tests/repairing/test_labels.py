from dataclasses import replace

import numpy as np

from policyfuzz.core.actions import ActionSpace
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
