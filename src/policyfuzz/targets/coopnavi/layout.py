"""Where agents and landmarks may start, and how such starts are drawn."""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.targets.coopnavi.physics import AGENTS

#: Least distance between agents and between landmarks at the start, as in the published experiments.
AGENTS_APART = 0.33
LANDMARKS_APART = 0.15


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
