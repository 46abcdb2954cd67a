"""Draws the figures of a campaign in one style, in colours that colour-blind people can tell apart."""

import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, NullFormatter, ScalarFormatter
from numpy.typing import NDArray

from policyfuzz.report.figures.distributions import Histogram
from policyfuzz.report.figures.history import ActivityTimes, Discovery
from policyfuzz.report.figures.maps import INPUTS, PointMap
from policyfuzz.report.marks import BAND, MODES, OTHER_MODES, POLICY, mode_mark, picture_text

#: A matplotlibrc in the current folder may be a stranger's, and TeX is a program: what matters is set here.
_STYLE = {
    "text.usetex": False,
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.labelcolor": "#333333",
    "axes.facecolor": "white",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "text.color": "#222222",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "legend.frameon": False,
    "path.simplify": True,
    "svg.fonttype": "path",
    "svg.hashsalt": "policyfuzz",  # or every run would name the parts of a drawing differently
    "svg.image_inline": True,
}
#: Dots per inch of PNG files, and of points inside SVG files, which are pixels: thousands would be megabytes.
_DOTS_PER_INCH = 144
_FINDINGS, _DISTINCT, _LINEAGES, _RANDOM = POLICY, "#009E73", "#D55E00", "#6E6E6E"
_CORPUS = "#C9C9C9"
#: Labels at the end of lines, in points between two of them.
_LABEL_POINTS = 11.0
#: Curves of campaigns side by side that have a colour of their own.
MOST_CURVES = len(MODES)


def svg_of(draw: Callable[[], Figure]) -> bytes:
    """The figure that `draw` makes, as SVG; the same figure gives the same bytes."""
    return _saved(draw, "svg", {"Date": None, "Creator": None})


def png_of(draw: Callable[[], Figure]) -> bytes:
    """The figure that `draw` makes, as PNG."""
    return _saved(draw, "png", {"Software": None})


def _saved(draw: Callable[[], Figure], form: str, metadata: Mapping[str, None]) -> bytes:
    data = io.BytesIO()
    with _style():
        draw().savefig(data, format=form, dpi=_DOTS_PER_INCH, metadata=dict(metadata))
    return data.getvalue()


@contextmanager
def _style() -> Iterator[None]:
    with rc_context(_STYLE):  # type: ignore[arg-type]  # names are checked when they are set
        yield


def draw_discovery(curve: Discovery) -> Figure:
    """Findings, distinct ones and lineages over episodes, against what random draws would have found."""
    figure, axes = _figure(7.6, 3.6)
    top = max([1, *curve.findings, *curve.random_high])
    is_logarithmic = top > 20
    floor = 0.8 if is_logarithmic else 0.0
    ends: list[tuple[float, str, str]] = []
    if curve.random:
        low = np.maximum(curve.random_low, floor)
        axes.fill_between(
            curve.episodes, low, np.maximum(curve.random_high, floor), color=BAND, linewidth=0, alpha=0.8
        )
        axes.plot(curve.episodes, _above(curve.random, floor), color=_RANDOM, linestyle="--", linewidth=1.4)
        end = curve.random[-1] if curve.random[-1] >= floor else curve.random_high[-1]
        ends.append((end, "random draws\n(95 % band)", _RANDOM))
    for values, label, colour in (
        (curve.findings, "findings", _FINDINGS),
        (curve.distinct, "distinct", _DISTINCT),
        (curve.lineages, "lineages", _LINEAGES),
    ):
        axes.plot(curve.episodes, _above(values, floor), color=colour, linewidth=1.8)
        if values and values[-1] >= max(floor, 1):
            ends.append((values[-1], f"{values[-1]:,} {label}", colour))
    axes.set_xlim(0, max([1, *curve.episodes]))
    _value_axis(axes, is_logarithmic, floor, top)
    axes.set_xlabel("episodes")
    axes.set_ylabel("found so far")
    _label_ends(figure, axes, ends)
    return figure


def draw_side_by_side(curves: Mapping[str, Discovery]) -> Figure:
    """Distinct findings over episodes of several campaigns."""
    figure, axes = _figure(7.6, 3.6)
    shown = list(curves.items())[:MOST_CURVES]
    ends = []
    for (name, curve), (colour, marker) in zip(shown, MODES, strict=False):
        if curve.episodes:
            axes.plot(
                curve.episodes, curve.distinct, color=colour, linewidth=1.8, marker=marker, markevery=0.12
            )
            ends.append((float(curve.distinct[-1]), picture_text(name, 22), colour))
    axes.set_xlim(0, max([1, *(one for _, curve in shown for one in curve.episodes)]))
    top = max([1, *(one for _, curve in shown for one in curve.distinct)])
    _value_axis(axes, False, 0.0, top)
    axes.set_xlabel("episodes")
    axes.set_ylabel("distinct findings")
    _label_ends(figure, axes, ends)
    return figure


def draw_map(points: PointMap) -> Figure:
    """Findings in the colour and with the marker of their failure mode, over the corpus in grey."""
    figure, axes = _figure(5.6, 4.6)
    if points.corpus_x:
        axes.scatter(
            points.corpus_x,
            points.corpus_y,
            s=5,
            color=_CORPUS,
            linewidths=0,
            rasterized=True,
            label="corpus",
        )
    modes = np.array(points.modes, np.int64)
    x, y = np.array(points.x), np.array(points.y)
    for label, chosen, (colour, marker) in _mode_groups(modes):
        axes.scatter(
            x[chosen],
            y[chosen],
            s=16,
            c=colour,
            marker=marker,
            linewidths=0.3,
            edgecolors="white",
            alpha=0.85,
            rasterized=True,
            label=f"{label} ({np.count_nonzero(chosen):,})",
        )
    axes.set_title("Inputs" if points.what == INPUTS else "Behaviours")
    axes.set_xlabel(picture_text(points.axes[0].label, 70))
    axes.set_ylabel(picture_text(points.axes[1].label, 60))
    if points.axes[1].label == "":
        axes.set_yticks([])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5))
    if points.x or points.corpus_x:
        figure.legend(loc="outside lower center", ncols=5, markerscale=1.4, fontsize=8, handletextpad=0.2)
    return figure


def _mode_groups(
    modes: NDArray[np.int64],
) -> list[tuple[str, NDArray[np.bool_], tuple[str, str]]]:
    """Name, members (n,) and mark of each mode that is there, small numbers last so that they lie on top."""
    groups: list[tuple[str, NDArray[np.bool_], tuple[str, str]]] = []
    if (modes == 0).any():
        label = "findings" if (modes == 0).all() else "no mode"
        groups.append((label, modes == 0, MODES[0] if (modes == 0).all() else OTHER_MODES))
    if (modes > len(MODES)).any():
        groups.append((f"M{len(MODES) + 1} and on", modes > len(MODES), OTHER_MODES))
    groups += [
        (f"M{number}", modes == number, mode_mark(number))
        for number in sorted(set(modes[(modes > 0) & (modes <= len(MODES))].tolist()))
    ]
    return groups


def draw_histograms(made: Sequence[Histogram]) -> Figure:
    """Side by side, one panel each."""
    figure = Figure(figsize=(7.6, 2.3), layout="constrained")
    for place, one in enumerate(made, 1):
        axes = figure.add_subplot(1, len(made), place)
        axes.stairs(one.counts, one.edges, fill=True, color=POLICY, alpha=0.85)
        axes.set_xlabel(picture_text(one.label))
        axes.set_ylabel("findings" if place == 1 else "")
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.grid(False, axis="x")
        axes.set_ylim(bottom=0)
    return figure


def draw_time_split(split: ActivityTimes) -> Figure:
    """One bar, cut into the activities."""
    figure, axes = _figure(7.6, 1.25)
    total, left = sum(split.seconds) or 1.0, 0.0
    for (name, seconds), (colour, _) in zip(
        zip(split.activities, split.seconds, strict=True), MODES, strict=False
    ):
        share = seconds / total
        axes.barh(0, share, left=left, color=colour, label=f"{name} {share:.0%}", edgecolor="white")
        left += share
    axes.set(xlim=(0, 1), yticks=[])
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.spines[:].set_visible(False)
    axes.grid(False)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8)
    return figure


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def _above(values: Sequence[float], floor: float) -> NDArray[np.float64]:
    """`values` that a logarithmic axis from `floor` on can show; NaN for the others."""
    array = np.array(values, np.float64)
    return np.where(array >= floor, array, np.nan)


def _value_axis(axes: Axes, is_logarithmic: bool, floor: float, top: float) -> None:
    if is_logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ScalarFormatter() if top < 1e4 else EngFormatter(sep=""))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(floor, top * 1.5)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_ylim(floor, top * 1.08)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _label_ends(figure: Figure, axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write what a line is beside its end, no label on top of another."""
    figure.draw_without_rendering()
    height = axes.bbox.height * 72 / figure.dpi
    below = -math.inf
    for value, label, colour in sorted(ends, key=lambda one: one[0]):
        at = axes.transAxes.inverted().transform(axes.transData.transform((0.0, value)))[1] * height
        lines = label.count("\n") + 1
        at = max(float(at), below + _LABEL_POINTS * (1 + lines) / 2)
        axes.annotate(
            label,
            (1.0, at / height),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=8.5,
            annotation_clip=False,
        )
        below = at + _LABEL_POINTS * (lines - 1) / 2
