"""Tells by info which agents of a particle world touch each other: the worlds themselves do not."""

from typing import Any

import numpy as np

#: The key of info under which each agent finds the number of others that it touches.
COLLISIONS = "collisions"


class CountsContacts:
    """A parallel environment of a particle world, with one more key in its infos."""

    def __init__(self, env: Any) -> None:
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, dict[Any, Any]]:
        """As the environment resets, infos completed."""
        observations, infos = self._env.reset(seed=seed, options=options)
        return observations, self._told(infos)

    def step(self, actions: dict[Any, Any]) -> tuple[Any, Any, Any, Any, dict[Any, Any]]:
        """As the environment steps, infos completed."""
        observations, rewards, terminations, truncations, infos = self._env.step(actions)
        return observations, rewards, terminations, truncations, self._told(infos)

    def _told(self, infos: dict[Any, Any]) -> dict[Any, Any]:
        contacts = _contacts(self._env.unwrapped.world)
        return {agent: {COLLISIONS: contacts.get(str(agent)), **info} for agent, info in infos.items()}


def _contacts(world: Any) -> dict[str, int]:
    """Agent to the number of other agents that it touches; of those that can collide."""
    solid = [agent for agent in world.agents if agent.collide]
    places = np.array([agent.state.p_pos for agent in solid]).reshape(-1, 2)
    sizes = np.array([agent.size for agent in solid])
    gaps = places[:, None] - places[None]
    touching = np.sqrt(np.square(gaps).sum(axis=2)) < sizes[:, None] + sizes[None]
    return {agent.name: int(count) - 1 for agent, count in zip(solid, touching.sum(axis=1), strict=True)}
