"""The road map of a town, read without a server, and routes on it.

Metres, and yaw in radians, clockwise from the x axis seen from above, as CARLA's left-handed world has it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import wrap_angle

#: Which way the route of the ego vehicle goes at every junction.
TURNS = ("left", "straight", "right")
#: Distance of the spots along a lane.
SPOT_METRES = 2.0
#: Distance between nodes.
NODE_METRES = 2.0
#: Turn of the lane, in radians, that each wish asks for; positive is to the right.
_WANTED = dict(zip(TURNS, (-np.pi / 2, 0.0, np.pi / 2), strict=True))
#: Smaller turns count as straight on.
_LEAST_TURN = np.radians(30.0)
#: Nodes after which a junction is no longer looked through.
_LONGEST_JUNCTION = 100
#: Segments behind and ahead of the last position that are looked at for the next one, so that a road that
#: comes back beside itself is no short cut.
_BEHIND, _AHEAD = 5, 20
#: The policy sees the first node that is this far ahead.
_LOOK_AHEAD_METRES = 5.0


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


class Command(IntEnum):
    """What the route does at a node, numbered as CARLA's own planner does."""

    LEFT = 1
    RIGHT = 2
    STRAIGHT = 3
    FOLLOW_LANE = 4


@dataclass(frozen=True, slots=True)
class Route:
    """A chain of nodes on lane centres."""

    nodes: NDArray[np.float64]  #: (k, 2)
    commands: NDArray[np.int64]  #: (k,) a Command for each node
    marks: NDArray[np.float64]  #: (k,) metres from the first node

    @property
    def length(self) -> float:
        """Metres from end to end."""
        return float(self.marks[-1])

    def ahead(self, mark: float) -> tuple[NDArray[np.float64], int]:
        """The node (2,) a little beyond `mark`, or the last one, and its command."""
        index = min(int(np.searchsorted(self.marks, mark + _LOOK_AHEAD_METRES)), len(self.marks) - 1)
        return self.nodes[index], int(self.commands[index])

    def mark_of(self, point: NDArray[np.float64], last_mark: float) -> float:
        """Metres along the route of the place nearest to `point` (2,), sought around `last_mark`."""
        at = int(np.searchsorted(self.marks, last_mark))
        window = slice(max(at - _BEHIND, 0), at + _AHEAD)
        nodes, marks = self.nodes[window], self.marks[window]
        if len(nodes) < 2:
            return last_mark
        steps = np.diff(nodes, axis=0)
        squares = np.maximum((steps**2).sum(axis=1), 1e-12)
        shares = np.clip(((point - nodes[:-1]) * steps).sum(axis=1) / squares, 0.0, 1.0)
        feet = nodes[:-1] + shares[:, None] * steps
        nearest = int(((feet - point) ** 2).sum(axis=1).argmin())
        return float(marks[nearest] + shares[nearest] * (marks[nearest + 1] - marks[nearest]))


def plan(roads: RoadMap, start: NDArray[np.float64], turn: str, metres: float) -> Route:
    """The route from the lane at `start` (2,), for `metres` or to the end of the road."""
    carla_map = roads.map
    waypoint = carla_map.get_waypoint(roads.location(*start))
    path, commands = [waypoint], [Command.FOLLOW_LANE]
    for _ in range(int(np.ceil(metres / NODE_METRES))):
        following = waypoint.next(NODE_METRES)
        if not following:
            break
        previous, waypoint = waypoint, _choose(waypoint, following, turn)
        commands.append(_command(previous, waypoint, commands[-1]))
        path.append(waypoint)
    nodes = np.array([(one.transform.location.x, one.transform.location.y) for one in path])
    steps = np.hypot(*np.diff(nodes, axis=0).T)
    return Route(nodes, np.array(commands, np.int64), np.concatenate([[0.0], np.cumsum(steps)]))


def _radians(degrees: float) -> float:
    """An angle in `degrees` as radians in [-pi, pi)."""
    return float(wrap_angle(np.radians(np.asarray(degrees))))


def _pose(waypoint: Any) -> tuple[float, float, float]:
    place = waypoint.transform
    return place.location.x, place.location.y, _radians(place.rotation.yaw)


def _choose(waypoint: Any, following: list[Any], turn: str) -> Any:
    """The one of the `following` waypoints whose lane turns most nearly as wished."""
    return min(
        following,
        key=lambda one: (abs(_turn(waypoint, one) - _WANTED[turn]), one.road_id, one.lane_id),
    )


def _command(previous: Any, waypoint: Any, last: Command) -> Command:
    """The command at `waypoint`: one turn for the whole way through a junction."""
    if not waypoint.is_junction:
        return Command.FOLLOW_LANE
    if last is not Command.FOLLOW_LANE:
        return last
    angle = _turn(previous, waypoint)
    if abs(angle) < _LEAST_TURN:
        return Command.STRAIGHT
    return Command.RIGHT if angle > 0 else Command.LEFT


def _turn(waypoint: Any, following: Any) -> float:
    """Radians that the road turns from `waypoint` to `following` and through the junction it is in."""
    end = following
    for _ in range(_LONGEST_JUNCTION):
        ways = end.next(NODE_METRES) if end.is_junction else []
        if not ways:
            break
        end = ways[0]
    return _radians(end.transform.rotation.yaw - waypoint.transform.rotation.yaw)
