"""Curves with bands: what was found over episodes, and over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from benchmarks.versus.columns import COLUMNS
from benchmarks.versus.metrics import curve, mass_curve
from benchmarks.versus.raw import RawTrial
from benchmarks.versus.results import Results, bootstrap
from policyfuzz.core.errors import CampaignError


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
    "mdpfuzz-published": Style("#0072b2", ":"),
    "reward-published": Style("#56b4e9", ":"),
    "random": Style("#444444"),
    "pypi-mdpfuzz": Style("#009e73"),
    "pypi-mdpfuzz-no-coverage": Style("#009e73", "--"),
    "cma-me": Style("#cc79a7"),
    "curiosity": Style("#e69f00"),
    "half-noise": Style("#444444", "--"),
}
_OTHER = Style("#999999", ":")
#: The first panel of a target without a reference set has the second instead.
_MASS, _WITHOUT_MASS = "mass_near", "behaviours"
#: Panels of a target: over episodes, and over time.
_PANELS, _TIME_PANELS = (_MASS, "packed_near", "packed_close"), ("packed_near", "packed_close")
#: Points of a curve.
_POINTS = 100
#: Inches of one panel.
_WIDTH, _HEIGHT = 5.2, 2.6


def grid(episodes: int) -> NDArray[np.float64]:
    """(p,) numbers of episodes at which curves are drawn, 0 included."""
    return np.unique(np.linspace(0, episodes, _POINTS + 1).round())


def draw_episodes(results: Results, path: Path) -> None:
    """Draw what was found over episodes, a row for each target, into a PNG file."""

    def draw(axes: Axes, label: str, metric: str) -> None:
        for contestant in results.contestants:
            trials = results.drawn(label, contestant)
            if trials:
                points = grid(trials[0].task.episodes)
                _band(axes, contestant, points, [_curve(results, one, metric, points) for one in trials])
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))

    labels = [one for one in results.labels if any(results.drawn(one, name) for name in results.contestants)]
    panels = {label: _panels(results, label) for label in labels}
    if panels:
        _draw(panels, results.contestants, draw, "episodes", path)


def draw_time(results: Results, contestants: Sequence[str], path: Path) -> None:
    """Draw the same over CPU time, for contestants that know when they found what."""

    def draw(axes: Axes, label: str, metric: str) -> None:
        for contestant in contestants:
            trials = results.drawn(label, contestant)
            if trials:  # up to the end of the shortest trial
                points = np.linspace(0, min(trial.cpu_seconds for trial in trials), _POINTS + 1)
                _band(axes, contestant, points, [curve(one, metric, points, "cpu_times") for one in trials])

    labels = [label for label in results.labels if any(results.drawn(label, name) for name in contestants)]
    if labels:
        _draw(dict.fromkeys(labels, _TIME_PANELS), contestants, draw, "seconds of CPU time", path)


def _panels(results: Results, label: str) -> tuple[str, ...]:
    return _PANELS if label in results.references else (_WITHOUT_MASS, *_PANELS[1:])


def _curve(
    results: Results, trial: RawTrial, metric: str, points: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(p,) one metric at `points` (p,) of episodes."""
    covered = results.covered(trial)
    if metric == _MASS and covered is not None:
        return mass_curve(covered, points)
    return curve(trial, metric, points)


def _draw(
    panels: Mapping[str, Sequence[str]],
    contestants: Sequence[str],
    draw: Callable[[Axes, str, str], None],
    clock: str,
    path: Path,
) -> None:
    """Draw a row for each target in `panels`, with a panel for each of its metrics."""
    wide = max(map(len, panels.values()))
    figure = Figure(figsize=(wide * _WIDTH, len(panels) * _HEIGHT + 0.8), layout="constrained")
    grid_of_axes = figure.subplots(len(panels), wide, squeeze=False)
    for row, (label, metrics) in zip(grid_of_axes, panels.items(), strict=True):
        for axes, metric in zip(row, metrics, strict=True):
            draw(axes, label, metric)
            _dress(axes, f"{label}: {COLUMNS[metric].name}", is_share=metric == _MASS)
    for axes in grid_of_axes[-1]:
        axes.set_xlabel(clock)
    # once for all panels, above them
    handles = [figure.axes[0].plot([], [], **_line(name), label=name)[0] for name in contestants]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=len(handles) if len(handles) < 6 else 5,
        frameon=False,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110, format="png")
    except OSError as error:
        raise CampaignError(f"cannot write {path}: {error.strerror or error}") from error


def _band(
    axes: Axes, contestant: str, points: NDArray[np.float64], curves: Sequence[NDArray[np.float64]]
) -> None:
    """The mean of `curves`, each (p,), and its 95 % bootstrap interval."""
    values = np.array(curves, np.float64)
    low, high = bootstrap(values)
    axes.fill_between(points, low, high, color=STYLES.get(contestant, _OTHER).colour, alpha=0.15, linewidth=0)
    axes.plot(points, values.mean(axis=0), **_line(contestant))


def _line(contestant: str) -> dict[str, Any]:
    style = STYLES.get(contestant, _OTHER)
    return {"color": style.colour, "linestyle": style.line, "linewidth": style.width}


def _dress(axes: Axes, title: str, is_share: bool) -> None:
    axes.set_title(title, fontsize="medium", loc="left")
    if is_share:
        axes.set_ylim(0, 1)
    else:  # contestants differ by orders of magnitude, and some find nothing
        axes.set_yscale("symlog", linthresh=1, linscale=0.3)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,.0f}"))
        axes.set_ylim(0, max(axes.get_ylim()[1], 1))
    axes.margins(x=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
