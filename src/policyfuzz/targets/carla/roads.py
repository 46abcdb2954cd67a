"""The road map of a town, read without a server: where the lanes are, and which way they run.

Metres, and yaw in radians, clockwise from the x axis seen from above, as CARLA's left-handed world has it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz import extras
from policyfuzz.errors import UsageError

#: Distance of the spots along a lane.
SPOT_METRES = 2.0


@dataclass(frozen=True, slots=True)
class RoadMap:
    """The driving lanes of a town."""

    map: Any  #: carla.Map
    spots: NDArray[np.float64]  #: (k, 3) x, y, yaw of points on lane centres outside junctions

    @classmethod
    def read(cls, name: str, opendrive: str) -> "RoadMap":
        """The map called `name` from the text of an OpenDRIVE file."""
        carla = extras.load("carla", "carla")
        try:
            road_map = carla.Map(name, opendrive)
        except RuntimeError as error:
            raise UsageError(f"{name} is no OpenDRIVE map: {error}") from error
        waypoints = road_map.generate_waypoints(SPOT_METRES)
        spots = [_pose(waypoint) for waypoint in waypoints if not waypoint.is_junction]
        if not spots:
            raise UsageError(f"map {name} has no driving lanes outside junctions")
        # the order of the package is not documented, and samples must not depend on it
        return cls(road_map, np.unique(np.array(spots), axis=0))

    def __reduce__(self) -> Any:
        """Pickled as text, since the package cannot pickle its maps."""
        return RoadMap.read, (self.map.name, self.map.to_opendrive())

    def lane_headings(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(k,) yaw of the driving lane at `points` (k, 2), NaN off the road and in junctions."""
        waypoints = (self._waypoint(x, y) for x, y in points.tolist())
        return np.array(
            [
                np.nan if waypoint is None or waypoint.is_junction else _pose(waypoint)[2]
                for waypoint in waypoints
            ]
        )

    def height(self, x: float, y: float) -> float:
        """Height of the road at or nearest to a point."""
        return float(self.map.get_waypoint(self.location(x, y)).transform.location.z)

    def location(self, x: float, y: float) -> Any:
        """The point on the ground as a carla.Location."""
        return extras.load("carla", "carla").Location(x=x, y=y, z=0.0)

    def _waypoint(self, x: float, y: float) -> Any:
        return self.map.get_waypoint(self.location(x, y), project_to_road=False)


def _pose(waypoint: Any) -> tuple[float, float, float]:
    place = waypoint.transform
    return place.location.x, place.location.y, wrap(np.radians(place.rotation.yaw))


def wrap(angle: float) -> float:
    """`angle` brought into [-pi, pi)."""
    return float((angle + np.pi) % (2 * np.pi) - np.pi)
