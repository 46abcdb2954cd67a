"""A picture of an encounter: both tracks, the advisories along the way, and the closest approach."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle
from numpy.typing import NDArray

from policyfuzz.report.recording import Recording, record
from policyfuzz.target import Target
from policyfuzz.targets.acasxu import encounter
from policyfuzz.targets.acasxu.picture import COLOURS

_INTRUDER = "black"


def draw_encounter(target: Target, row: NDArray[np.float64], seed: int, path: Path) -> None:
    """Draw the encounter of input `row` (4,) into the PNG file `path`."""
    columns = [encounter.OWN_X, encounter.OWN_Y, encounter.INT_X, encounter.INT_Y]
    recording = record(target, row, seed, look=lambda _step, simulator: simulator.flights[0, columns].copy())
    figure = Figure(figsize=(11, 6), layout="constrained")
    plan, side = figure.subplots(1, 2, width_ratios=(3, 2))
    _draw_tracks(plan, recording)
    _draw_range(side, recording)
    ranges = recording.signals[:, 0]
    step = int(recording.executions.verdicts.steps[0])
    begin = f"{step * encounter.STEP_SECONDS:.1f} s (step {step})"
    verdict = f"collision from {begin}" if step >= 0 else "no collision"
    speed = encounter.intruder_velocity(row[None])[1][0]
    figure.suptitle(
        f"{verdict}, closest approach {ranges.min():.1f} ft\n"
        f"own speed {row[0]:.0f} ft/s, intruder {speed:.0f} ft/s, {ranges[0]:,.0f} ft apart at the start"
    )
    figure.savefig(path, dpi=120, format="png")


def _draw_tracks(axes: Axes, recording: Recording) -> None:
    """Both tracks from above, a dot every second, the collision circle at the closest approach."""
    tracks = np.array(recording.scenes)
    own, intruder = tracks[:, :2], tracks[:, 2:]
    closest = int(recording.signals[:, 0].argmin())
    seconds = slice(0, None, round(1 / encounter.STEP_SECONDS))
    axes.plot(*intruder.T, color=_INTRUDER, linewidth=1.5)
    pieces = np.stack([own[:-1], own[1:]], axis=1)
    colours = [COLOURS[int(advisory)] for advisory in recording.actions]
    axes.add_collection(LineCollection(list(pieces), colors=colours, linewidths=3))
    axes.plot(*own[seconds].T, "o", color="0.25", markersize=3)
    axes.plot(*intruder[seconds].T, "o", color=_INTRUDER, markersize=3)
    axes.plot(*np.stack([own[closest], intruder[closest]]).T, color="red", linewidth=1, linestyle="--")
    axes.add_patch(Circle(tuple(own[closest]), encounter.COLLISION_FEET, color="red", alpha=0.2))
    for start, label in ((own[0], "ownship"), (intruder[0], "intruder")):
        axes.annotate(label, tuple(start), textcoords="offset points", xytext=(6, -12))
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("east [ft]")
    axes.set_ylabel("north [ft]")
    axes.grid(alpha=0.3)
    given = sorted({int(advisory) for advisory in recording.actions})
    lines = [
        Line2D([], [], color=COLOURS[one], linewidth=3, label=encounter.ADVISORIES[one]) for one in given
    ]
    lines.append(Line2D([], [], color=_INTRUDER, linewidth=1.5, label="intruder"))
    axes.legend(handles=lines, loc="best", fontsize="small")


def _draw_range(axes: Axes, recording: Recording) -> None:
    """The range over time, the advisory of each step as the colour behind it."""
    ranges = recording.signals[:, 0]
    times = np.arange(len(ranges)) * encounter.STEP_SECONDS
    for step, advisory in enumerate(recording.actions):
        if advisory:
            axes.axvspan(times[step], times[step + 1], color=COLOURS[int(advisory)], alpha=0.25, linewidth=0)
    axes.plot(times, ranges, color="black")
    axes.axhline(encounter.COLLISION_FEET, color="red", linestyle="--", linewidth=1)
    axes.annotate("200 ft", (times[0], encounter.COLLISION_FEET), color="red", va="bottom")
    closest = int(ranges.argmin())
    axes.plot(times[closest], ranges[closest], "o", color="red")
    axes.set_xlim(times[0], times[-1])
    axes.set_ylim(bottom=0)
    axes.set_xlabel("time [s]")
    axes.set_ylabel("range [ft]")
    axes.grid(alpha=0.3)
