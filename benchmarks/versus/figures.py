"""Curves with bands: findings over episodes, and over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from benchmarks.versus.metrics import distinct_over, findings_over
from benchmarks.versus.raw import RawTrial
from benchmarks.versus.results import Results, bootstrap
from policyfuzz.core.errors import CampaignError

Count = Callable[[RawTrial, NDArray[np.float64], str], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Style:
    """How the line of a contestant looks, everywhere."""

    colour: str
    line: str = "-"
    width: float = 1.4


#: Colours that colour-blind readers can tell apart; those of relatives are alike.
STYLES: Mapping[str, Style] = {
    "default": Style("#d55e00", width=2.4),
    "mdpfuzz": Style("#0072b2"),
    "reward": Style("#56b4e9", "--"),
    "random": Style("#444444"),
    "pypi-mdpfuzz": Style("#009e73"),
    "pypi-mdpfuzz-no-coverage": Style("#009e73", "--"),
    "cma-me": Style("#cc79a7"),
    "curiosity": Style("#e69f00"),
}
_OTHER = Style("#999999", ":")
_COUNTS: Mapping[str, Count] = {"findings": findings_over, "distinct findings": distinct_over}
#: Points of a curve.
_POINTS = 100
#: Inches of one panel.
_WIDTH, _HEIGHT = 5.2, 2.6


def grid(episodes: int) -> NDArray[np.float64]:
    """(p,) numbers of episodes at which curves are drawn, 0 included."""
    return np.unique(np.linspace(0, episodes, _POINTS + 1).round())


def draw_episodes(results: Results, path: Path) -> None:
    """Draw findings and distinct findings over episodes, a row for each target, into a PNG file."""

    def draw(axes: Axes, label: str, count: Count) -> None:
        for contestant in results.contestants:
            trials = results.of(label, contestant)
            if trials:
                points = grid(trials[0].task.episodes)
                _band(axes, contestant, points, trials, count, "numbers")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))

    _draw(results.labels, results.contestants, draw, "episodes", path)


def draw_time(results: Results, contestants: Sequence[str], path: Path) -> None:
    """Draw the same over CPU time, for contestants that know when they found what."""

    def draw(axes: Axes, label: str, count: Count) -> None:
        for contestant in contestants:
            trials = results.of(label, contestant)
            if trials:  # up to the end of the shortest trial
                points = np.linspace(0, min(trial.cpu_seconds for trial in trials), _POINTS + 1)
                _band(axes, contestant, points, trials, count, "cpu_times")

    labels = [label for label in results.labels if any(results.of(label, name) for name in contestants)]
    if labels:
        _draw(labels, contestants, draw, "seconds of CPU time", path)


def _draw(
    labels: Sequence[str],
    contestants: Sequence[str],
    draw: Callable[[Axes, str, Count], None],
    clock: str,
    path: Path,
) -> None:
    figure = Figure(figsize=(2 * _WIDTH, len(labels) * _HEIGHT + 0.8), layout="constrained")
    grid_of_axes = figure.subplots(len(labels), len(_COUNTS), squeeze=False)
    for row, label in zip(grid_of_axes, labels, strict=True):
        for axes, (name, count) in zip(row, _COUNTS.items(), strict=True):
            draw(axes, label, count)
            _dress(axes, f"{label}: {name}")
    for axes in grid_of_axes[-1]:
        axes.set_xlabel(clock)
    # once for all panels, above them
    handles = [figure.axes[0].plot([], [], **_line(name), label=name)[0] for name in contestants]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=len(handles) if len(handles) < 6 else 4,
        frameon=False,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, format="png")
    except OSError as error:
        raise CampaignError(f"cannot write {path}: {error.strerror or error}") from error


def _band(
    axes: Axes,
    contestant: str,
    points: NDArray[np.float64],
    trials: list[RawTrial],
    count: Count,
    clock: str,
) -> None:
    """The mean over trials, and its 95 % bootstrap interval."""
    curves = np.array([count(trial, points, clock) for trial in trials], np.float64)
    low, high = bootstrap(curves)
    axes.fill_between(points, low, high, color=STYLES.get(contestant, _OTHER).colour, alpha=0.15, linewidth=0)
    axes.plot(points, curves.mean(axis=0), **_line(contestant))


def _line(contestant: str) -> dict[str, Any]:
    style = STYLES.get(contestant, _OTHER)
    return {"color": style.colour, "linestyle": style.line, "linewidth": style.width}


def _dress(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize="medium", loc="left")
    # contestants differ by orders of magnitude, and some find nothing
    axes.set_yscale("symlog", linthresh=1, linscale=0.3)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,.0f}"))
    axes.set_ylim(0, max(axes.get_ylim()[1], 1))
    axes.margins(x=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
