"""Pictures of an episode from above: the road, the traffic, and the ego vehicle with the way it came."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from policyfuzz.targets.driving.scenario import VEHICLE_LENGTH, VEHICLE_WIDTH, corners

#: Pixels of a picture, and how many of them a metre takes.
SIZE = (960, 640)
SCALE = 9.0
#: Pictures are drawn this much larger and then shrunk, which smooths the edges.
_FINER = 2
#: Metres around the road that are part of the map.
_BORDER = SIZE[0] / SCALE

_GRASS, _ASPHALT = "#7d9a6b", "#4b4f57"
_LINES = {"yellow": "#f0c24b", "solid": "#e8e8e6", "broken": "#c9cacc"}
_EGO, _EGO_TRAIL, _OTHER, _GLASS, _OUTLINE = "#ff5a36", "#ffb39f", "#4f9ddb", "#1d2733", "#20242b"
#: Metres of a dash of a broken line, and of the gap behind it.
_DASH = 3.0
#: Of the windscreen, ahead of the middle of a vehicle and half of its width, in metres.
_WINDSCREEN = ((0.35, 0.75), (1.05, 0.65), (1.05, -0.65), (0.35, -0.75))

Points = NDArray[np.float64]


class RoadMap:
    """A road drawn once; pictures are cut out of it."""

    def __init__(self, features: dict[str, dict[str, Any]]) -> None:
        lanes = [np.asarray(one["polygon"])[:, :2] for one in features.values() if "polygon" in one]
        points = np.concatenate(lanes)
        self._low, high = points.min(axis=0) - _BORDER, points.max(axis=0) + _BORDER
        self._height = high[1] - self._low[1]
        width, height = np.ceil((high - self._low) * SCALE * _FINER).astype(int).tolist()
        self._image = Image.new("RGB", (width, height), _GRASS)
        draw = ImageDraw.Draw(self._image)
        for lane in lanes:
            self._fill(draw, lane, _ASPHALT, _ASPHALT)
        for feature in features.values():
            if "ROAD_LINE" in feature["type"]:
                self._line(draw, np.asarray(feature["polyline"])[:, :2], feature["type"])

    def picture(self, poses: Points, trail: Sequence[Points]) -> NDArray[np.uint8]:
        """(height, width, 3) vehicles at `poses` (m, 3), the ego vehicle first, and its `trail`."""
        corner = np.array(self._pixels(poses[:1, :2])[0]) - np.array(SIZE) * _FINER / 2
        left, top = corner.round().astype(int).tolist()
        view = self._image.crop((left, top, left + SIZE[0] * _FINER, top + SIZE[1] * _FINER))
        draw = ImageDraw.Draw(view)
        if len(trail) > 1:
            way = self._pixels(np.array(trail), (left, top))
            draw.line(way, fill=_EGO_TRAIL, width=round(0.3 * SCALE * _FINER), joint="curve")
        for number in reversed(range(len(poses))):
            self._vehicle(draw, poses[number], _OTHER if number else _EGO, (left, top))
        return np.asarray(view.resize(SIZE, Image.Resampling.BOX))

    def _vehicle(self, draw: ImageDraw.ImageDraw, pose: Points, colour: str, corner: tuple[int, int]) -> None:
        self._fill(draw, corners(pose[None])[0], colour, _OUTLINE, corner)
        shape = np.array(_WINDSCREEN) * [VEHICLE_LENGTH / 4.5, VEHICLE_WIDTH / 1.85]
        cos, sin = np.cos(pose[2]), np.sin(pose[2])
        self._fill(draw, pose[:2] + shape @ np.array([[cos, sin], [-sin, cos]]), _GLASS, _GLASS, corner)

    def _fill(
        self,
        draw: ImageDraw.ImageDraw,
        shape: Points,
        colour: str,
        outline: str,
        corner: tuple[int, int] = (0, 0),
    ) -> None:
        draw.polygon(self._pixels(shape, corner), fill=colour, outline=outline, width=_FINER)

    def _line(self, draw: ImageDraw.ImageDraw, points: Points, kind: str) -> None:
        colour = _LINES["yellow" if "YELLOW" in kind else "broken" if "BROKEN" in kind else "solid"]
        width = round(0.2 * SCALE * _FINER)
        for piece in _dashes(points) if "BROKEN" in kind else [points]:
            draw.line(self._pixels(piece), fill=colour, width=width, joint="curve")

    def _pixels(self, points: Points, corner: tuple[int, int] = (0, 0)) -> list[tuple[float, float]]:
        """Of `points` (n, 2) in the map, or in the part of it that begins at `corner`."""
        x, y = (points - self._low).T
        scale = SCALE * _FINER
        return list(zip(x * scale - corner[0], (self._height - y) * scale - corner[1], strict=True))


def _dashes(points: Points) -> list[Points]:
    """Every other stretch of a line through `points` (n, 2)."""
    along = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))])
    starts = np.arange(0.0, along[-1] - _DASH, 2 * _DASH)
    return [
        np.column_stack([np.interp(ends, along, column) for column in points.T])
        for ends in np.linspace(starts, starts + _DASH, 4, axis=1)
    ]
