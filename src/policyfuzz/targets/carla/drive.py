"""What a drive looks like in numbers: the state of 17 values, and the reward of a tick."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: A collision is a crash when its impulse is larger, in newton seconds.
CRASH_IMPULSE = 400.0
#: Names of the values of a state.
STATE = (
    "node_x",
    "node_y",
    "forward_x",
    "forward_y",
    "velocity_x",
    "velocity_y",
    "velocity_z",
    "acceleration_x",
    "acceleration_y",
    "acceleration_z",
    "x",
    "y",
    "z",
    "command",
    "near_ahead",
    "near_right",
    "near_count",
)

#: Other vehicles count as near within this distance.
_NEAR_METRES = 32.0
#: Progress of one tick counts up to this many metres.
_MAX_PROGRESS = 10.0


@dataclass(frozen=True, slots=True)
class Motion:
    """Where a car is and how it moves, in metres and seconds, in world coordinates."""

    position: NDArray[np.float64]  #: (3,)
    forward: NDArray[np.float64]  #: (2,) unit vector
    velocity: NDArray[np.float64]  #: (3,)
    acceleration: NDArray[np.float64]  #: (3,)

    @classmethod
    def of(cls, vehicle: Any) -> "Motion":
        """The motion of a carla.Vehicle at the last tick."""
        place = vehicle.get_transform()
        return cls(
            _vector(place.location),
            _vector(place.get_forward_vector())[:2],
            _vector(vehicle.get_velocity()),
            _vector(vehicle.get_acceleration()),
        )

    @classmethod
    def at_rest(cls, place: NDArray[np.float64]) -> "Motion":
        """Standing at `place` (4,): x, y, z, yaw."""
        forward = np.array([np.cos(place[3]), np.sin(place[3])])
        return cls(place[:3].copy(), forward, np.zeros(3), np.zeros(3))

    @property
    def speed(self) -> float:
        """Metres per second."""
        return float(np.linalg.norm(self.velocity))


def state(
    ego: Motion, node: NDArray[np.float64], command: int, others: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(17,) see STATE; `node` (2,) is ahead on the route, `others` (k, 2) are positions."""
    parts = (node, ego.forward, ego.velocity, ego.acceleration, ego.position, [command], near(ego, others))
    return np.concatenate(parts)


def near(ego: Motion, others: NDArray[np.float64]) -> NDArray[np.float64]:
    """(3,) mean offset ahead and to the right of the near ones of `others` (k, 2), and their number."""
    offsets = others - ego.position[:2]
    offsets = offsets[np.hypot(*offsets.T) <= _NEAR_METRES]
    if len(offsets) == 0:
        return np.zeros(3)
    right = np.array([-ego.forward[1], ego.forward[0]])
    return np.array([(offsets @ ego.forward).mean(), (offsets @ right).mean(), len(offsets)])


def reward(
    progress: float, speed: float, previous_speed: float, has_crashed: bool, has_left_lane: bool
) -> float:
    """Of one tick: metres of `progress`, a little for speeding up, less for crashes and crossed markings."""
    return (
        min(max(progress, -_MAX_PROGRESS), _MAX_PROGRESS)
        + 0.2 * (speed - previous_speed)
        - 100.0 * speed * has_crashed
        - speed * has_left_lane
    )


def _vector(vector: Any) -> NDArray[np.float64]:
    return np.array([vector.x, vector.y, vector.z])
