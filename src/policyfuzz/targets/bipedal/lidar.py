"""The walker's lidar: ten rays against the ground and the boxes on it, for many walkers at once.

Box2D casts one ray at a time and calls back into Python for every surface that it meets. Here the same
single-precision operations are done in the same order for the few surfaces near each walker, so that the
fractions are equal to the last bit; of all hits the nearest counts, whatever the order of the surfaces.
"""

import math

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.compiled import exact_kernel
from policyfuzz.targets.bipedal.terrain import CELL, CELLS, SCALE, Course

RAYS = 10
RANGE = 160 / SCALE  #: metres
#: (10, 2) ends of the rays relative to the hull, from straight down to nearly straight ahead.
DIRECTIONS = np.array(
    [(math.sin(1.5 * ray / 10.0) * RANGE, -(math.cos(1.5 * ray / 10.0) * RANGE)) for ray in range(RAYS)]
)
#: A course has fewer: the densest are steps of stairs, about one in four cells.
MOST_BOXES = 64
#: Metres beyond the rays within which boxes are still checked; far more than single precision errs.
_MARGIN = 0.05

Float32s = NDArray[np.float32]


class Surfaces:
    """What the rays of n walkers may hit, in single precision."""

    def __init__(self, count: int) -> None:
        self.edges = np.zeros((count, CELLS - 1, 6), np.float32)  #: from x, y; to x, y; normal x, y
        self.boxes = np.zeros((count, MOST_BOXES, 4, 4), np.float32)  #: per side: corner x, y; normal x, y
        self.box_counts = np.zeros(count, np.int64)

    def put(self, row: int, course: Course) -> None:
        """Let walker `row` walk on `course`."""
        points = np.column_stack([np.arange(CELLS) * CELL, course.heights]).astype(np.float32)
        edges = self.edges[row]
        edges[:, 0:2], edges[:, 2:4] = points[:-1], points[1:]
        edges[:, 4:6] = _normals(edges[:, 2:4] - edges[:, 0:2])
        count = len(course.boxes)
        self.box_counts[row] = count
        if count:
            corners = _counter_clockwise(np.array(course.boxes).astype(np.float32))
            self.boxes[row, :count, :, 0:2] = corners
            self.boxes[row, :count, :, 2:4] = _normals(np.roll(corners, -1, axis=1) - corners)

    def cast(self, hulls: Float32s, rows: NDArray[np.int64]) -> Float32s:
        """Fractions (m, 10) of the range at which the rays from `hulls` (m, 2) of walkers `rows` end."""
        ends = (hulls.astype(np.float64)[:, None, :] + DIRECTIONS).astype(np.float32)
        fractions = np.empty((len(rows), RAYS), np.float32)
        _cast(self.edges, self.boxes, self.box_counts, hulls, ends, rows, fractions)
        return fractions


def ray_ends(hull: tuple[float, float], fractions: Float32s) -> NDArray[np.float64]:
    """(10, 2) where rays from `hull` with these `fractions` (10,) end, for drawing."""
    start, furthest = np.array(hull), np.array(hull) + DIRECTIONS
    share = fractions[:, None]
    hits = (1 - share) * start.astype(np.float32) + share * furthest.astype(np.float32)
    return np.asarray(np.where(share < 1, hits, furthest))


def _counter_clockwise(boxes: Float32s) -> Float32s:
    """Corners of `boxes` (k, 4, 2) as Box2D orders them, from the lower right one."""
    low, high = boxes.min(axis=1), boxes.max(axis=1)
    right, left, bottom, top = high[:, 0], low[:, 0], low[:, 1], high[:, 1]
    corners = ((right, bottom), (right, top), (left, top), (left, bottom))
    return np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)


def _normals(along: Float32s) -> Float32s:
    """Unit vectors to the right of `along` (..., 2); scaled by the inverse length, as Box2D does."""
    x, y = along[..., 1], -along[..., 0]
    inverse = np.float32(1) / np.sqrt(x * x + y * y)
    return np.stack([x * inverse, y * inverse], axis=-1)


@exact_kernel
def _cast(
    edges: Float32s,
    boxes: Float32s,
    box_counts: NDArray[np.int64],
    hulls: Float32s,
    ends: Float32s,
    rows: NDArray[np.int64],
    fractions: Float32s,
) -> None:
    near = np.empty(boxes.shape[1], np.int64)
    for number in range(len(rows)):
        row = rows[number]
        x1, y1 = hulls[number, 0], hulls[number, 1]
        furthest = ends[number, :, 0].max() + _MARGIN
        nears = 0
        for box in range(box_counts[row]):
            right, left = boxes[row, box, 0, 0], boxes[row, box, 2, 0]
            if right >= x1 - _MARGIN and left <= furthest:
                near[nears] = box
                nears += 1
        first = min(max(int(np.floor(x1 / CELL)) - 1, 0), edges.shape[1])
        for ray in range(fractions.shape[1]):
            x2, y2 = ends[number, ray, 0], ends[number, ray, 1]
            last = min(max(int(np.floor(x2 / CELL)) + 2, 0), edges.shape[1])
            nearest = np.float32(1)
            for cell in range(first, last):
                nearest = _meet_edge(edges[row, cell], x1, y1, x2 - x1, y2 - y1, nearest)
            for i in range(nears):
                nearest = _meet_box(boxes[row, near[i]], x1, y1, x2 - x1, y2 - y1, nearest)
            fractions[number, ray] = nearest


@exact_kernel
def _meet_edge(
    edge: Float32s, x: np.float32, y: np.float32, dx: np.float32, dy: np.float32, nearest: np.float32
) -> np.float32:
    """Where the ray (x, y) + t (dx, dy) meets `edge` (6,), if nearer than `nearest`, which it is else."""
    zero, one = np.float32(0), np.float32(1)
    start_x, start_y, normal_x, normal_y = edge[0], edge[1], edge[4], edge[5]
    denominator = normal_x * dx + normal_y * dy
    if denominator == zero:
        return nearest
    t = (normal_x * (start_x - x) + normal_y * (start_y - y)) / denominator
    if t < zero or nearest < t:
        return nearest
    along_x, along_y = edge[2] - start_x, edge[3] - start_y
    along = ((x + t * dx) - start_x) * along_x + ((y + t * dy) - start_y) * along_y
    share = along / (along_x * along_x + along_y * along_y)
    return t if zero <= share and share <= one else nearest


@exact_kernel
def _meet_box(
    sides: Float32s, x: np.float32, y: np.float32, dx: np.float32, dy: np.float32, nearest: np.float32
) -> np.float32:
    """Where the ray enters the box with these `sides` (4, 4), if nearer than `nearest`, which it is else."""
    zero = np.float32(0)
    lower, upper = zero, nearest
    is_entered = False
    for side in range(4):
        normal_x, normal_y = sides[side, 2], sides[side, 3]
        numerator = normal_x * (sides[side, 0] - x) + normal_y * (sides[side, 1] - y)
        denominator = normal_x * dx + normal_y * dy
        if denominator == zero:
            if numerator < zero:
                return nearest
        elif denominator < zero and numerator < lower * denominator:
            lower = numerator / denominator
            is_entered = True
        elif denominator > zero and numerator < upper * denominator:
            upper = numerator / denominator
        if upper < lower:
            return nearest
    return lower if is_entered else nearest
