"""MonitoredEnv: scores and alarms in `info`, and nothing else changed."""

from typing import Any

import gymnasium
import numpy as np
import pytest

from policyfuzz import MonitoredEnv
from policyfuzz.analysis.monitor_fitting import _transitions_of
from policyfuzz.core.activations import Activations
from policyfuzz.core.errors import UsageError
from policyfuzz.core.settings import DensitySettings
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.monitors.detectors import Linear
from policyfuzz.monitors.monitor import ACTIVATIONS, OBSERVATIONS, Monitor, MonitorFacts


def facts(given, threshold):
    return MonitorFacts("logistic", given, "toy", "a policy", "", threshold, 0.01, 10, 20)


def first_number(given=OBSERVATIONS, threshold=2.5, width=2):
    weights = np.zeros(width)
    weights[0] = 1.0
    return Monitor(facts(given, threshold), Linear(weights, np.zeros(1)))


class Counting(gymnasium.Env):
    """Observes the number of steps, up and down again."""

    observation_space: gymnasium.Space[Any] = gymnasium.spaces.Box(-10.0, 10.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.step_number = 0
        return np.array([0.0, 0.0], np.float32), {"own": 1}

    def step(self, action):
        self.step_number += 1
        value = min(self.step_number, 6 - self.step_number)
        return np.array([value, 0.0], np.float32), 1.0, self.step_number == 6, False, {"own": 2}


def test_score_and_alarm_are_in_info_beside_what_was_there():
    env = MonitoredEnv(Counting(), first_number())
    _, info = env.reset(seed=0)
    assert info == {"own": 1, "monitor_score": 0.0, "monitor_alarm": False}
    infos = [env.step(0)[4] for _ in range(6)]
    assert [one["monitor_score"] for one in infos] == [1, 2, 3, 2, 1, 1]
    assert [one["monitor_alarm"] for one in infos] == [False, False, True, True, True, True]
    assert infos[0]["own"] == 2


@pytest.mark.parametrize("is_truncated", [False, True])
def test_the_observation_after_the_last_action_is_not_judged(is_truncated):
    class Ends(Counting):
        def step(self, action):
            return np.array([9.0, 0.0], np.float32), 1.0, not is_truncated, is_truncated, {}

    env = MonitoredEnv(Ends(), first_number())
    env.reset()
    assert env.step(0)[4] == {"monitor_score": 0.0, "monitor_alarm": False}


def test_a_new_episode_has_no_alarm_yet():
    env = MonitoredEnv(Counting(), first_number())
    env.reset()
    for _ in range(6):
        env.step(0)
    assert env.reset()[1]["monitor_alarm"] is False


def test_transitions_are_judged_from_the_second_observation_on():
    density = SequenceDensity(DensitySettings(components=1))
    walks = np.random.default_rng(0).normal(size=(20, 5, 2)).cumsum(axis=1)
    density.learn(walks, np.full(20, 5), np.random.default_rng(0))
    monitor = Monitor(facts(OBSERVATIONS, 0.0), _transitions_of(density, np.zeros(2), np.eye(2)))
    env = MonitoredEnv(Counting(), monitor)
    assert env.reset()[1]["monitor_score"] == -np.inf
    score = env.step(0)[4]["monitor_score"]
    assert score == monitor.score([1.0, 0.0], [0.0, 0.0])
    assert env.reset()[1]["monitor_score"] == -np.inf


class Remembers:
    """A policy whose activations are how often it has acted in the episode."""

    def begin(self, count):
        self.acted = 0

    def act(self, observations, rows):
        self.acted += 1
        return np.zeros(len(rows), np.int64)

    def activations(self, observations, rows):
        return Activations.hidden([np.full((len(rows), 1), float(self.acted))])


def test_activations_come_from_the_policy_with_its_memory():
    env = MonitoredEnv(Counting(), first_number(ACTIVATIONS, width=1), Remembers())
    assert env.reset()[1]["monitor_score"] == 0.0
    assert [env.step(0)[4]["monitor_score"] for _ in range(3)] == [1.0, 2.0, 3.0]
    assert env.reset()[1]["monitor_score"] == 0.0


def test_the_policy_is_asked_once_for_each_observation_and_its_answer_is_there():
    class Once(Remembers):
        asked = 0

        def act_and_activations(self, observations, rows):
            self.asked += 1
            inside = self.activations(observations, rows)
            return np.array([self.asked % 2]), inside

        def act(self, observations, rows):
            raise AssertionError("a second pass")

    policy = Once()
    env = MonitoredEnv(Counting(), first_number(ACTIVATIONS, width=1), policy)
    env.reset()
    acted = []
    is_over = False
    while not is_over:
        acted.append(int(env.policy_action))
        is_over = env.step(env.policy_action)[2]
    assert acted == [1, 0, 1, 0, 1, 0]
    assert policy.asked == 6
    with pytest.raises(UsageError, match="no observation"):
        _ = env.policy_action


def test_a_monitor_of_observations_gives_the_action_too_if_there_is_a_policy():
    env = MonitoredEnv(Counting(), first_number(), Remembers())
    env.reset()
    assert env.policy_action == 0
    with pytest.raises(UsageError, match="given no policy"):
        _ = MonitoredEnv(Counting(), first_number()).policy_action


def test_activations_without_a_policy_are_refused():
    with pytest.raises(UsageError, match="given no policy"):
        MonitoredEnv(Counting(), first_number(ACTIVATIONS, width=1))


class Parts(Counting):
    observation_space: gymnasium.Space[Any] = gymnasium.spaces.Dict(
        {"a": gymnasium.spaces.Box(-10.0, 10.0, (1,)), "b": gymnasium.spaces.Discrete(3)}
    )

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        return {"a": observation[:1], "b": 1}, info


def test_observations_with_names_are_laid_out_as_for_the_policy():
    env = MonitoredEnv(Parts(), first_number())
    assert env.reset()[1]["monitor_score"] == 0.0
