"""Particle worlds (MPE): where their agents start, and which of them touch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.environments.starts import FirstObservation, Reset, Values

#: The key of info under which each agent finds the number of others that it touches.
COLLISIONS = "collisions"
#: Packages whose `reset` we know; a user's own `reset` must not be overruled.
_PACKAGES = ("mpe2.", "pettingzoo.mpe.")
#: Resets whose positions bound the inputs, and the parts of one that bounds are rounded to.
_DRAWS, _GRID = 1000, 20
#: Resets in which to look whether agents see an entity.
_LOOKS = 20


@dataclass(frozen=True, slots=True)
class WorldStart:
    """Moves agents and landmarks after the environment's own reset, whose goals and colours remain."""

    entities: tuple[int, ...]  #: positions in world.entities of those that are moved
    label: str
    inputs: InputSpace
    own_ranges: Mapping[str, tuple[float, float]]

    way: ClassVar[str] = "state"
    oracle: ClassVar[str | None] = None
    seed_is_situation: ClassVar[bool] = True

    def begin(self, env: Any, reset: Reset, values: Values, seed: int) -> FirstObservation:
        first = reset(seed=seed)
        everything = env.world.entities
        for place, position in zip(self.entities, values.reshape(-1, 2), strict=True):
            everything[place].state.p_pos = position.copy()
            everything[place].state.p_vel = np.zeros(2)
        if hasattr(env, "original_cam_range"):  # else pictures draw things in the size of another start
            env.original_cam_range = max(np.abs(entity.state.p_pos).max() for entity in everything)
        return first  # nothing: the wrapper around this environment asks for observations after its reset

    def read(self, env: Any) -> NDArray[np.float64]:
        everything = env.world.entities
        return np.concatenate([everything[place].state.p_pos for place in self.entities])


def find_world_start(env: Any) -> WorldStart | None:
    """How to start `env`, the innermost environment, if it is such a world; None if it is not.

    Leaves it in need of a reset.
    """
    if not is_particle_world(env):
        return None
    drawn = np.stack([_drawn_places(env, seed) for seed in range(_DRAWS)])
    low, high = np.floor(drawn.min(axis=0) * _GRID) / _GRID, np.ceil(drawn.max(axis=0) * _GRID) / _GRID
    moved = tuple(place for place in _movable(env) if (drawn[:, place] != drawn[0, place]).any())
    if not moved:
        return None
    names = _names(env.world.entities)
    dimensions = tuple(
        Real(f"{names[place]}.{axis}", float(low[place, column]), float(high[place, column]))
        for place in moved
        for column, axis in enumerate("xy")
    )
    left = [name for place, name in enumerate(names) if place not in moved]
    label = "where agents and landmarks begin, at rest; all else, such as goals, comes from the seed"
    ranges = {
        f"{names[place]}.{axis}": (float(drawn[:, place, column].min()), float(drawn[:, place, column].max()))
        for place in moved
        for column, axis in enumerate("xy")
    }
    label += f", and so does the place of {', '.join(left)}" if left else ""
    return WorldStart(moved, label, InputSpace(dimensions, _apart(env.world, moved)), ranges)


def is_particle_world(env: Any) -> bool:
    """True if `env`, the innermost environment, is a known particle world in two dimensions."""
    return type(env).reset.__module__.startswith(_PACKAGES) and bool(env.world.dim_p == 2)


class CountsContacts:
    """A parallel environment of a particle world, with one more key in its infos."""

    def __init__(self, env: Any) -> None:
        self._env = env

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, dict[Any, Any]]:
        """As the environment resets, infos completed."""
        observations, infos = self._env.reset(seed=seed, options=options)
        return observations, self._with_contacts(infos)

    def step(self, actions: dict[Any, Any]) -> tuple[Any, Any, Any, Any, dict[Any, Any]]:
        """As the environment steps, infos completed."""
        observations, rewards, terminations, truncations, infos = self._env.step(actions)
        return observations, rewards, terminations, truncations, self._with_contacts(infos)

    def _with_contacts(self, infos: dict[Any, Any]) -> dict[Any, Any]:
        contacts = _contacts(self._env.unwrapped.world)
        return {agent: {COLLISIONS: contacts.get(str(agent)), **info} for agent, info in infos.items()}


def _drawn_places(env: Any, seed: int) -> NDArray[np.float64]:
    """(e, 2) where everything is after a reset of the world."""
    env.scenario.reset_world(env.world, np.random.default_rng(seed))
    return np.array([entity.state.p_pos for entity in env.world.entities])


def _movable(env: Any) -> list[int]:
    """Positions in world.entities of what can be moved, and makes a difference where it is."""
    world = env.world
    count = len(world.agents) if _remembers_places(env.scenario) else len(world.entities)
    return [
        place
        for place in range(count)
        if world.entities[place].collide or any(_is_seen(env, place, seed) for seed in range(_LOOKS))
    ]


def _is_seen(env: Any, place: int, seed: int) -> bool:
    """True where an agent sees a difference when an entity is moved."""
    _drawn_places(env, seed)
    before = [env.observe(agent) for agent in env.possible_agents]
    state = env.world.entities[place].state
    state.p_pos = state.p_pos + 0.125
    after = [env.observe(agent) for agent in env.possible_agents]
    return not all(map(np.array_equal, before, after))


def _remembers_places(scenario: Any) -> bool:
    """True where a scenario keeps what it made of the landmarks' positions, which ours would not fit."""
    kept = (value for value in vars(scenario).values() if isinstance(value, list | tuple | np.ndarray))
    return any(isinstance(part, np.ndarray | np.floating | float) for value in kept for part in value)


def _names(entities: list[Any]) -> list[str]:
    """A unique name for everything: agent_0, landmark_0."""
    names = [str(entity.name).replace(" ", "_") or "entity" for entity in entities]
    return [name if names.count(name) == 1 else f"{name}_{place}" for place, name in enumerate(names)]


def _apart(world: Any, moved: tuple[int, ...]) -> Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None:
    """(n, d) -> (n,) True where no agent begins inside another thing that it can bump into."""
    solid = [(column, world.entities[place]) for column, place in enumerate(moved)]
    agents = set(map(id, world.agents))
    pairs = [
        (first, second, one.size + other.size)
        for (first, one), (second, other) in combinations(solid, 2)
        if one.collide and other.collide and (id(one) in agents or id(other) in agents)
    ]
    if not pairs:
        return None
    firsts, seconds, distances = (np.array(column) for column in zip(*pairs, strict=True))

    def are_apart(inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        places = inputs.reshape(len(inputs), -1, 2)
        gaps = places[:, firsts] - places[:, seconds]
        return np.asarray((np.hypot(gaps[..., 0], gaps[..., 1]) >= distances).all(axis=1))

    return are_apart


def _contacts(world: Any) -> dict[str, int]:
    """Agent to the number of other agents that it touches; of those that can collide."""
    solid = [agent for agent in world.agents if agent.collide]
    places = np.array([agent.state.p_pos for agent in solid]).reshape(-1, 2)
    sizes = np.array([agent.size for agent in solid])
    gaps = places[:, None] - places[None]
    touching = np.sqrt(np.square(gaps).sum(axis=2)) < sizes[:, None] + sizes[None]
    return {agent.name: int(count) - 1 for agent, count in zip(solid, touching.sum(axis=1), strict=True)}
