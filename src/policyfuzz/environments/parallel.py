"""Parallel environments of PettingZoo, stepped in lock-step, and their agents.

Both observations and actions of m episodes are structured arrays (m,) with two fields: `agents`, which has
one field for each agent, and `alive` (m, k), not zero for those of the k agents that take part.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.interfaces import Frame
from policyfuzz.environments.simulator import ActionsReader, GymSimulator, RenderedGymSimulator
from policyfuzz.environments.spaces import (
    ObservationTable,
    StepTable,
    as_flag,
    as_number,
    as_reward,
    row_type,
)
from policyfuzz.environments.starts import Start

#: How the rewards of all agents become one; or the name of an agent, whose reward it then is.
REWARDS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "mean": lambda rewards: sum(rewards) / len(rewards),
    "min": min,
}
#: What is known of each agent without its saying so.
_OWN = ("reward", "terminated", "truncated")


@dataclass(frozen=True)
class Agents:
    """All agents that an environment may have, in its order."""

    ids: tuple[Any, ...]  #: what the environment calls them
    observation_spaces: tuple[Any, ...]
    action_spaces: tuple[Any, ...]

    @classmethod
    def of(cls, env: Any) -> "Agents":
        """The agents of `env`."""
        ids = tuple(getattr(env, "possible_agents", ()))
        if not ids:
            raise UsageError(
                f"{type(env.unwrapped).__name__} does not say which agents it has",
                hint="its attribute possible_agents lists all of them",
            )
        if len({str(agent) for agent in ids}) < len(ids):
            raise UsageError(f"two agents of {type(env.unwrapped).__name__} have one name: {ids}")
        return cls(
            ids,
            tuple(env.observation_space(agent) for agent in ids),
            tuple(env.action_space(agent) for agent in ids),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The same as text."""
        return tuple(map(str, self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    def empty_actions(self, count: int) -> NDArray[Any]:
        """An array for the actions of `count` episodes in which no agent takes part."""
        pairs = zip(self.names, self.action_spaces, strict=True)
        kind = np.dtype([(name, row_type(space)) for name, space in pairs])
        return np.zeros(count, np.dtype([("agents", kind), ("alive", np.bool_, (len(self),))]))

    def read_actions(self, actions: NDArray[Any], count: int) -> Sequence[dict[Any, Any]]:
        """What each of `count` environments is given: agent to action, for those that are alive."""
        columns = [list(actions["agents"][name]) for name in self.names]
        alive = actions["alive"].tolist()
        return [
            {
                agent: column[row]
                for agent, column, acts in zip(self.ids, columns, alive[row], strict=True)
                if acts
            }
            for row in range(count)
        ]


class JointObservations(ObservationTable):
    """Observations of all agents of m episodes; those of agents that are not there are zero."""

    def __init__(self, agents: Agents) -> None:
        from gymnasium import spaces

        pairs = list(zip(agents.names, agents.observation_spaces, strict=True))
        self._names = dict(zip(agents.ids, agents.names, strict=True))
        self._columns = {agent: column for column, agent in enumerate(agents.ids)}
        self._tables = {name: ObservationTable(space) for name, space in pairs}
        joint = spaces.Dict({"agents": spaces.Dict(pairs), "alive": spaces.MultiBinary(len(agents))})
        super().__init__(joint)

    def put(self, table: NDArray[Any], row: int, observation: Any) -> None:
        """Write `observation`, agent to what it sees, and note that these agents are alive."""
        parts = table["agents"]
        for agent, seen in observation.items():
            name = self._names.get(agent)
            if name is None:
                known = ", ".join(self._tables)
                raise ValueError(f"an observation is for agent {agent!r}; possible_agents are {known}")
            self._tables[name].put(parts[name], row, seen)
            table["alive"][row, self._columns[agent]] = 1

    def bury(self, table: NDArray[Any], row: int, agent: Any) -> None:
        """Note that `agent` will not act any more, though it saw how it ended."""
        if agent in self._columns:
            table["alive"][row, self._columns[agent]] = 0

    def is_outside(self, table: NDArray[Any]) -> NDArray[np.bool_]:
        """(m,) True where what an agent that is alive sees is not in its space."""
        outside = [part.is_outside(table["agents"][name]) for name, part in self._tables.items()]
        return np.asarray((np.stack(outside, axis=1) & (table["alive"] != 0)).any(axis=1))


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

    def _readers(self, env: Any) -> tuple[ObservationTable, ActionsReader]:
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
        self._put_signals(row, info, info_keys)

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
        terminated = {agent: as_flag(flag, f"terminated of {agent}") for agent, flag in terminated.items()}
        truncated = {agent: as_flag(flag, f"truncated of {agent}") for agent, flag in truncated.items()}
        gone = [agent for agent in observation if terminated.get(agent) or truncated.get(agent)]
        for agent in gone:
            self._joint.bury(self.observations, row, agent)
        if len(gone) == len(observation):
            is_cut = any(truncated.values())
            self.signals[row, :2] = any(terminated.values()) or not is_cut, is_cut
        self._put_signals(row, info, info_keys, reward=reward, terminated=terminated, truncated=truncated)

    def _combined(self, rewards: Mapping[Any, Any]) -> float:
        """The one reward of this step."""
        combine = REWARDS.get(self._reward)
        if combine is None:
            return next(
                (as_reward(value) for agent, value in rewards.items() if str(agent) == self._reward), 0.0
            )
        return combine([as_reward(value) for value in rewards.values()]) if rewards else 0.0

    def _put_signals(
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
