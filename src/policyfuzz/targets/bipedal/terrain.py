"""The course of one episode: ground, obstacles, clouds and the first push, from obstacle types and a seed.

Draws from the generator come in the order of gymnasium's own environment. An obstacle type is drawn there
too, and thrown away where the input says otherwise: an input that repeats the types which gymnasium would
have drawn gives the very course of `env.reset(seed=seed)`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

SCALE = 30.0  #: pixels of a metre
CELL = 14 / SCALE  #: metres
CELLS = 200
FLAT_CELLS = 20  #: at the start
LEVEL = 400 / SCALE / 4  #: height to which the ground tends
_PIT_CELLS_DEEP = 4
_CLOUDS = 10
_CLOUD_CORNERS = 5

Point = tuple[float, float]
Corners = tuple[Point, Point, Point, Point]


@dataclass(slots=True)
class Course:
    """What the walker stands on."""

    heights: list[float]  #: of the ground at the left end of each cell
    boxes: list[Corners]  #: solid rectangles: of stumps, of stairs, and beside pits
    obstacles: list[int]  #: types of all obstacles in order, as positions in OBSTACLES
    starts: list[int]  #: first cell of each of them that has one

    def shapes(self) -> list[Sequence[Point]]:
        """The corners of every edge of the ground and of every box."""
        ground = [(cell * CELL, height) for cell, height in enumerate(self.heights)]
        return [*pairwise(ground), *self.boxes]


def lay_course(obstacles: Sequence[int], rng: np.random.Generator) -> Course:
    """The course with obstacles of these types (positions in OBSTACLES), the rest drawn from `rng`."""
    builder = _Builder(obstacles, rng)
    while len(builder.course.heights) < CELLS:
        builder.lay_grass()
        builder.lay_obstacle()
    return builder.course


def skip_clouds(rng: np.random.Generator) -> None:
    """Draw what gymnasium draws for its clouds, which only a camera sees."""
    rng.random(_CLOUDS * (1 + 2 * _CLOUD_CORNERS))


@dataclass(slots=True)
class _Builder:
    """Lays grass and obstacles in turn until the course is full."""

    types: Sequence[int]
    rng: np.random.Generator
    course: Course = field(default_factory=lambda: Course([], [], [], []))
    height: float = LEVEL
    slope: float = 0.0
    length: int = FLAT_CELLS  #: cells of the next stretch of grass

    @property
    def x(self) -> float:
        """Left end of the next cell."""
        return len(self.course.heights) * CELL

    def lay_grass(self) -> None:
        """Uneven ground; behind an obstacle its first cell stays at the same height."""
        heights = self.course.heights
        first = len(heights)
        last = min(first + self.length, CELLS)
        if first:
            heights.append(self.height)
        for cell in range(len(heights), last):
            fall = self.height - LEVEL
            self.slope = 0.8 * self.slope + 0.01 * ((fall < 0) - (fall > 0))
            if cell > FLAT_CELLS:
                self.slope += self.rng.uniform(-1, 1) / SCALE
            self.height += self.slope
            heights.append(self.height)
        if first + self.length <= CELLS:
            self._end_stretch()
            drawn = int(self.rng.integers(1, 4)) - 1
            number = len(self.course.obstacles)
            self.course.obstacles.append(self.types[number] if number < len(self.types) else drawn)

    def lay_obstacle(self) -> None:
        """The obstacle whose type was chosen at the end of the grass, if there is room."""
        heights = self.course.heights
        if len(heights) >= CELLS:
            return
        start = len(heights)
        self.course.starts.append(start)
        laid = (self._lay_stump, self._lay_stairs, self._lay_pit)[self.course.obstacles[-1]]()
        heights.extend(laid[: CELLS - start])
        self.height = heights[-1]
        if start + len(laid) <= CELLS:
            self._end_stretch()

    def _end_stretch(self) -> None:
        # drawn at the end of every stretch; an obstacle then sets its own length
        self.length = int(self.rng.integers(5, 10))

    def _lay_stump(self) -> list[float]:
        size = int(self.rng.integers(1, 3))
        x, y = self.x, self.height
        right, top = x + size * CELL, y + size * CELL
        self.course.boxes.append(((x, y), (right, y), (right, top), (x, top)))
        return [y] * size

    def _lay_stairs(self) -> list[float]:
        rise = 1 if self.rng.random() > 0.5 else -1
        width = int(self.rng.integers(4, 5))
        steps = int(self.rng.integers(3, 5))
        x, y = self.x, self.height
        for step in range(steps):
            left, right = x + (step * width) * CELL, x + ((1 + step) * width) * CELL
            top, bottom = y + (step * rise) * CELL, y + (-1 + step * rise) * CELL
            self.course.boxes.append(((left, top), (right, top), (right, bottom), (left, bottom)))
        climbed = [((cell - rise) / width) * rise for cell in range(1, steps * width)]
        return [y, *(y + cells * CELL for cells in climbed)]

    def _lay_pit(self) -> list[float]:
        width = int(self.rng.integers(3, 5))
        x, y = self.x, self.height
        bottom = y - _PIT_CELLS_DEEP * CELL
        near = ((x, y), (x + CELL, y), (x + CELL, bottom), (x, bottom))
        far = tuple((corner_x + CELL * width, corner_y) for corner_x, corner_y in near)
        self.course.boxes += [near, far]  # type: ignore[list-item]
        return [y] + [bottom] * width + [y]
