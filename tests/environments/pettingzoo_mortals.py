"""A parallel environment whose agents leave one by one, when the digits of its seed say so."""

import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper

#: A seed that ends in this makes trouble at step 2, of the kind that the environment was made for.
TROUBLE = 666


class MortalAgents(ParallelEnv):
    """Agent i terminates after as many steps as digit i of the seed says; 0 lives until the time limit."""

    metadata = {"render_modes": [], "name": "mortal_agents"}  # noqa: RUF012

    def __init__(self, trouble="none", limit=8):
        self.possible_agents = ["miner_0", "miner_1", "guard_0"]
        self.trouble, self.limit = trouble, limit
        self.render_mode = None
        self.acted = []  # the agents that were given an action, at each step

    def observation_space(self, agent):
        return Box(0.0, 8.0, (2,), np.float32)

    def action_space(self, agent):
        return Discrete(3)

    def reset(self, seed=None, options=None):
        self.seed, self.time, self.acted = seed, 0, []
        self.agents = self.possible_agents[:]
        self.lives = dict(zip(self.agents, map(int, f"{seed:03d}"[-3:]), strict=True))
        return self._seen(), {agent: {} for agent in self.agents}

    def step(self, actions):
        self.time += 1
        self.acted.append(sorted(actions))
        seen = self._seen()
        if self.seed % 1000 == TROUBLE and self.time == 2:
            seen = self._make_trouble(seen)
        rewards = {agent: self.possible_agents.index(agent) + 1.0 for agent in self.agents}
        dead = {agent: self.lives[agent] == self.time for agent in self.agents}
        cut = dict.fromkeys(self.agents, self.time == self.limit)
        infos = {agent: {"age": self.time * reward} for agent, reward in rewards.items()}
        self.agents = [agent for agent in self.agents if not dead[agent] and not cut[agent]]
        return seen, rewards, dead, cut, infos

    def _seen(self):
        return {agent: np.array([self.time, self.lives[agent]], np.float32) for agent in self.agents}

    def _make_trouble(self, seen):
        if self.trouble == "raise":
            raise RuntimeError("the mine collapsed")
        if self.trouble == "nan":
            return {**seen, "miner_1": np.array([np.nan, 0], np.float32)}
        if self.trouble == "stranger":
            return {**seen, "ghost_0": np.zeros(2, np.float32)}
        if self.trouble == "outside":
            return {**seen, "miner_1": np.array([self.time, 9], np.float32)}
        return seen


def parallel_env(**kwargs):
    return MortalAgents(**kwargs)


class Twice(BaseParallelWrapper):
    def step(self, actions):
        seen, rewards, *rest = super().step(actions)
        return (seen, {agent: 2 * reward for agent, reward in rewards.items()}, *rest)


def twice_the_reward(env):
    return Twice(env)
