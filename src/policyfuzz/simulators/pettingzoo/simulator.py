"""PettingZoo parallel environments in lock-step: one object for each episode, all agents at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.simulators.gym.observations import Observations
from policyfuzz.simulators.gym.simulator import (
    ActionsReader,
    GymSimulator,
    RenderedGymSimulator,
    StepTable,
    as_number,
)
from policyfuzz.simulators.gym.start import Start
from policyfuzz.simulators.pettingzoo.agents import Agents, JointObservations
from policyfuzz.simulators.protocol import Frame

#: How the rewards of all agents become one; or the name of an agent, whose reward it then is.
REWARDS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": lambda rewards: sum(rewards) / len(rewards),
    "min": min,
}

#: What is known of each agent without its saying so.
_OWN = ("reward", "terminated", "truncated")


class ParallelSimulator(GymSimulator):
    """n parallel environments, reset by `start` and stepped together.

    An episode ends when no agent is left. Its signal `terminated` is 1 at that step if any of the last
    agents was terminated, and `truncated` if any was cut.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        start: Start,
        info_keys: Sequence[str] = (),
        *,
        reward: str = "sum",
        cut_after: int | None = None,
        **settings: Any,
    ) -> None:
        """`reward` is one of `REWARDS` or an agent; after `cut_after` steps an episode counts as truncated.

        The rest is as for `GymSimulator`. A key of info is KEY, of which the highest value of all agents
        counts, or AGENT.KEY; reward, terminated and truncated of an agent count as keys as well.
        """
        self._reward, self._cut_after = reward, cut_after
        super().__init__(make, start, info_keys, **settings)

    def _readers(self, env: Any) -> tuple[Observations, ActionsReader]:
        self._agents = Agents.of(env)
        self._joint = JointObservations(self._agents)
        return self._joint, self._agents.read_actions

    def _table(self, count: int) -> StepTable:
        return _JointStepTable(count, self._joint, self.signals, self._agents, self._reward)

    def _frame(self, table: StepTable, rows: NDArray[np.int64]) -> Frame:
        if self._time == self._cut_after:
            table.signals[~table.signals[:, :2].any(axis=1), 1] = 1.0
        return super()._frame(table, rows)


class RenderedParallelSimulator(ParallelSimulator, RenderedGymSimulator):
    """Parallel environments that were made with pictures."""


class _JointStepTable(StepTable):
    """What m parallel environments gave in one step; all that is given has one entry for each agent."""

    def __init__(
        self, count: int, observations: JointObservations, signals: Sequence[str], agents: Agents, reward: str
    ) -> None:
        super().__init__(count, observations, signals)
        self._joint, self._agents, self._reward = observations, agents, reward

    def begin(self, row: int, observation: Any, info: dict[str, Any], info_keys: Sequence[str]) -> None:
        self._joint.put(self.observations, row, observation)
        if not observation:
            raise ValueError("the reset gave no observation, so there is no agent to act")
        self._tell(row, info, info_keys)

    def put(
        self,
        row: int,
        observation: Any,
        reward: Any,
        terminated: Any,
        truncated: Any,
        info: dict[str, Any],
        info_keys: Sequence[str],
    ) -> None:
        self._joint.put(self.observations, row, observation)
        self.rewards[row] = self._combined(reward)
        gone = [agent for agent in observation if terminated.get(agent) or truncated.get(agent)]
        for agent in gone:
            self._joint.bury(self.observations, row, agent)
        if len(gone) == len(observation):
            is_cut = any(truncated.values())
            self.signals[row, :2] = any(terminated.values()) or not is_cut, is_cut
        self._tell(row, info, info_keys, reward=reward, terminated=terminated, truncated=truncated)

    def _combined(self, rewards: Mapping[Any, Any]) -> float:
        """The one reward of this step."""
        combine = REWARDS.get(self._reward)
        if combine is None:
            return next((float(value) for agent, value in rewards.items() if str(agent) == self._reward), 0.0)
        return combine([float(value) for value in rewards.values()]) if rewards else 0.0

    def _tell(
        self, row: int, info: Mapping[Any, Any], info_keys: Sequence[str], **own: Mapping[Any, Any]
    ) -> None:
        """Write the values of `info_keys`, found in `info` of each agent or in what is its `own`."""
        for column, key in enumerate(info_keys, start=3):
            of_one = next((agent for agent in self._agents.ids if key.startswith(f"{agent}.")), None)
            key = key if of_one is None else key.removeprefix(f"{of_one}.")
            agents = self._agents.ids if of_one is None else (of_one,)
            values = [as_number(_known(info, own, agent, key)) for agent in agents]
            self.signals[row, column] = max((one for one in values if one == one), default=float("nan"))


def _known(info: Mapping[Any, Any], own: Mapping[str, Mapping[Any, Any]], agent: Any, key: str) -> Any:
    """What `agent` says about `key`, None where it says nothing."""
    said = (info.get(agent) or {}).get(key)
    # who is not there any more, or has not begun yet, has no reward and ends nothing
    return own.get(key, {}).get(agent, 0.0) if said is None and key in _OWN else said
