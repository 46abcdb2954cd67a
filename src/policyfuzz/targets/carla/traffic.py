"""Where vehicles may start, and the noise that mutation puts on them.

A mutant is valid only if every car is. With noise on all coordinates of twenty cars hardly any mutant
would be, so each coordinate changes with a small chance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import Angle, Choice, Dimension, InputSpace, Real, wrap_angle
from policyfuzz.targets.carla.roads import SPOT_METRES, TURNS, RoadMap

Column = NDArray[np.float64]
#: Half length and half width of the ground that a car needs to itself, in metres: the car of the target
#: (4.8 by 2.2 m) and a little air.
HALF_LENGTH, HALF_WIDTH = 2.6, 1.25
#: Columns of an input before those of the other vehicles: ego x, y, yaw, and the preferred turn.
EGO_COLUMNS = 4
#: Standard deviation of the noise on positions and on yaw, as in the paper.
_SPREAD_METRES, _SPREAD_YAW = 1.0, np.radians(1.0)
#: Coordinates that a mutation changes on average, however many cars there are.
_CHANGES = 6.0
#: A car may stand askew on its lane by this much.
_MAX_SKEW = np.radians(30.0)
#: Vehicles beyond this distance from the ego vehicle are placed only where those nearer leave no room:
#: in ten seconds of town traffic nothing from further away comes near.
_NEAR_METRES = 100.0
#: Samples are moved off the spots by up to this much along and across the lane, and turned.
_JITTER = np.array([SPOT_METRES / 2, 0.25, np.radians(2.0)])
#: Times that placing all cars is begun anew before the town is called full.
_PLACEMENTS = 20


def input_space(roads: RoadMap, vehicles: int) -> InputSpace:
    """Poses of the ego vehicle and of `vehicles` others on the lanes of `roads`."""
    low, high = roads.spots[:, :2].min(axis=0) - 5.0, roads.spots[:, :2].max(axis=0) + 5.0
    chance = min(1.0, _CHANGES / (3 * (vehicles + 1)))
    names = ["ego", *(f"car{number}" for number in range(1, vehicles + 1))]
    poses: list[tuple[Dimension, ...]] = [
        (
            SparseReal(f"{name}_x", low[0], high[0], unit="m", spread=_SPREAD_METRES, chance=chance),
            SparseReal(f"{name}_y", low[1], high[1], unit="m", spread=_SPREAD_METRES, chance=chance),
            SparseAngle(f"{name}_yaw", spread=_SPREAD_YAW, chance=chance),
        )
        for name in names
    ]
    ego, *others = poses
    return InputSpace(
        dimensions=(*ego, Choice("turn", TURNS), *(dimension for pose in others for dimension in pose)),
        constraint=lambda inputs: is_valid(roads, inputs),
        sampler=lambda rng, count: np.array([sample(roads, vehicles, rng) for _ in range(count)]),
    )


def poses_of(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 1 + vehicles, 3) x, y, yaw of all cars of `inputs` (n, d), the ego vehicle first."""
    without_turn = np.delete(inputs, EGO_COLUMNS - 1, axis=1)
    return without_turn.reshape(len(inputs), -1, 3)


def is_valid(roads: RoadMap, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where all cars are apart, on a driving lane outside junctions, and roughly along it."""
    poses = poses_of(inputs)
    valid = all_apart(poses)
    for row in np.flatnonzero(valid):
        skew = poses[row, :, 2] - roads.lane_headings(poses[row, :, :2])
        valid[row] = (np.cos(skew) >= np.cos(_MAX_SKEW)).all()  # NaN is no lane, and compares False
    return valid


def sample(roads: RoadMap, vehicles: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(d,) one input: the ego vehicle anywhere, the others near it, one after another where there is room."""
    for _ in range(_PLACEMENTS):
        poses = _place(roads, vehicles, rng)
        if len(poses) == vehicles + 1:
            return np.concatenate([poses[0], [rng.integers(len(TURNS))], poses[1:].ravel()])
    raise UsageError(
        f"the town has no room for {vehicles} vehicles beside the ego vehicle: {len(poses) - 1} found some",
        hint="ask for fewer with carla:vehicles=N, or for a larger town",
    )


def _place(roads: RoadMap, vehicles: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(k, 3) poses of cars that are apart, k at most `vehicles` + 1."""
    spots = _moved(roads.spots[rng.permutation(len(roads.spots))], rng)
    is_far = np.hypot(*(spots[:, :2] - spots[0, :2]).T) > _NEAR_METRES
    placed = np.empty((0, 3))
    for spot in spots[np.argsort(is_far, kind="stable")]:
        if not overlap(placed, spot).any():
            placed = np.vstack([placed, spot])
            if len(placed) == vehicles + 1:
                break
    return placed


def _moved(spots: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """`spots` (k, 3) moved a little along and across their lane, and turned."""
    along, across, turn = (rng.uniform(-1.0, 1.0, spots.shape) * _JITTER).T
    x, y, yaw = spots.T
    cosine, sine = np.cos(yaw), np.sin(yaw)
    return np.column_stack(
        [x + along * cosine - across * sine, y + along * sine + across * cosine, wrap_angle(yaw + turn)]
    )


def all_apart(poses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where no two of the k cars of a row of `poses` (n, k, 3) overlap."""
    one, other = np.triu_indices(poses.shape[1], 1)
    return np.asarray(~overlap(poses[:, one], poses[:, other]).any(axis=1))


def overlap(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(...) True where cars at poses `first` and `second` (..., 3) (x, y, yaw in radians) overlap.

    Two rectangles are apart exactly where one of their four sides has the other rectangle beyond it.
    """
    offset = second[..., :2] - first[..., :2]
    turn = second[..., 2] - first[..., 2]
    cosine, sine = np.abs(np.cos(turn)), np.abs(np.sin(turn))
    reach_along = HALF_LENGTH + HALF_LENGTH * cosine + HALF_WIDTH * sine
    reach_across = HALF_WIDTH + HALF_LENGTH * sine + HALF_WIDTH * cosine
    touching = np.ones(np.broadcast_shapes(first.shape, second.shape)[:-1], np.bool_)
    for yaw in (first[..., 2], second[..., 2]):
        along = offset[..., 0] * np.cos(yaw) + offset[..., 1] * np.sin(yaw)
        across = offset[..., 1] * np.cos(yaw) - offset[..., 0] * np.sin(yaw)
        touching &= (np.abs(along) <= reach_along) & (np.abs(across) <= reach_across)
    return touching


@dataclass(frozen=True, slots=True)
class SparseReal(Real):
    """A number that changes with probability `chance`, by normal noise of deviation `spread`."""

    spread: float = 1.0
    chance: float = 1.0

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        return values + _sparse_noise(len(values), self.spread, self.chance, rng)


@dataclass(frozen=True, slots=True)
class SparseAngle(Angle):
    """A direction that changes with probability `chance`, by normal noise of deviation `spread`."""

    spread: float = 1.0
    chance: float = 1.0

    def perturb(self, values: Column, rng: np.random.Generator) -> Column:
        return wrap_angle(values + _sparse_noise(len(values), self.spread, self.chance, rng))


def _sparse_noise(count: int, spread: float, chance: float, rng: np.random.Generator) -> Column:
    """(count,) normal noise with standard deviation `spread`, zero but for a share of `chance`."""
    return np.where(rng.random(count) < chance, rng.normal(0.0, spread, count), 0.0)
