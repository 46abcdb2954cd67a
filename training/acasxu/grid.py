"""The grid of relative positions that the tables live on, and interpolation between its nodes.

What decides an encounter is how far the intruder's bearing is off the collision course: the bearing from
which it would fly straight into the ownship. The grid has that offset as an axis in place of the bearing, so
that the narrow ridge of dangerous states runs along grid lines and is not blurred by interpolation.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acasxu.motion import Floats, Speeds, States, wrap

#: Farthest node; whatever is farther away is read off there.
FARTHEST_FEET = 62_000.0


@dataclass(frozen=True, slots=True)
class Grid:
    """Nodes in range, offset from the collision course and relative heading; both angles are periodic.

    Node (i, j, k) has the flat number (i * len(offsets) + j) * headings + k. Offsets and headings start at
    -pi and are symmetric about 0, so that the mirror image of a node is a node.
    """

    speeds: Speeds
    distances: Floats  #: (m,) ascending from 0
    offsets: Floats  #: (o,) ascending from -pi, symmetric but for that one
    headings: int  #: evenly spaced, an even number

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.distances) * len(self.offsets) * self.headings

    def nodes(self) -> States:
        """All nodes in flat order."""
        turn = -np.pi + 2 * np.pi * np.arange(self.headings) / self.headings
        distance, offset, heading = np.meshgrid(self.distances, self.offsets, turn, indexing="ij")
        bearing = wrap(offset + collision_course(self.speeds, heading))
        return States(distance.ravel(), bearing.ravel(), heading.ravel())

    def mirror(self) -> NDArray[np.int64]:
        """(size,) the flat number of every node's mirror image."""
        row = np.arange(len(self.distances))[:, None, None]
        column = ((-np.arange(len(self.offsets))) % len(self.offsets))[:, None]
        layer = (-np.arange(self.headings)) % self.headings
        return ((row * len(self.offsets) + column) * self.headings + layer).ravel()

    def corners(self, states: States) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The eight nodes (n, 8) around each state and their weights (n, 8), which sum to one."""
        distance = np.clip(states.distance, self.distances[0], self.distances[-1])
        row, row_share = _between(self.distances, distance)
        offset = wrap(states.bearing - collision_course(self.speeds, states.heading))
        column, column_share = _between(np.append(self.offsets, np.pi), offset)
        position = (states.heading + np.pi) * (self.headings / (2 * np.pi))
        layer = np.floor(position).astype(np.int64)
        layer_share = position - layer
        numbers = np.empty((len(distance), 8), np.int32)
        weights = np.empty((len(distance), 8), np.float32)
        for corner in range(8):
            up, right, back = corner >> 2, corner >> 1 & 1, corner & 1
            numbers[:, corner] = (
                (row + up) * len(self.offsets) + (column + right) % len(self.offsets)
            ) * self.headings + (layer + back) % self.headings
            weights[:, corner] = (
                (row_share if up else 1 - row_share)
                * (column_share if right else 1 - column_share)
                * (layer_share if back else 1 - layer_share)
            )
        return numbers, weights


def collision_course(speeds: Speeds, heading: Floats) -> Floats:
    """The bearing from which an intruder with this relative heading (n,) flies into the ownship."""
    return np.arctan2(-speeds.intruder * np.sin(heading), speeds.own - speeds.intruder * np.cos(heading))


def make_grid(speeds: Speeds, distances: int = 40, offsets: int = 32, headings: int = 48) -> Grid:
    """A grid that is finest close by and near the collision course; `offsets` and `headings` are even."""
    gaps = _growing_gaps(100.0, FARTHEST_FEET, distances - 1)
    side = np.cumsum(_growing_gaps(np.deg2rad(1.0), np.pi, offsets // 2))
    return Grid(
        speeds,
        np.concatenate([[0.0], np.cumsum(gaps)]),
        np.concatenate([-side[::-1], [0.0], side[:-1]]),
        headings,
    )


def _growing_gaps(first: float, total: float, count: int) -> Floats:
    """`count` geometrically growing numbers from `first` on that add up to `total`."""
    low, high = 1.0 + 1e-9, 10.0
    for _ in range(100):
        ratio = (low + high) / 2
        low, high = (ratio, high) if first * (ratio**count - 1) / (ratio - 1) < total else (low, ratio)
    gaps = first * np.power(ratio, np.arange(count, dtype=np.float64))
    return gaps * (total / float(gaps.sum()))


def _between(nodes: Floats, values: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The node (n,) at or below each value, and how far the value is towards the next one."""
    below = np.clip(np.searchsorted(nodes, values, "right") - 1, 0, len(nodes) - 2)
    return below, (values - nodes[below]) / (nodes[below + 1] - nodes[below])
