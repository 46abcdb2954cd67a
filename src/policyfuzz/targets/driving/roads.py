"""The roads that are driven: each a chain of straights and arcs, three lanes side by side.

Metres and radians. Every road starts along +x; +y is to the left. Lane 0 is the
leftmost of the three, and the centre of the rightmost starts at the origin.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES = 3
LANE_WIDTH = 3.5
#: Straight road before the first block: an entrance of 10 m and the rest of it.
ENTRANCE = 10.0
APPROACH = 60.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the route between two nodes of the road network."""

    length: float = 0.0  #: of a straight, 0 for an arc
    radius: float = 0.0  #: of the centre of lane 0 in an arc
    angle: float = 0.0  #: of an arc, positive to the left


@dataclass(frozen=True)
class Road:
    """A road: MetaDrive's blocks, and the route through them."""

    name: str
    #: Parameters of the blocks behind the approach, as MetaDrive's map files write them.
    blocks: tuple[dict[str, Any], ...]
    nodes: tuple[str, ...]  #: of MetaDrive's road network, along the route
    pieces: tuple[Piece, ...]  #: one between each two nodes

    @property
    def destination(self) -> str:
        """The node at which the route ends."""
        return self.nodes[-1]

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """(pieces, lanes) length of each lane's centre line."""
        lanes = np.arange(LANES) * LANE_WIDTH
        return np.array(
            [
                abs(piece.angle) * (piece.radius + np.sign(piece.angle) * lanes)
                if piece.angle
                else np.full(LANES, piece.length)
                for piece in self.pieces
            ]
        )

    @cached_property
    def starts(self) -> NDArray[np.float64]:
        """(pieces, 3) x, y and heading of the centre of lane 0 where each piece begins."""
        poses = [(0.0, (LANES - 1) * LANE_WIDTH, 0.0)]
        for piece in self.pieces:
            x, y, heading = poses[-1]
            if piece.angle:
                side = np.sign(piece.angle) * piece.radius
                turned = heading + piece.angle
                x += side * (np.sin(turned) - np.sin(heading))
                y -= side * (np.cos(turned) - np.cos(heading))
                heading = turned
            else:
                x, y = x + piece.length * np.cos(heading), y + piece.length * np.sin(heading)
            poses.append((x, y, heading))
        return np.array(poses[:-1])

    def locate(
        self, lanes: NDArray[np.int64], along: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Piece (n,) and distance (n,) into it of points `along` metres from the start of `lanes` (n,)."""
        ends = np.cumsum(self.lengths, axis=0)[:, lanes]
        piece = np.minimum((along >= ends).sum(axis=0), len(self.pieces) - 1)
        begun = ends[piece, np.arange(len(lanes))] - self.lengths[piece, lanes]
        return piece, along - begun

    def poses(
        self, lanes: NDArray[np.int64], along: NDArray[np.float64], offsets: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(n, 3) x, y and heading of the road at points `along` their lane, `offsets` to the right of it."""
        number, into = self.locate(lanes, along)
        x, y, heading = self.starts[number].T
        angle = np.array([piece.angle for piece in self.pieces])[number]
        radius = np.array([piece.radius for piece in self.pieces])[number]
        side = np.sign(angle)
        right = lanes * LANE_WIDTH
        own_radius = np.where(angle == 0, 1.0, radius + side * right)
        turned = heading + side * into / own_radius
        # the centre of an arc lies `radius` to the left (or right) of lane 0
        ahead = np.where(angle == 0, into, 0.0)
        x = x + ahead * np.cos(heading) - side * radius * np.sin(heading)
        y = y + ahead * np.sin(heading) + side * radius * np.cos(heading)
        outward = side * radius + right + offsets
        return np.column_stack([x + outward * np.sin(turned), y - outward * np.cos(turned), turned])


def _straight(length: float, after: str) -> dict[str, Any]:
    return {"id": "S", "pre_block_socket_index": after, "length": length}


def _curve(radius: float, degrees: float, is_left: bool, length: float, after: str) -> dict[str, Any]:
    # MetaDrive's radius is that of the rightmost lane
    return {
        "id": "C",
        "pre_block_socket_index": after,
        "length": length,
        "radius": radius,
        "angle": degrees,
        "dir": 0 if is_left else 1,
    }


def _road(name: str, blocks: list[dict[str, Any]], nodes: str, pieces: list[Piece]) -> Road:
    """A road behind the approach that all have in common; `nodes` are separated by blanks."""
    approach = [Piece(ENTRANCE), Piece(APPROACH - ENTRANCE)]
    return Road(name, tuple(blocks), (">", ">>", ">>>", *nodes.split()), (*approach, *pieces))


_QUARTER, _SIXTH, _TWELFTH = np.pi / 2, np.pi / 3, np.pi / 6

ROADS = (
    _road(
        "straight",
        [_straight(80.0, "0I-socket0"), _straight(80.0, "1S-socket0"), _straight(80.0, "2S-socket0")],
        "1S0_0_ 2S0_0_ 3S0_0_",
        [Piece(80.0), Piece(80.0), Piece(80.0)],
    ),
    _road(
        "bends",
        [_curve(45.0, 90.0, True, 30.0, "0I-socket0"), _curve(45.0, 90.0, False, 60.0, "1C-socket0")],
        "1C0_0_ 1C0_1_ 2C0_0_ 2C0_1_",
        [
            Piece(radius=38.0, angle=_QUARTER),
            Piece(30.0),
            Piece(radius=52.0, angle=-_QUARTER),
            Piece(60.0),
        ],
    ),
    _road(
        "left turn",
        [
            {
                "id": "X",
                "pre_block_socket_index": "0I-socket0",
                "radius": 10.0,
                "change_lane_num": 0,
                "decrease_increase": 1,
            },
            _straight(80.0, "1X-socket2"),
            _straight(60.0, "2S-socket0"),
        ],
        "1X2_0_ 1X2_1_ 2S0_0_ 3S0_0_",
        [Piece(radius=20.5, angle=_QUARTER), Piece(35.0), Piece(80.0), Piece(60.0)],
    ),
    _road(
        "roundabout",
        [
            {
                "id": "O",
                "pre_block_socket_index": "0I-socket0",
                "exit_radius": 14.0,
                "inner_radius": 42.0,
                "angle": 60.0,
            },
            _straight(60.0, "1O-socket1"),
        ],
        "1O0_0_ 1O0_1_ 1O1_0_ 1O1_1_ 1O1_2_ 1O1_3_ 2S0_0_",
        [
            Piece(radius=21.0, angle=-_SIXTH),
            Piece(radius=52.5, angle=_TWELFTH),
            Piece(radius=24.5, angle=_SIXTH),
            Piece(radius=52.5, angle=_TWELFTH),
            Piece(radius=21.0, angle=-_SIXTH),
            Piece(35.0),
            Piece(60.0),
        ],
    ),
)
