"""One policy for all agents, made of one or more that each act for some of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.policies.protocol import Policy
from policyfuzz.simulators.gym.actions import ActionReader
from policyfuzz.simulators.pettingzoo.agents import Agents


class JointPolicy:
    """Asks each policy once a step, for all episodes and all of its agents that are alive.

    For a policy of k agents, agent i of episode n is row k · n + i, so it remembers something about each.
    """

    def __init__(self, agents: Agents, parts: Sequence[tuple[Policy, tuple[int, ...]]]) -> None:
        """`parts` are policies, and the positions in `agents` of those that they act for."""
        self._agents = agents
        self._parts = [
            (policy, np.array(columns), ActionReader(agents.action_spaces[columns[0]]))
            for policy, columns in parts
        ]

    def begin(self, count: int) -> None:
        for policy, columns, _ in self._parts:
            policy.begin(count * len(columns))

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        actions = self._agents.empty_actions(len(rows))
        alive = actions["alive"] = observations["alive"] != 0
        seen, done = observations["agents"], [actions["agents"][name] for name in self._agents.names]
        for policy, columns, read in self._parts:
            acting = alive[:, columns]
            if not acting.any():
                continue
            views = np.stack([seen[self._agents.names[column]] for column in columns], axis=1)[acting]
            ids = (rows[:, None] * len(columns) + np.arange(len(columns)))[acting]
            chosen = read(policy.act(views, ids), len(ids))
            for episode, place, action in zip(
                *map(np.ndarray.tolist, np.nonzero(acting)), chosen, strict=True
            ):
                done[columns[place]][episode] = action
        return actions
