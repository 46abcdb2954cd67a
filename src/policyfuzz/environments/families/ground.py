"""How near a hull is to the ground, for environments whose bodies live in a Box2D world."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.compiled import exact_kernel

#: Corners of a shape: an edge has two, a solid body more.
Corners = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Ground:
    """The outlines of what a hull may hit, read once in every episode."""

    made_of: Callable[[Any], Any]  #: the object of an environment that every reset makes anew
    shapes: Callable[[Any], Iterable[Corners]]
    _seen: "WeakKeyDictionary[Any, tuple[Any, NDArray[np.float64]]]" = field(
        default_factory=WeakKeyDictionary
    )

    def __reduce__(self) -> Any:
        """Without what was read: other processes have other environments."""
        return Ground, (self.made_of, self.shapes)

    def of(self, env: Any) -> NDArray[np.float64]:
        """(m, 4) the outlines in the present episode of `env`."""
        made = self.made_of(env)
        seen = self._seen.get(env)
        if seen is None or seen[0] is not made:
            seen = self._seen[env] = made, outlines(self.shapes(env))
        return seen[1]


def outlines(shapes: Iterable[Corners]) -> NDArray[np.float64]:
    """(m, 4) from x, y to x, y of all sides of `shapes`."""
    sides = [
        (*corners[number], *corners[(number + 1) % len(corners)])
        for corners in shapes
        for number in range(len(corners) if len(corners) > 2 else 1)
    ]
    return np.array(sides, np.float64).reshape(-1, 4)


def impact(x_speed: float, y_speed: float, angle: float, drop: float, gravity: float) -> float:
    """How hard a hull would hit: its speed plus its tilt.

    1 is the speed of a free fall by `drop`, and the tilt of a hull that is upside down.
    """
    tilt = abs(math.remainder(angle, 2 * math.pi)) / math.pi
    return math.hypot(x_speed, y_speed) / math.sqrt(2 * abs(gravity) * drop) + tilt


@exact_kernel
def clearance(
    polygon: NDArray[np.float64],
    x: float,
    y: float,
    angle: float,
    segments: NDArray[np.float64],
    reach: float,
) -> float:
    """Distance between `polygon` (k, 2), turned by `angle` and moved to (x, y), and `segments` (m, 4).

    At most `reach`, and 0 where they cross.
    """
    cos, sin, count = np.cos(angle), np.sin(angle), polygon.shape[0]
    corners = np.empty((count, 2))
    left = bottom = np.inf
    right = top = -np.inf
    for i in range(count):
        corner_x = x + cos * polygon[i, 0] - sin * polygon[i, 1]
        corner_y = y + sin * polygon[i, 0] + cos * polygon[i, 1]
        corners[i, 0], corners[i, 1] = corner_x, corner_y
        left, right = min(left, corner_x), max(right, corner_x)
        bottom, top = min(bottom, corner_y), max(top, corner_y)
    nearest = reach
    for j in range(segments.shape[0]):
        x1, y1, x2, y2 = segments[j, 0], segments[j, 1], segments[j, 2], segments[j, 3]
        is_aside = max(x1, x2) < left - nearest or min(x1, x2) > right + nearest
        if is_aside or max(y1, y2) < bottom - nearest or min(y1, y2) > top + nearest:
            continue
        for i in range(count):
            k = (i + 1) % count
            apart = _distance(corners[i, 0], corners[i, 1], corners[k, 0], corners[k, 1], x1, y1, x2, y2)
            nearest = min(nearest, apart)
    return float(nearest)


@exact_kernel
def _distance(
    ax: float, ay: float, bx: float, by: float, cx: float, cy: float, dx: float, dy: float
) -> float:
    """Between the segments from a to b and from c to d."""
    are_apart = _side(ax, ay, bx, by, cx, cy) * _side(ax, ay, bx, by, dx, dy) >= 0
    if not are_apart and _side(cx, cy, dx, dy, ax, ay) * _side(cx, cy, dx, dy, bx, by) < 0:
        return 0.0
    first = min(_to_point(ax, ay, bx, by, cx, cy), _to_point(ax, ay, bx, by, dx, dy))
    return min(first, _to_point(cx, cy, dx, dy, ax, ay), _to_point(cx, cy, dx, dy, bx, by))


@exact_kernel
def _side(ax: float, ay: float, bx: float, by: float, x: float, y: float) -> float:
    """Positive where (x, y) is to the left of the line from a to b, negative to the right."""
    return (bx - ax) * (y - ay) - (by - ay) * (x - ax)


@exact_kernel
def _to_point(ax: float, ay: float, bx: float, by: float, x: float, y: float) -> float:
    """Distance of (x, y) from the segment from a to b."""
    along_x, along_y = bx - ax, by - ay
    square = along_x * along_x + along_y * along_y
    share = 0.0
    if square > 0.0:
        share = min(max(((x - ax) * along_x + (y - ay) * along_y) / square, 0.0), 1.0)
    off_x, off_y = ax + share * along_x - x, ay + share * along_y - y
    return math.sqrt(off_x * off_x + off_y * off_y)
