"""What an input means: where the ego vehicle and the others start on a road, and which starts are fair.

Metres, seconds, radians; offsets are to the right of the lane's centre, angles counter-clockwise.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import Choice, Dimension, InputSpace, Real
from policyfuzz.targets.driving.roads import ROADS

#: Vehicles besides the ego vehicle.
OTHERS = 6
VEHICLE_LENGTH, VEHICLE_WIDTH = 4.515, 1.852
#: (4, 2) corners of a vehicle ahead of and to the left of its centre, counter-clockwise.
_CORNERS = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]]) * [
    VEHICLE_LENGTH / 2,
    VEHICLE_WIDTH / 2,
]
#: Metres along its lane at which the ego vehicle starts.
EGO_START = 35.0

LANE_NAMES = ("left", "middle", "right")
AHEAD = (-25.0, 80.0)
OFFSET = (-0.4, 0.4)
HEADING = (-0.05, 0.05)
EGO_SPEED = (0.0, 12.0)
OTHER_SPEED = (0.0, 10.0)

#: Columns of an input: the road, four of the ego vehicle, five of each other vehicle.
_OTHER_FIELDS = ("lane", "ahead", "offset", "heading", "speed")

#: Of a vehicle under full brakes, measured on level road and rounded to the safe side, in m/s^2.
BRAKING = 12.0
#: Metres between bumpers in one lane, plus what the rear vehicle closes in within HEADWAY_SECONDS.
STANDSTILL_GAP = 2.0
HEADWAY_SECONDS = 1.0
#: Seconds until a driver brakes.
REACTION_SECONDS = 0.5


def _others(number: int) -> tuple[Dimension, ...]:
    name = f"car{number}_"
    return (
        Choice(name + "lane", LANE_NAMES),
        Real(name + "ahead", *AHEAD, unit="m", noise=1.0),
        Real(name + "offset", *OFFSET, unit="m", noise=0.05),
        Real(name + "heading", *HEADING, unit="rad", noise=0.01),
        Real(name + "speed", *OTHER_SPEED, unit="m/s", noise=0.5),
    )


DIMENSIONS: tuple[Dimension, ...] = (
    Choice("road", tuple(road.name for road in ROADS)),
    Choice("ego_lane", LANE_NAMES),
    Real("ego_offset", *OFFSET, unit="m", noise=0.05),
    Real("ego_heading", *HEADING, unit="rad", noise=0.01),
    Real("ego_speed", *EGO_SPEED, unit="m/s", noise=0.5),
    *(dimension for number in range(1, OTHERS + 1) for dimension in _others(number)),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where everything starts; the ego vehicle is the first in every array."""

    road: int  #: position in ROADS
    lanes: NDArray[np.int64]  #: (1 + others,)
    pieces: NDArray[np.int64]  #: (1 + others,) piece of the road
    poses: NDArray[np.float64]  #: (1 + others, 3) x, y, heading
    speeds: NDArray[np.float64]  #: (1 + others,)

    def config(self, vehicle: int) -> dict[str, Any]:
        """MetaDrive's description of the start of a vehicle."""
        road, piece = ROADS[self.road], self.pieces[vehicle]
        x, y, heading = self.poses[vehicle].tolist()
        return {
            "vehicle_model": "static_default",
            "spawn_lane_index": (road.nodes[piece], road.nodes[piece + 1], int(self.lanes[vehicle])),
            "spawn_position_heading": ((x, y), heading),
            "spawn_velocity": (float(self.speeds[vehicle]), 0.0),
            "spawn_velocity_car_frame": True,
            "destination": road.destination,
        }


def scene(row: NDArray[np.float64]) -> Scene:
    """The scene of one input (d,)."""
    road, placed = int(row[0]), vehicles(row[None])[0]
    lanes = placed[:, 0].astype(np.int64)
    pieces, _ = ROADS[road].locate(lanes, placed[:, 1])
    return Scene(road, lanes, pieces, poses(row[None])[0], placed[:, 4])


def vehicles(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 1 + others, 5) lane, metres along it, offset, heading error and speed; the ego vehicle first."""
    count = len(inputs)
    ego = np.column_stack([inputs[:, 1], np.full(count, EGO_START), inputs[:, 2:5]])
    others = inputs[:, 5:].reshape(count, OTHERS, len(_OTHER_FIELDS)).copy()
    others[:, :, 1] += EGO_START
    return np.concatenate([ego[:, None], others], axis=1)


def poses(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 1 + others, 3) x, y and heading of all vehicles at the start; the ego vehicle first."""
    placed = vehicles(inputs)
    result = np.empty((*placed.shape[:2], 3))
    for number, road in enumerate(ROADS):
        rows = inputs[:, 0] == number
        lanes, along, offsets, errors, _ = placed[rows].reshape(-1, 5).T
        there = road.poses(lanes.astype(np.int64), along, offsets)
        there[:, 2] += errors
        result[rows] = there.reshape(-1, placed.shape[1], 3)
    return result


def stopping_distance(speed: NDArray[np.float64]) -> NDArray[np.float64]:
    """Metres from `speed` (any shape) to standstill under full brakes."""
    return speed**2 / (2 * BRAKING)


def is_valid(inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where vehicles in one lane are apart, the more so the faster they close in.

    Vehicles in different lanes cannot touch: a lane is 3.5 m wide, and a vehicle with the largest offset and
    heading error stays inside its own.
    """
    gap, rear_speed, front_speed = _in_one_lane(inputs)
    closing = np.maximum(0.0, rear_speed - front_speed)
    return np.asarray((gap >= STANDSTILL_GAP + HEADWAY_SECONDS * closing).all(axis=1))


def is_solvable(inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where full brakes from the start avoid every crash.

    Sufficient, not necessary: every vehicle can stop behind the one in front of it, even if that one brakes
    as hard as it can, and while the ego vehicle stops, it and the others stay in their lanes.
    """
    gap, rear_speed, front_speed = _in_one_lane(inputs)
    needed = REACTION_SECONDS * rear_speed + stopping_distance(rear_speed) - stopping_distance(front_speed)
    return np.asarray((gap >= STANDSTILL_GAP / 2 + needed).all(axis=1))


def _in_one_lane(inputs: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
    """Gap between bumpers, speed of the rear and of the front vehicle (n, pairs) of every two vehicles.

    The gap is infinite where they are in different lanes.
    """
    placed = vehicles(inputs)
    lane, along, speed = placed[:, :, 0], placed[:, :, 1], placed[:, :, 4]
    one, two = np.triu_indices(placed.shape[1], 1)
    is_behind = along[:, one] < along[:, two]
    gap = np.abs(along[:, one] - along[:, two]) - VEHICLE_LENGTH
    rear_speed = np.where(is_behind, speed[:, one], speed[:, two])
    front_speed = np.where(is_behind, speed[:, two], speed[:, one])
    return np.where(lane[:, one] == lane[:, two], gap, np.inf), rear_speed, front_speed


def seen_from(pose: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """(..., 2) how far `points` (..., 2) lie ahead of and to the left of a vehicle at `pose` (3,)."""
    return rotated(points - pose[:2], -pose[2])


def rotated(vectors: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    """(..., 2) `vectors` (..., 2) turned by `angle`, counter-clockwise."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.asarray(vectors @ np.array([[cos, sin], [-sin, cos]]))


def corners(poses: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 4, 2) corners of vehicles at `poses` (n, 3)."""
    cos, sin = np.cos(poses[:, 2:]), np.sin(poses[:, 2:])
    ahead, left = _CORNERS.T
    x = poses[:, :1] + cos * ahead - sin * left
    y = poses[:, 1:2] + sin * ahead + cos * left
    return np.stack([x, y], axis=-1)


def clearances(pose: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) distance of a vehicle at `pose` (3,) from vehicles at `others` (n, 3), 0 where they overlap."""
    own, their = corners(pose[None]), corners(others)
    apart = np.minimum(_to_edges(own, their), _to_edges(their, own))
    return np.where(_overlap(own, their), 0.0, apart)


def _to_edges(points: NDArray[np.float64], shapes: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) least distance of corners `points` (n or 1, 4, 2) to the edges of `shapes` (n or 1, 4, 2)."""
    starts = shapes[:, None]
    edges = np.roll(shapes, -1, axis=1)[:, None] - starts
    away = points[:, :, None] - starts
    along = np.clip((away * edges).sum(axis=-1) / (edges * edges).sum(axis=-1), 0.0, 1.0)
    gaps = away - along[..., None] * edges
    return np.asarray(np.sqrt((gaps * gaps).sum(axis=-1)).min(axis=(1, 2)))


def _overlap(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where no side of either rectangle separates them."""
    separated = np.zeros(max(len(first), len(second)), np.bool_)
    for shape in (first, second):
        for axis in (shape[:, 1] - shape[:, 0], shape[:, 2] - shape[:, 1]):
            one, two = ((corner * axis[:, None]).sum(axis=-1) for corner in (first, second))
            separated |= (one.max(axis=1) < two.min(axis=1)) | (two.max(axis=1) < one.min(axis=1))
    return ~separated


INPUTS = InputSpace(dimensions=DIMENSIONS, constraint=is_valid)
