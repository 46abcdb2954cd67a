"""A Gymnasium environment that says at every step how near its policy seems to a crash."""

from typing import Any

import gymnasium
import numpy as np

from policyfuzz.core.activations import activations_of, flattened
from policyfuzz.core.errors import UsageError
from policyfuzz.core.interfaces import Policy
from policyfuzz.environments.spaces import ObservationTable
from policyfuzz.monitors.monitor import ACTIVATIONS, Monitor
from policyfuzz.policies.loaded import LoadedPolicy


class MonitoredEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Puts `monitor_score` and `monitor_alarm` into `info`, of the observation that comes with it.

    `monitor_alarm` says if any score of the episode so far was above the threshold. A monitor of activations
    needs the `policy` that acts, as `load_policy` gives it or an object with begin, act and activations. It
    is asked a second time at every step, so that what it remembers is right.

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
        self._table = ObservationTable(env.observation_space)
        self._policy = policy.make() if isinstance(policy, LoadedPolicy) else policy
        self._row = np.zeros(1, np.int64)
        self._previous: Any = None
        self._has_alarm = False
        self._judgement: dict[str, Any] = {}
        if monitor.input == ACTIVATIONS and self._policy is None:
            raise UsageError(
                "the monitor looks at activations, and MonitoredEnv was given no policy",
                "MonitoredEnv(env, monitor, policy=...), or fit one to observations: monitor fit --input"
                " observations",
            )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        observation, info = self.env.reset(seed=seed, options=options)
        self._previous, self._has_alarm = None, False
        if self._policy is not None:
            self._policy.begin(1)
        self._judgement = self._judged(observation)
        return observation, {**info, **self._judgement}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not (terminated or truncated):
            self._judgement = self._judged(observation)
        return observation, reward, terminated, truncated, {**info, **self._judgement}

    def _judged(self, observation: Any) -> dict[str, Any]:
        table = self._table.empty(1)
        self._table.put(table, 0, observation)
        if self.monitor.input == ACTIVATIONS and self._policy is not None:
            given = activations_of(self._policy, table, self._row).values
            self._policy.act(table, self._row)  # what it remembers goes on
        else:
            given = flattened(table)
        score = float(self.monitor.score(given, self._previous)[0])
        self._previous = given
        self._has_alarm = self._has_alarm or bool(self.monitor.is_alarm(score))
        return {"monitor_score": score, "monitor_alarm": self._has_alarm}
