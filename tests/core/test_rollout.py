import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.interfaces import Frame
from policyfuzz.core.rollout import rollout
from policyfuzz.oracles import NONE, Below

some_examples = settings(max_examples=40, deadline=None, derandomize=True)

HORIZON = 6
FALLEN = Below("height", 0.0, kind="fallen")


class Descent:
    """Height falls by the action in each step; an episode ends after its life, which may be zero steps.

    The input is (height, life); the reward of step t is t. Refuses to step an episode that has ended.
    """

    signals = ("height", "noise")

    def __init__(self, capacity=None):
        self.capacity = capacity
        self.held = []
        self.stepped = []

    def reset(self, inputs, seeds):
        self.height, self.life = inputs[:, 0].copy(), inputs[:, 1].astype(int)
        self.time = np.zeros(len(inputs), int)
        self.seeds = seeds.astype(np.float64)
        self.held.append(len(inputs))
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        assert (np.diff(rows) > 0).all()
        assert (self.time[rows] < self.life[rows]).all()
        self.stepped.append(rows.copy())
        self.height[rows] -= actions
        self.time[rows] += 1
        return self._frame(rows)

    def _frame(self, rows):
        height, time = self.height[rows], self.time[rows]
        return Frame(
            observations=np.column_stack([rows, time]).astype(np.float64),
            states=np.column_stack([height, time, self.seeds[rows]]),
            signals=np.column_stack([height, self.seeds[rows]]),
            rewards=time.astype(np.float64),
            ended=time >= self.life[rows],
        )


class Counter:
    """Acts with how often it has acted in an episode, so that a mixed-up row shows."""

    def begin(self, count):
        self.acted = np.zeros(count)

    def act(self, observations, rows):
        assert len(observations) == len(rows)
        np.testing.assert_array_equal(observations[:, 0], rows)
        np.testing.assert_array_equal(observations[:, 1], self.acted[rows])
        self.acted[rows] += 1
        return self.acted[rows]


def run(inputs, capacity=None, simulator=None, **options):
    inputs = np.array(inputs, np.float64).reshape(-1, 2)
    seeds = np.arange(len(inputs), dtype=np.uint64)
    simulator = simulator or Descent(capacity)
    return rollout(simulator, Counter(), FALLEN, inputs, seeds, **({"horizon": HORIZON} | options))


episodes = st.lists(st.tuples(st.integers(-2, 25), st.integers(0, 9)), min_size=1, max_size=20)


@some_examples
@given(episodes)
def test_episodes_of_different_lengths_give_their_own_results(inputs):
    executions = run(inputs)
    for row, (height, life) in enumerate(inputs):
        steps = min(life, HORIZON)
        heights = height - np.cumsum(np.arange(steps + 1))
        fallen = np.flatnonzero(heights < 0)
        assert executions.lengths[row] == steps + 1
        assert executions.returns[row] == sum(range(1, steps + 1))
        assert executions.verdicts.steps[row] == (fallen[0] if len(fallen) else NONE)
        assert executions.verdicts.kinds[row] == (0 if len(fallen) else NONE)
        np.testing.assert_array_equal(executions.states[row, : steps + 1, 0], heights)
        np.testing.assert_array_equal(executions.states[row, : steps + 1, 1], np.arange(steps + 1))
        np.testing.assert_array_equal(executions.states[row, : steps + 1, 2], row)
        assert not executions.states[row, steps + 1 :].any()


@some_examples
@given(episodes)
def test_states_are_as_long_as_the_longest_episode(inputs):
    executions = run(inputs)
    assert executions.states.shape == (len(inputs), executions.lengths.max(), 3)


@some_examples
@given(episodes, st.integers(1, 8))
def test_results_are_the_same_when_the_simulator_holds_few_at_once(inputs, capacity):
    whole = run(inputs)
    simulator = Descent(capacity)
    split = run(inputs, simulator=simulator)
    assert max(simulator.held) <= capacity
    assert sum(simulator.held) == len(inputs)
    np.testing.assert_array_equal(split.returns, whole.returns)
    np.testing.assert_array_equal(split.lengths, whole.lengths)
    np.testing.assert_array_equal(split.states, whole.states)
    np.testing.assert_array_equal(split.verdicts.kinds, whole.verdicts.kinds)
    np.testing.assert_array_equal(split.verdicts.steps, whole.verdicts.steps)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.99])
def test_return_decays_at_every_step(decay):
    executions = run([(5, 3), (5, 1), (5, 9)], decay=decay)
    expected = [sum(decay ** (steps - t) * t for t in range(1, steps + 1)) for steps in (3, 1, HORIZON)]
    np.testing.assert_allclose(executions.returns, expected, rtol=1e-12)


def test_ended_episodes_are_stepped_no_more():
    simulator = Descent()
    run([(5, 2), (5, 0), (5, 3), (5, 9)], simulator=simulator)
    assert [rows.tolist() for rows in simulator.stepped] == [[0, 2, 3], [0, 2, 3], [2, 3], [3], [3], [3]]


def test_loop_stops_when_all_episodes_have_ended():
    simulator = Descent()
    run([(5, 1), (5, 2)], simulator=simulator)
    assert len(simulator.stepped) == 2


def test_episodes_show_their_start_only_when_the_horizon_is_zero():
    executions = run([(5, 3), (-1, 3)], horizon=0)
    assert executions.lengths.tolist() == [1, 1]
    assert executions.verdicts.steps.tolist() == [NONE, 0]


def test_no_inputs_give_no_executions():
    executions = run([])
    assert len(executions) == 0
    assert executions.crashed.shape == (0,)


def test_observer_sees_the_start_and_every_step():
    seen = []

    def observer(step, rows, actions, frame):
        seen.append((step, rows.tolist(), None if actions is None else actions.tolist(), frame.signals[:, 0]))

    run([(5, 2), (9, 1), (7, 0)], observer=observer)
    steps, rows, actions, heights = zip(*seen, strict=True)
    assert steps == (0, 1, 2)
    assert rows == ([0, 1, 2], [0, 1], [0])
    assert actions == (None, [1.0, 1.0], [2.0])
    assert [height.tolist() for height in heights] == [[5.0, 9.0, 7.0], [4.0, 8.0], [2.0]]


def test_observer_is_told_rows_of_the_whole_batch_when_the_simulator_holds_few_at_once():
    seen = set()

    def observer(step, rows, actions, frame):
        seen.update(rows.tolist())

    run([(5, 2)] * 5, capacity=2, observer=observer)
    assert seen == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([2, 0]), np.array([True, False, True])])
def test_executions_are_selected_together(rows):
    executions = run([(5, 2), (-1, 4), (3, 3)])
    some = executions[rows]
    np.testing.assert_array_equal(some.returns, executions.returns[rows])
    np.testing.assert_array_equal(some.lengths, executions.lengths[rows])
    np.testing.assert_array_equal(some.states, executions.states[rows])
    np.testing.assert_array_equal(some.crashed, executions.crashed[rows])
    np.testing.assert_array_equal(some.verdicts.steps, executions.verdicts.steps[rows])
