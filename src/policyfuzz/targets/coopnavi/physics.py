"""The particle world of cooperative navigation (MPE simple_spread): how agents move, and what they see.

A world is a row of 18 numbers: positions of the three agents, their velocities, positions of the three
landmarks, each as x and y. Agents are discs that push each other apart; landmarks are points on the floor.
"""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.compiled import kernel

AGENTS = 3
STEP_SECONDS = 0.1
DAMPING = 0.25
AGENT_RADIUS = 0.15
LANDMARK_RADIUS = 0.05
#: Agents closer than this collide.
CONTACT = 2 * AGENT_RADIUS
#: Force of an action that puts all its weight on one direction.
PUSH = 5.0
#: A landmark with an agent closer than this is covered.
COVERED = 0.1
#: An agent closer than this to some landmark has arrived: their discs overlap.
ARRIVED = AGENT_RADIUS + LANDMARK_RADIUS

#: Columns of a world (n, 18).
POSITIONS, VELOCITIES, LANDMARKS = slice(0, 6), slice(6, 12), slice(12, 18)
_V, _L = 6, 12

OBSERVED = 18  #: numbers that an agent sees
ACTIONS = 5  #: weights of an action: rest, right, left, up, down
#: What the density sees: all that the first agent sees, without the four numbers that are always zero.
STATE = 14

_STIFFNESS = 100.0
_MARGIN = 1e-3
#: Contact forces from exp(-40) downwards are lost in the rounding of any velocity.
_NEGLIGIBLE = -40.0
#: Gap between two agents at which a near miss counts e times less.
_NEAR = 0.1
#: A colliding pair costs each of its two agents one.
_COLLISION_COST = 2.0


def start(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Worlds (n, 18) at rest, from inputs (n, 12): agents, then landmarks."""
    worlds = np.zeros((len(inputs), 18))
    worlds[:, POSITIONS] = inputs[:, :6]
    worlds[:, LANDMARKS] = inputs[:, 6:]
    return worlds


@kernel
def move(world: NDArray[np.float64], forces: NDArray[np.float64], position_first: bool) -> None:
    """Advance one `world` (18,) in place under `forces` (6,) of the agents' own; overwrites them.

    The original environment moves agents with their new velocity; its successor mpe2 with the old one
    (`position_first`).
    """
    for i in range(AGENTS):
        for j in range(i + 1, AGENTS):
            east, north = world[2 * i] - world[2 * j], world[2 * i + 1] - world[2 * j + 1]
            distance = np.sqrt(east * east + north * north)
            depth = -(distance - CONTACT) / _MARGIN
            if depth < _NEGLIGIBLE or distance == 0.0:
                continue
            depth = max(depth, 0.0) + np.log1p(np.exp(-abs(depth)))
            push = _STIFFNESS * _MARGIN * depth / distance
            forces[2 * i] += push * east
            forces[2 * i + 1] += push * north
            forces[2 * j] -= push * east
            forces[2 * j + 1] -= push * north
    for k in range(2 * AGENTS):
        velocity = world[_V + k] * (1 - DAMPING) + forces[k] * STEP_SECONDS
        world[k] += (world[_V + k] if position_first else velocity) * STEP_SECONDS
        world[_V + k] = velocity


@kernel
def advance(
    worlds: NDArray[np.float64], rows: NDArray[np.int64], actions: NDArray[np.float64], position_first: bool
) -> None:
    """Advance worlds `rows` (m,) in place by one step under `actions` (m, 3, 5)."""
    forces = np.empty(2 * AGENTS)
    for i in range(rows.shape[0]):
        for agent in range(AGENTS):
            action = actions[i, agent]
            forces[2 * agent] = PUSH * (action[1] - action[2])
            forces[2 * agent + 1] = PUSH * (action[3] - action[4])
        move(worlds[rows[i]], forces, position_first)


@kernel
def observe(worlds: NDArray[np.float64], rows: NDArray[np.int64], observations: NDArray[np.float64]) -> None:
    """Write what the agents of worlds `rows` (m,) see into `observations` (m, 3, 18).

    Own velocity, own position, offsets of the landmarks, offsets of the other agents, and four zeros where
    the original environment has messages that are never sent.
    """
    for i in range(rows.shape[0]):
        world = worlds[rows[i]]
        for agent in range(AGENTS):
            seen = observations[i, agent]
            for axis in range(2):
                own = world[2 * agent + axis]
                seen[axis] = world[_V + 2 * agent + axis]
                seen[2 + axis] = own
                for landmark in range(AGENTS):
                    seen[4 + 2 * landmark + axis] = world[_L + 2 * landmark + axis] - own
                column = 10
                for other in range(AGENTS):
                    if other != agent:
                        seen[column + axis] = world[2 * other + axis] - own
                        column += 2
            seen[STATE:] = 0.0


@kernel
def judge(
    worlds: NDArray[np.float64],
    rows: NDArray[np.int64],
    rewards: NDArray[np.float64],
    colliding: NDArray[np.int64],
    covered: NDArray[np.int64],
    arrived: NDArray[np.int64],
) -> None:
    """Write rewards of worlds `rows` (m,), and how many pairs collide, landmarks are covered, agents arrived.

    The reward is minus the distances of the landmarks to their nearest agents, and minus two for each
    colliding pair.
    """
    for i in range(rows.shape[0]):
        world = worlds[rows[i]]
        colliding[i] = colliding_pairs(world)
        covered[i] = 0
        reward = -_COLLISION_COST * colliding[i]
        near = 0  # one bit for each agent that has arrived
        for landmark in range(AGENTS):
            nearest = np.inf
            for agent in range(AGENTS):
                distance = np.hypot(
                    world[2 * agent] - world[_L + 2 * landmark],
                    world[2 * agent + 1] - world[_L + 2 * landmark + 1],
                )
                nearest = min(nearest, distance)
                if distance < ARRIVED:
                    near |= 1 << agent
            covered[i] += nearest < COVERED
            reward -= nearest
        rewards[i] = reward
        arrived[i] = (near & 1) + (near >> 1 & 1) + (near >> 2)


@kernel
def near_misses(worlds: NDArray[np.float64], rows: NDArray[np.int64], nearness: NDArray[np.float64]) -> None:
    """Write how near the pairs of worlds `rows` (m,) that do not touch are: 1 for each that is about to."""
    for i in range(rows.shape[0]):
        world = worlds[rows[i]]
        nearness[i] = 0.0
        for first in range(AGENTS):
            for second in range(first + 1, AGENTS):
                east = world[2 * first] - world[2 * second]
                north = world[2 * first + 1] - world[2 * second + 1]
                gap = np.sqrt(east * east + north * north) - CONTACT
                if gap >= 0.0:
                    nearness[i] += np.exp(-gap / _NEAR)


@kernel
def colliding_pairs(world: NDArray[np.float64]) -> int:
    """Pairs of agents of one `world` (18,) that touch."""
    pairs = 0
    for i in range(AGENTS):
        for j in range(i + 1, AGENTS):
            east, north = world[2 * i] - world[2 * j], world[2 * i + 1] - world[2 * j + 1]
            pairs += np.sqrt(east * east + north * north) < CONTACT
    return pairs
