import numpy as np
import pytest

from policyfuzz.core.actions import action_numbers
from policyfuzz.core.branches import Segment
from policyfuzz.core.recording import record, record_all
from policyfuzz.core.target import Runner
from policyfuzz.targets.registry import load_target


@pytest.fixture(scope="module")
def encounters():
    target = load_target("acasxu")
    inputs = target.inputs.sample(np.random.default_rng(3), 50)
    return target, inputs[target.inputs.is_valid(inputs)][:3]


def test_many_episodes_are_recorded_as_each_alone(encounters):
    target, inputs = encounters
    branches = [(), [Segment(11, 21, (3.0,))], ()]
    many = record_all(Runner(target), inputs, np.arange(3, dtype=np.uint64), branches)
    for row, branch in enumerate(branches):
        alone = record(target, inputs[row], row, branch=branch)
        np.testing.assert_array_equal(many.signals[row], alone.signals)
        np.testing.assert_array_equal(many.rewards[row], alone.rewards)
        np.testing.assert_array_equal(many.states[row], alone.executions.states[0])
        np.testing.assert_array_equal(many.actions[row, 1:], action_numbers(np.array(alone.actions)))
        assert np.isnan(many.actions[row, 0]).all()


def test_nothing_is_recorded_after_the_end_of_an_episode():
    target = load_target("gym:CartPole-v1:bounds=wide", "py:tests.core.test_recording:push_right", trust=True)
    inputs = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.15, 1.0]])[:, : len(target.inputs.dimensions)]
    many = record_all(Runner(target), inputs, np.zeros(2, np.uint64))
    lengths = many.executions.lengths
    assert lengths[0] != lengths[1]
    for row, length in enumerate(lengths):
        assert np.isfinite(many.states[row, :length]).all()
        assert np.isnan(many.states[row, length:]).all()
        assert np.isnan(many.rewards[row, length:]).all()


def push_right(_observation):
    return 1
