"""Footprints of cars on the ground: which of them overlap."""

import numpy as np
from numpy.typing import NDArray

#: Half length and half width of the ground that a car needs to itself, in metres: the car of the target
#: (4.8 by 2.2 m) and a little air.
HALF_LENGTH, HALF_WIDTH = 2.6, 1.25


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


def all_apart(poses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where no two of the k cars of a row of `poses` (n, k, 3) overlap."""
    one, other = np.triu_indices(poses.shape[1], 1)
    return np.asarray(~overlap(poses[:, one], poses[:, other]).any(axis=1))
