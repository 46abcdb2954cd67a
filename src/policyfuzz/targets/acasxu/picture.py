"""Pictures of an encounter: from above at one moment, and as a whole."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from policyfuzz.core.branches import Segment
from policyfuzz.core.recording import Recording, record
from policyfuzz.core.target import Target
from policyfuzz.targets.acasxu import encounter
from policyfuzz.targets.acasxu.encounter import INT_HEADING, INT_X, INT_Y, OWN_HEADING, OWN_X, OWN_Y

#: One colour for each advisory: grey, then left in blues and right in reds, strong ones darker.
COLOURS = ("#999999", "#74add1", "#f46d43", "#2b4fa2", "#a50026")

_SIZE = 640  #: pixels
_ZOOM = 2  #: drawn this much larger and scaled down, which smooths the edges
_INTRUDER, _SKY, _GRID, _CLOSE = "#111111", "#f7f9fc", "#dfe5ee", "#d02020"
#: The shape of an aircraft that flies along x, in pixels of the picture.
_AIRCRAFT = np.array([[14, 0], [-9, 8], [-4, 0], [-9, -8]], float)
_WITNESS, _LAST_CHANCE = "#E69F00", "#5B2A86"
_MARGIN = 0.12  #: of the view, round the tracks


class View:
    """The part of the sky that an encounter needs if both aircraft fly straight."""

    def __init__(self, start: NDArray[np.float64]) -> None:
        """Choose it by the first flight state (11,)."""
        seconds = encounter.STEPS * encounter.STEP_SECONDS
        own, intruder = start[[OWN_X, OWN_Y]], start[[INT_X, INT_Y]]
        own_way = start[[encounter.OWN_DX, encounter.OWN_DY]] * start[encounter.OWN_V] * seconds
        intruder_way = start[[encounter.INT_VX, encounter.INT_VY]] * seconds
        corners = np.array([own, own + own_way, intruder, intruder + intruder_way])
        low, high = corners.min(axis=0), corners.max(axis=0)
        self._centre = (low + high) / 2
        self._feet = max(float((high - low).max()), 2 * encounter.RANGE_FEET[0]) * (1 + 2 * _MARGIN)

    def pixel(self, point: NDArray[np.float64]) -> tuple[float, float]:
        """Where a point (2,) lies in the large picture; north is up."""
        x, y = (point - self._centre) / self._feet
        return (0.5 + float(x)) * _SIZE * _ZOOM, (0.5 - float(y)) * _SIZE * _ZOOM

    def length(self, feet: float) -> float:
        """Pixels of the large picture."""
        return feet / self._feet * _SIZE * _ZOOM

    @property
    def grid_feet(self) -> float:
        """A round distance, of which a few fit into the view."""
        return float(10 ** np.floor(np.log10(self._feet / 2)))


def draw_encounter_now(
    view: View, flights: Sequence[NDArray[np.float64]], advisories: Sequence[int]
) -> NDArray[np.uint8]:
    """A picture (640, 640, 3) of all flight states (11,) up to now, and the advisories between them."""
    image = Image.new("RGB", (_SIZE * _ZOOM, _SIZE * _ZOOM), _SKY)
    pen = ImageDraw.Draw(image)
    _draw_grid(pen, view)
    for (before, after), advisory in zip(pairwise(flights), advisories, strict=True):
        _draw_way(pen, view, before[[OWN_X, OWN_Y]], after[[OWN_X, OWN_Y]], COLOURS[advisory], 5)
        _draw_way(pen, view, before[[INT_X, INT_Y]], after[[INT_X, INT_Y]], _INTRUDER, 2)
    now = flights[-1]
    advisory = advisories[-1] if advisories else 0
    distance = float(np.hypot(*(now[[OWN_X, OWN_Y]] - now[[INT_X, INT_Y]])))
    x, y = view.pixel(now[[OWN_X, OWN_Y]])
    radius = max(view.length(encounter.COLLISION_FEET), 6 * _ZOOM)
    ring = _CLOSE if distance < encounter.COLLISION_FEET else COLOURS[advisory]
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), outline=ring, width=2 * _ZOOM)
    _draw_aircraft(pen, view, now[[OWN_X, OWN_Y]], now[OWN_HEADING], COLOURS[advisory])
    _draw_aircraft(pen, view, now[[INT_X, INT_Y]], now[INT_HEADING], _INTRUDER)
    font = ImageFont.load_default(size=17 * _ZOOM)
    pen.text((16 * _ZOOM, 14 * _ZOOM), encounter.ADVISORIES[advisory], COLOURS[advisory], font)
    pen.text((16 * _ZOOM, 38 * _ZOOM), f"{distance:,.0f} ft apart", ring, font)
    return np.asarray(image.resize((_SIZE, _SIZE), Image.Resampling.BOX))


def _draw_grid(pen: ImageDraw.ImageDraw, view: View) -> None:
    """Lines at round distances from the ownship's start, and what they are apart."""
    whole = _SIZE * _ZOOM
    x0, y0 = view.pixel(np.zeros(2))
    gap = view.length(view.grid_feet)
    for start, is_upright in ((x0 % gap, True), (y0 % gap, False)):
        for at in np.arange(start, whole, gap):
            pen.line((at, 0, at, whole) if is_upright else (0, at, whole, at), fill=_GRID, width=_ZOOM)
    font = ImageFont.load_default(size=13 * _ZOOM)
    pen.text((whole - 12 * _ZOOM, 12 * _ZOOM), f"grid {view.grid_feet:,.0f} ft", "#8a94a6", font, anchor="rt")


def _draw_way(
    pen: ImageDraw.ImageDraw,
    view: View,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    colour: str,
    width: int,
) -> None:
    pen.line((*view.pixel(before), *view.pixel(after)), fill=colour, width=width * _ZOOM)


def _draw_aircraft(
    pen: ImageDraw.ImageDraw, view: View, place: NDArray[np.float64], heading: float, colour: str
) -> None:
    cos, sin = np.cos(heading), np.sin(heading)
    turned = _AIRCRAFT @ np.array([[cos, -sin], [-sin, -cos]]).T * _ZOOM
    x, y = view.pixel(place)
    pen.polygon([(x + float(ahead), y + float(up)) for ahead, up in turned], fill=colour, outline="white")


def draw_encounter(
    target: Target,
    row: NDArray[np.float64],
    seed: int,
    path: Path,
    branch: Sequence[Segment] = (),
    last_chance: int | None = None,
) -> None:
    """Draw the encounter of input `row` (4,) into the PNG file `path`.

    A witness that does what `branch` says is drawn beside the policy, and the point of no return marked.
    """
    columns = [encounter.OWN_X, encounter.OWN_Y, encounter.INT_X, encounter.INT_Y]

    def look(_step: int, simulator: encounter.EncounterSimulator) -> NDArray[np.float64]:
        return simulator.flights[0, columns].copy()

    recording = record(target, row, seed, look)
    witness = record(target, row, seed, look, branch) if branch else None
    figure = Figure(figsize=(11, 6), layout="constrained")
    plan, side = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_tracks(plan, recording, witness, last_chance)
    _draw_range(side, recording, witness, last_chance)
    ranges = recording.signals[:, 0]
    step = int(recording.executions.verdicts.steps[0])
    begin = f"{step * encounter.STEP_SECONDS:.1f} s (step {step})"
    verdict = f"collision from {begin}" if step >= 0 else "no collision"
    beside = "" if witness is None else f"; of the {_name(witness)} {witness.signals[:, 0].min():,.1f} ft"
    speed = encounter.intruder_velocity(row[None])[1][0]
    figure.suptitle(
        f"{verdict}, closest approach {ranges.min():.1f} ft{beside}\n"
        f"own speed {row[0]:.0f} ft/s, intruder {speed:.0f} ft/s, {ranges[0]:,.0f} ft apart at the start"
    )
    figure.savefig(path, dpi=120, format="png")


def _draw_tracks(
    axes: Axes, recording: Recording, witness: Recording | None, last_chance: int | None
) -> None:
    """All tracks from above, a dot every second, the collision circle at the closest approach."""
    tracks = np.array(recording.scenes)
    own, intruder = tracks[:, :2], tracks[:, 2:]
    closest = int(recording.signals[:, 0].argmin())
    seconds = slice(0, None, round(1 / encounter.STEP_SECONDS))
    axes.plot(*intruder.T, color=_INTRUDER, linewidth=1.5)
    axes.plot(*intruder[seconds].T, "o", color=_INTRUDER, markersize=3)
    if witness is not None:
        other = np.array(witness.scenes)[:, :2]
        axes.plot(*other.T, color=_WITNESS, linewidth=9, alpha=0.6, solid_capstyle="round")
        _draw_own_track(axes, other, witness.actions, seconds)
        axes.annotate(_name(witness), tuple(other[-1]), textcoords="offset points", xytext=(9, 0))
        axes.annotate("policy", tuple(own[-1]), textcoords="offset points", xytext=(9, 0))
    _draw_own_track(axes, own, recording.actions, seconds)
    axes.plot(*np.stack([own[closest], intruder[closest]]).T, color="red", linewidth=1, linestyle="--")
    axes.add_patch(Circle(tuple(own[closest]), encounter.COLLISION_FEET, color="red", alpha=0.2))
    for start, label in ((own[0], "ownship"), (intruder[0], "intruder")):
        axes.annotate(label, tuple(start), textcoords="offset points", xytext=(6, -12))
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("east [ft]")
    axes.set_ylabel("north [ft]")
    axes.grid(alpha=0.3)
    both = recording.actions if witness is None else [*recording.actions, *witness.actions]
    given = sorted({int(advisory) for advisory in both})
    lines = [
        Line2D([], [], color=COLOURS[one], linewidth=3, label=encounter.ADVISORIES[one]) for one in given
    ]
    lines.append(Line2D([], [], color=_INTRUDER, linewidth=1.5, label="intruder"))
    if witness is not None:
        lines.append(Line2D([], [], color=_WITNESS, linewidth=9, alpha=0.6, label=_name(witness)))
    if last_chance is not None and last_chance < len(own):
        lines += axes.plot(
            *own[last_chance], "D", color=_LAST_CHANCE, markersize=8, label="point of no return"
        )
    axes.legend(handles=lines, loc="best", fontsize="small")


def _name(witness: Recording) -> str:
    """What to call an episode that departs from the policy."""
    return "other way" if witness.executions.crashed[0] else "witness"


def _draw_own_track(
    axes: Axes, track: NDArray[np.float64], advisories: Sequence[int], seconds: slice
) -> None:
    """A track (t, 2) of the ownship in the colours of its advisories."""
    pieces = np.stack([track[:-1], track[1:]], axis=1)
    colours = [COLOURS[int(advisory)] for advisory in advisories]
    axes.add_collection(LineCollection(list(pieces), colors=colours, linewidths=3))
    axes.plot(*track[seconds].T, "o", color="0.25", markersize=3)


def _draw_range(axes: Axes, recording: Recording, witness: Recording | None, last_chance: int | None) -> None:
    """The range over time, the policy's advisory of each step as the colour behind it."""
    ranges = recording.signals[:, 0]
    times = np.arange(len(ranges)) * encounter.STEP_SECONDS
    for step, advisory in enumerate(recording.actions):
        if advisory:
            axes.axvspan(times[step], times[step + 1], color=COLOURS[int(advisory)], alpha=0.25, linewidth=0)
    if witness is not None:
        axes.plot(times, witness.signals[:, 0], color=_WITNESS, linewidth=3, label=_name(witness))
    axes.plot(times, ranges, color="black", label="policy")
    axes.axhline(encounter.COLLISION_FEET, color="red", linestyle="--", linewidth=1)
    axes.annotate("200 ft", (times[-1], encounter.COLLISION_FEET), color="red", ha="right", va="bottom")
    closest = int(ranges.argmin())
    axes.plot(times[closest], ranges[closest], "o", color="red")
    if last_chance is not None:
        when = last_chance * encounter.STEP_SECONDS
        axes.axvline(when, color=_LAST_CHANCE, linestyle=":", label="point of no return")
    if witness is not None or last_chance is not None:
        axes.legend(loc="best", fontsize="small")
    axes.set_xlim(times[0], times[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("range [ft]")
    axes.grid(alpha=0.3)
