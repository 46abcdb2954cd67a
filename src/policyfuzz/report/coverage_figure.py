"""The picture of what campaigns covered: mixtures over states on equal axes, and numbers over episodes."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse as EllipsePatch
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from policyfuzz.report.marks import CRASHED, DRAWN, SERIES, Mark, picture_text
from policyfuzz.report.png_files import write_png
from policyfuzz.store.coverage_file import RANDOM, CampaignCoverage, Coverage

#: Inches of the picture's width, of a panel of states and of one of curves; dots per inch.
_WIDTH, _PANEL_HEIGHT, _CURVE_HEIGHT, _DOTS_PER_INCH = 10.0, 3.1, 2.7, 110
_COLUMNS = 3
#: Share of all states that panels leave out on each side, and the room around the others.
_OUTSIDE, _ROOM = 0.002, 0.06
#: Characters of a name, and of what is said of an axis.
_NAME_WIDTH, _AXIS_WIDTH = 40, 75


def draw_coverage(coverage: Coverage, path: Path) -> None:
    """Draw `coverage` into the PNG file `path`."""
    write_png(lambda: coverage_figure(coverage), path, _DOTS_PER_INCH)


def coverage_figure(coverage: Coverage) -> Figure:
    """A panel of states for each group of campaigns, and below them numbers over episodes.

    Of a group, the first campaign is shown, and the mean of all with their range.
    """
    groups = coverage.groups
    rows = -(-len(groups) // _COLUMNS)
    heights = [rows * _PANEL_HEIGHT, _CURVE_HEIGHT]
    figure = Figure(figsize=(_WIDTH, sum(heights) + 1.0), layout="constrained")
    figure.suptitle(_title(coverage), fontsize="medium")
    above, below = figure.subfigures(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    columns = min(_COLUMNS, len(groups))
    grid = above.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    limits = _limits(coverage)
    for axes in grid.ravel()[len(groups) :]:
        axes.remove()
    for number, (axes, (name, some)) in enumerate(zip(grid.ravel(), groups.items(), strict=False)):
        _draw_states(axes, some[0], _mark(number, name))
        axes.set_title(_panel_title(name, some), loc="left", fontsize="small")
        axes.set_xlim(*limits[0])
        axes.set_ylim(*limits[1])
        axes.tick_params(labelbottom=number >= len(groups) - columns)
    above.supxlabel(_axis(coverage, 0), fontsize="small")
    above.supylabel(_axis(coverage, 1), fontsize="small")
    curves: list[tuple[str, Callable[[CampaignCoverage], Sequence[float]]]] = [
        (f"share of {coverage.reference:,} reference behaviours", lambda one: _shares(coverage, one)),
        (f"cells of states, side {coverage.cell:g} standard deviations", lambda one: one.curve.cells),
        ("area of ellipses [squared standard deviations]", lambda one: one.curve.area),
    ]
    for place, (axes, (title, values)) in enumerate(zip(below.subplots(1, 3), curves, strict=True)):
        _draw_curves(axes, coverage, values)
        axes.set_title(title, loc="left", fontsize="small")
        if place == 0:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    handles, names = below.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, fontsize="small", frameon=False)
    return figure


def _draw_states(axes: Axes, one: CampaignCoverage, mark: Mark) -> None:
    axes.plot(one.xs, one.ys, linestyle="", marker=".", markersize=3.5, color=mark.colour, alpha=0.4, mew=0)
    for ellipse in one.ellipses:
        patch = EllipsePatch(
            (ellipse.x, ellipse.y), 2 * ellipse.long, 2 * ellipse.short, angle=ellipse.angle, fill=False
        )
        patch.set(edgecolor="black", linewidth=1.1, alpha=0.85)
        axes.add_patch(patch)
    if one.crash_xs:
        axes.plot(
            one.crash_xs,
            one.crash_ys,
            linestyle="",
            marker=CRASHED.marker,
            markersize=6,
            color=CRASHED.colour,
            markeredgecolor="white",
            markeredgewidth=0.6,
        )
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize="x-small")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_curves(
    axes: Axes, coverage: Coverage, values: Callable[[CampaignCoverage], Sequence[float]]
) -> None:
    for number, (name, some) in enumerate(coverage.groups.items()):
        mark = _mark(number, name)
        table = np.array([[0.0, *values(one)] for one in some])
        times = np.array([0, *some[0].curve.episodes])
        if len(some) > 1:
            axes.fill_between(
                times, table.min(axis=0), table.max(axis=0), color=mark.colour, alpha=0.18, linewidth=0
            )
        axes.plot(
            times,
            table.mean(axis=0),
            color=mark.colour,
            linestyle=mark.line,
            linewidth=1.8,
            label=picture_text(name, _NAME_WIDTH),
        )
    axes.set_xlabel("episodes", fontsize="small")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlim(0, coverage.episodes)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.tick_params(labelsize="x-small")
    axes.spines[["top", "right"]].set_visible(False)


def _mark(number: int, group: str) -> Mark:
    return DRAWN if group == RANDOM else SERIES[number % len(SERIES)]


def _shares(coverage: Coverage, one: CampaignCoverage) -> list[float]:
    return [reached / coverage.reference for reached in one.curve.behaviours]


def _limits(coverage: Coverage) -> list[tuple[float, float]]:
    """Of x and y, so that all panels show nearly all states of all campaigns, and all crashes."""
    limits = []
    for states, crashes in (("xs", "crash_xs"), ("ys", "crash_ys")):
        values = np.concatenate([getattr(one, states) for one in coverage.all])
        low, high = np.quantile(values, [_OUTSIDE, 1 - _OUTSIDE]) if len(values) else (-1.0, 1.0)
        others = np.concatenate([getattr(one, crashes) for one in coverage.all])
        low, high = min([low, *others]), max([high, *others])
        room = _ROOM * max(high - low, 1e-6)
        limits.append((float(low - room), float(high + room)))
    return limits


def _title(coverage: Coverage) -> str:
    what = "all" if coverage.is_every_episode else "what campaign files know"
    lines = [
        f"{picture_text(coverage.target, _NAME_WIDTH)}: {what} of the first {coverage.episodes:,} episodes",
        "dots: states; ellipses: two standard deviations of a mixture; crosses: crashes",
    ]
    words = [
        f"direction {place}: {picture_text(one, _AXIS_WIDTH)}"
        for place, one in enumerate(coverage.axes, 1)
        if one
    ]
    return "\n".join([*lines, *filter(None, ["; ".join(words)])])


def _panel_title(name: str, some: Sequence[CampaignCoverage]) -> str:
    which = f", first of {len(some)}" if len(some) > 1 else ""
    return f"{picture_text(name, _NAME_WIDTH)}{which}"


def _axis(coverage: Coverage, place: int) -> str:
    share = f" ({coverage.explained[place]:.0%} of variance)" if len(coverage.explained) > place else ""
    return f"direction {place + 1} of states{share}, no unit"
