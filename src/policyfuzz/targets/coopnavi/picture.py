"""Pictures of a world: agents with their trails, landmarks, and a flash where agents touch."""

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from policyfuzz.targets.coopnavi.physics import (
    AGENT_RADIUS,
    AGENTS,
    CONTACT,
    COVERED,
    LANDMARK_RADIUS,
    LANDMARKS,
    POSITIONS,
    VELOCITIES,
)

Points = NDArray[np.float64]
Colour = tuple[int, int, int]

SIZE = 640  #: pixels
_ZOOM = 3  #: drawn this much larger and scaled down, which smooths the edges
_HALF_WIDTH = 1.35  #: of the floor that is shown
_FLOOR, _GRID, _EDGE = (247, 248, 251), (230, 233, 240), (196, 202, 214)
_AGENTS: tuple[Colour, ...] = ((37, 99, 235), (217, 119, 6), (124, 58, 237))
_LANDMARK, _COVERED_LANDMARK = (71, 85, 105), (22, 163, 74)
_FLASH = (220, 38, 38)
#: An agent at the speed of one is drawn with an arrow this long.
_ARROW = 0.25
#: Trails fade to nothing over this many frames.
_TRAIL_FRAMES = 60


def draw_world(world: NDArray[np.float64], trail: Sequence[NDArray[np.float64]]) -> NDArray[np.uint8]:
    """A picture (640, 640, 3) of a `world` (18,); `trail` holds the agents' positions (6,) up to now."""
    image = Image.new("RGB", (SIZE * _ZOOM, SIZE * _ZOOM), _FLOOR)
    pen = ImageDraw.Draw(image, "RGBA")
    agents, velocities, landmarks = (
        world[part].reshape(AGENTS, 2) for part in (POSITIONS, VELOCITIES, LANDMARKS)
    )
    _draw_floor(pen)
    _draw_trails(pen, [positions.reshape(AGENTS, 2) for positions in trail[-_TRAIL_FRAMES:]])
    nearest = np.linalg.norm(agents[:, None] - landmarks, axis=2).min(axis=0)
    colours = [_COVERED_LANDMARK if distance < COVERED else _LANDMARK for distance in nearest]
    for landmark, colour in zip(landmarks, colours, strict=True):
        _draw_halo(pen, landmark, colour)
    touching = [pair for pair in combinations(range(AGENTS), 2) if _distance(agents, pair) < CONTACT]
    for agent in {agent for pair in touching for agent in pair}:
        _disc(pen, agents[agent], AGENT_RADIUS + 0.05, fill=(*_FLASH, 70))
    for centre, colour in zip(agents, _AGENTS, strict=True):
        rim = round(_length(0.012))
        _disc(pen, centre, AGENT_RADIUS, fill=(*colour, 110), outline=(*colour, 255), width=rim)
    for landmark, colour in zip(landmarks, colours, strict=True):
        _disc(
            pen, landmark, LANDMARK_RADIUS, fill=colour, outline=(255, 255, 255), width=round(_length(0.01))
        )
    for centre, velocity, colour in zip(agents, velocities, _AGENTS, strict=True):
        _draw_arrow(pen, centre, velocity, colour)
    for pair in touching:
        _draw_flash(pen, agents[list(pair)])
    return np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BOX))


def _distance(agents: Points, pair: tuple[int, int]) -> float:
    return float(np.linalg.norm(agents[pair[0]] - agents[pair[1]]))


def _pixel(point: Points) -> tuple[float, float]:
    """Where a point (2,) of the floor lies in the large picture; y goes up."""
    scale = SIZE * _ZOOM / (2 * _HALF_WIDTH)
    return (float(point[0]) + _HALF_WIDTH) * scale, (_HALF_WIDTH - float(point[1])) * scale


def _length(distance: float) -> float:
    """Pixels of the large picture."""
    return distance * SIZE * _ZOOM / (2 * _HALF_WIDTH)


def _disc(pen: ImageDraw.ImageDraw, centre: Points, radius: float, **style: object) -> None:
    x, y = _pixel(centre)
    r = _length(radius)
    pen.ellipse((x - r, y - r, x + r, y + r), **style)  # type: ignore[arg-type]


def _line(pen: ImageDraw.ImageDraw, ends: Sequence[Points], fill: tuple[int, ...], width: float) -> None:
    pen.line([_pixel(end) for end in ends], fill=fill, width=round(_length(width)), joint="curve")


def _draw_floor(pen: ImageDraw.ImageDraw) -> None:
    """A grid, and the square in which everything starts."""
    for at in np.arange(-1.25, 1.3, 0.25):
        _line(pen, [np.array([at, -2.0]), np.array([at, 2.0])], _GRID, 0.004)
        _line(pen, [np.array([-2.0, at]), np.array([2.0, at])], _GRID, 0.004)
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]], float)
    _line(pen, list(corners), _EDGE, 0.008)


def _draw_trails(pen: ImageDraw.ImageDraw, trail: Sequence[Points]) -> None:
    for age, (before, after) in enumerate(pairwise(trail)):
        share = 1 - (len(trail) - 1 - age) / _TRAIL_FRAMES
        for agent, colour in enumerate(_AGENTS):
            _line(pen, [before[agent], after[agent]], (*colour, round(150 * share)), 0.012 + 0.018 * share)


def _draw_halo(pen: ImageDraw.ImageDraw, centre: Points, colour: Colour) -> None:
    """The circle within which an agent covers the landmark."""
    _disc(pen, centre, COVERED, fill=(*colour, 34), outline=(*colour, 130), width=round(_length(0.006)))


def _draw_arrow(pen: ImageDraw.ImageDraw, centre: Points, velocity: Points, colour: Colour) -> None:
    """An arrow along the velocity of an agent, or a dot where it rests."""
    speed = float(np.linalg.norm(velocity))
    if speed < 0.05:
        _disc(pen, centre, 0.02, fill=colour)
        return
    ahead = velocity / speed
    aside = np.array([-ahead[1], ahead[0]])
    tip = centre + ahead * (0.06 + _ARROW * speed)
    _line(pen, [centre - 0.02 * ahead, tip - 0.04 * ahead], colour, 0.022)
    pen.polygon(
        [_pixel(tip + shift) for shift in (0.0 * ahead, _barb(ahead, aside), _barb(ahead, -aside))], colour
    )


def _barb(ahead: Points, aside: Points) -> Points:
    return -0.07 * ahead + 0.04 * aside


def _draw_flash(pen: ImageDraw.ImageDraw, agents: Points) -> None:
    """A star of sixteen points where two agents (2, 2) touch."""
    angles = np.pi / 16 * np.arange(32)
    reach = np.where(np.arange(32) % 4 == 0, 0.13, np.where(np.arange(32) % 4 == 2, 0.09, 0.05))
    rim = agents.mean(axis=0) + reach[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    pen.polygon([_pixel(point) for point in rim], (*_FLASH, 255))
    _disc(pen, agents.mean(axis=0), 0.03, fill=(255, 255, 255))
