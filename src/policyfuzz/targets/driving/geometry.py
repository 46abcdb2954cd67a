"""Distances between vehicles seen from above, as rectangles."""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.targets.driving.scenario import VEHICLE_LENGTH, VEHICLE_WIDTH

#: (4, 2) corners of a vehicle ahead of and to the left of its centre, counter-clockwise.
_CORNERS = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]]) * [
    VEHICLE_LENGTH / 2,
    VEHICLE_WIDTH / 2,
]


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
