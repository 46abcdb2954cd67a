"""A Gymnasium environment that says at every step how near its policy seems to a crash."""

from typing import Any

import gymnasium
import numpy as np

from policyfuzz.core.activations import act_and_activations, flattened
from policyfuzz.core.errors import UsageError
from policyfuzz.core.interfaces import Policy
from policyfuzz.environments.spaces import ActionReader, ObservationTable
from policyfuzz.monitors.monitor import ACTIVATIONS, Monitor
from policyfuzz.policies.loaded import LoadedPolicy


class MonitoredEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Puts `monitor_score` and `monitor_alarm` into `info`, of the observation that comes with it.

    `monitor_alarm` says if any score of the episode so far was above the threshold. A monitor of activations
    needs the `policy` that acts, as `load_policy` gives it or an object with begin, act and activations. The
    wrapper asks it once for every observation, and `policy_action` is what it answered: step with that, and
    the policy is not run a second time.

    The observation after the last action is not judged, and the last score stays: no decision follows it, and
    thresholds are calibrated on decisions.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        monitor: Monitor,
        policy: Policy | LoadedPolicy | None = None,
    ) -> None:
        super().__init__(env)
        self.monitor = monitor
        self._watch = monitor.watch()
        self._table = ObservationTable(env.observation_space)
        self._reader = ActionReader(env.action_space)
        self._policy = policy.make() if isinstance(policy, LoadedPolicy) else policy
        self._row = np.zeros(1, np.int64)
        self._actions: Any = None
        self._judgement: dict[str, Any] = {}
        if monitor.input == ACTIVATIONS and self._policy is None:
            raise UsageError(
                "the monitor looks at activations, and MonitoredEnv was given no policy",
                "MonitoredEnv(env, monitor, policy=...), or fit one to observations: monitor fit --input"
                " observations",
            )

    @property
    def policy_action(self) -> Any:
        """What the policy does about the last observation."""
        if self._policy is None:
            raise UsageError(
                "MonitoredEnv was given no policy, so it has no action", "MonitoredEnv(env, monitor, policy)"
            )
        if self._actions is None:
            raise UsageError("there is no observation to act on", "call reset first, and after an episode")
        return self._reader(self._actions, 1)[0]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._watch.begin()
        if self._policy is not None:
            self._policy.begin(1)
        self._judge(observation)
        return observation, {**info, **self._judgement}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            self._actions = None
        else:
            self._judge(observation)
        return observation, reward, terminated, truncated, {**info, **self._judgement}

    def _judge(self, observation: Any) -> None:
        table = self._table.empty(1)
        self._table.put(table, 0, observation)
        if self.monitor.input == ACTIVATIONS and self._policy is not None:
            self._actions, inside = act_and_activations(self._policy, table, self._row)
            given = inside.values
        else:
            given = flattened(table)
            if self._policy is not None:
                self._actions = self._policy.act(table, self._row)
        score = self._watch.score(given[0])
        self._judgement = {"monitor_score": score, "monitor_alarm": self._watch.has_alarm}
