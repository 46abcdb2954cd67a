"""The agents of a parallel environment, and arrays that hold something for each of them.

Both observations and actions of m episodes are structured arrays (m,) with two fields: `agents`, which has
one field for each agent, and `alive` (m, k), not zero for those of the k agents that take part.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import UsageError
from policyfuzz.simulators.gym.observations import ObservationTable, row_type


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
        """An array for the actions of `count` episodes in which nobody takes part."""
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


class JointObservations:
    """Observations of all agents of m episodes; those of agents that are not there are zero."""

    def __init__(self, agents: Agents) -> None:
        from gymnasium import spaces

        pairs = list(zip(agents.names, agents.observation_spaces, strict=True))
        self._names = dict(zip(agents.ids, agents.names, strict=True))
        self._columns = {agent: column for column, agent in enumerate(agents.ids)}
        self._tables = {name: ObservationTable(space) for name, space in pairs}
        joint = spaces.Dict({"agents": spaces.Dict(pairs), "alive": spaces.MultiBinary(len(agents))})
        self._whole = ObservationTable(joint)

    def empty(self, count: int) -> NDArray[Any]:
        return self._whole.empty(count)

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

    def states(self, table: NDArray[Any]) -> NDArray[np.float64]:
        return self._whole.states(table)

    def is_broken(self, table: NDArray[Any], may_be_infinite: bool) -> NDArray[np.bool_]:
        return self._whole.is_broken(table, may_be_infinite)

    def is_outside(self, table: NDArray[Any]) -> NDArray[np.bool_]:
        """(m,) True where what an agent that is alive sees is not in its space."""
        outside = [part.is_outside(table["agents"][name]) for name, part in self._tables.items()]
        return np.asarray((np.stack(outside, axis=1) & (table["alive"] != 0)).any(axis=1))
