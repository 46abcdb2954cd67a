"""Which layouts of agents and landmarks are valid, how they are drawn, and which can be solved.

A start can be solved if a scripted controller solves it without a single contact. The controller knows the
whole world. It assigns each agent a landmark, sends it there and lets it pass others on one side.
Where landmarks are so close that agents on top of them would touch, it aims beside them, still near enough
to cover them.
"""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.compiled import kernel
from policyfuzz.targets.coopnavi import physics
from policyfuzz.targets.coopnavi.physics import AGENTS, CONTACT, COVERED, DAMPING, PUSH, STEP_SECONDS

#: Least distance between agents and between landmarks at the start, as in the published experiments.
AGENTS_APART = 0.33
LANDMARKS_APART = 0.15

#: Who goes to which landmark.
ASSIGNMENTS = np.array([[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
#: Speeds at which the agents travel, tried in this order; 2 is the fastest they can move.
SPEEDS = np.array([1.2, 1.8])
#: Share of the way to its goal that an agent would like to make in a second.
_APPROACH = 4.0
#: Agents close in on each other at no more than this share of the gap between them in a second.
_CAUTION = 5.0
#: Of the gap, this much is not used.
_CLEARANCE = 0.003
#: Speed to the side for each unit of speed that caution takes away.
_SIDESTEP = 1.0
#: The strongest force it uses, as a share of what an action can give: weights of a softmax are never zero.
_STRENGTH = 0.98
#: Distance that goals keep from each other.
_GOALS_APART = CONTACT + 0.01
#: Goals are at most this far from their landmarks.
_GOAL_REACH = 0.9 * COVERED
_RELAXATIONS = 200
#: Agents this close to their goals cover their landmarks.
_THERE = 0.1 * COVERED / np.sqrt(2)
#: Agents that are there, and this slow, will stay.
_SLOW = 1e-3


def closest_pair(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) least distance between any two of the three points in each row of `points` (n, 6)."""
    xy = points.reshape(-1, AGENTS, 2)
    apart = xy - np.roll(xy, 1, axis=1)
    return np.asarray(np.sqrt((apart**2).sum(axis=2)).min(axis=1))


def is_valid(inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where the agents, and the landmarks, are far enough apart; inputs (n, 12)."""
    agents, landmarks = inputs[:, :6], inputs[:, 6:]
    return (closest_pair(agents) >= AGENTS_APART) & (closest_pair(landmarks) >= LANDMARKS_APART)


def sample(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """(count, 12) valid starts, uniform in the square."""
    groups = [_spread_points(rng, count, apart) for apart in (AGENTS_APART, LANDMARKS_APART)]
    return np.hstack(groups)


def _spread_points(rng: np.random.Generator, count: int, apart: float) -> NDArray[np.float64]:
    """(count, 6) three points in the square, drawn again until they are `apart` from each other."""
    points = np.empty((count, 2 * AGENTS))
    missing = np.arange(count)
    while len(missing):
        points[missing] = rng.uniform(-1.0, 1.0, (len(missing), 2 * AGENTS))
        missing = missing[closest_pair(points[missing]) < apart]
    return points


def is_solvable(inputs: NDArray[np.float64], horizon: int) -> NDArray[np.bool_]:
    """(n,) True where the controller covers all landmarks within `horizon` steps, and no agents ever touch.

    It keeps them covered to the end.
    """
    solved = np.zeros(len(inputs), np.bool_)
    _solve(physics.start(inputs), horizon, solved)
    return solved


@kernel
def _solve(worlds: NDArray[np.float64], horizon: int, solved: NDArray[np.bool_]) -> None:
    goals, costs = np.empty(2 * AGENTS), np.empty(len(ASSIGNMENTS))
    for i in range(worlds.shape[0]):
        if not place_goals(worlds[i, 12:], goals):
            continue
        for k in range(len(ASSIGNMENTS)):
            costs[k] = _way(worlds[i], goals, ASSIGNMENTS[k])
        for k in np.argsort(costs):
            for speed in SPEEDS:
                solved[i] = solved[i] or _travel(worlds[i].copy(), goals, ASSIGNMENTS[k], speed, horizon)


@kernel
def place_goals(landmarks: NDArray[np.float64], goals: NDArray[np.float64]) -> bool:
    """Set `goals` (6,) to the `landmarks` (6,) pushed apart; False where they end too far from those."""
    goals[:] = landmarks
    for _ in range(_RELAXATIONS):
        is_done = True
        for i in range(AGENTS):
            for j in range(i + 1, AGENTS):
                east, north = goals[2 * i] - goals[2 * j], goals[2 * i + 1] - goals[2 * j + 1]
                distance = np.sqrt(east * east + north * north)
                if distance < _GOALS_APART:
                    is_done = False
                    # a little too far, so that this ends
                    share = (1.001 * _GOALS_APART - distance) / (2 * distance)
                    goals[2 * i] += share * east
                    goals[2 * i + 1] += share * north
                    goals[2 * j] -= share * east
                    goals[2 * j + 1] -= share * north
        if is_done:
            break
    for k in range(AGENTS):
        east, north = goals[2 * k] - landmarks[2 * k], goals[2 * k + 1] - landmarks[2 * k + 1]
        is_done = is_done and np.sqrt(east * east + north * north) <= _GOAL_REACH
    return is_done


@kernel
def _way(world: NDArray[np.float64], goals: NDArray[np.float64], assignment: NDArray[np.int64]) -> float:
    """Sum of the squared distances to go."""
    total = 0.0
    for agent in range(AGENTS):
        for axis in range(2):
            total += (goals[2 * assignment[agent] + axis] - world[2 * agent + axis]) ** 2
    return total


@kernel
def _travel(
    world: NDArray[np.float64],
    goals: NDArray[np.float64],
    assignment: NDArray[np.int64],
    speed: float,
    horizon: int,
) -> bool:
    """True where all agents come to their goals, stay there and never touch; moves the `world` (18,)."""
    forces = np.empty(2 * AGENTS)
    for _ in range(horizon):
        steer(world, goals, assignment, speed, forces)
        physics.move(world, forces, False)
        if physics.colliding_pairs(world) > 0:
            return False
        if np.abs(world[physics.VELOCITIES]).max() < _SLOW and _is_there(world, goals, assignment):
            return True
    return _is_there(world, goals, assignment)


@kernel
def steer(
    world: NDArray[np.float64],
    goals: NDArray[np.float64],
    assignment: NDArray[np.int64],
    speed: float,
    forces: NDArray[np.float64],
) -> None:
    """Write the `forces` (6,) that bring the agents nearest to the velocities they would like to have."""
    for agent in range(AGENTS):
        east = _APPROACH * (goals[2 * assignment[agent]] - world[2 * agent])
        north = _APPROACH * (goals[2 * assignment[agent] + 1] - world[2 * agent + 1])
        factor = min(1.0, speed / max(np.sqrt(east * east + north * north), 1e-12))
        east, north = factor * east, factor * north
        for other in range(AGENTS):
            if other == agent:
                continue
            apart_x = world[2 * agent] - world[2 * other]
            apart_y = world[2 * agent + 1] - world[2 * other + 1]
            distance = np.sqrt(apart_x * apart_x + apart_y * apart_y)
            closing = -(east * apart_x + north * apart_y) / distance
            excess = closing - _CAUTION * max(distance - CONTACT - _CLEARANCE, 0.0)
            if excess > 0:
                east += excess * (apart_x - _SIDESTEP * apart_y) / distance
                north += excess * (apart_y + _SIDESTEP * apart_x) / distance
        _push(world, agent, east, north, forces)


@kernel
def _push(
    world: NDArray[np.float64], agent: int, east: float, north: float, forces: NDArray[np.float64]
) -> None:
    """Write the force of `agent` that brings it nearest to the velocity (east, north) within a step."""
    x = (east - (1 - DAMPING) * world[6 + 2 * agent]) / STEP_SECONDS
    y = (north - (1 - DAMPING) * world[7 + 2 * agent]) / STEP_SECONDS
    factor = min(1.0, _STRENGTH * PUSH / max(abs(x) + abs(y), 1e-12))
    forces[2 * agent], forces[2 * agent + 1] = factor * x, factor * y


@kernel
def _is_there(world: NDArray[np.float64], goals: NDArray[np.float64], assignment: NDArray[np.int64]) -> bool:
    for agent in range(AGENTS):
        for axis in range(2):
            if abs(goals[2 * assignment[agent] + axis] - world[2 * agent + axis]) > _THERE:
                return False
    return True
