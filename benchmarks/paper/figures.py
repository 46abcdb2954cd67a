"""Pictures of the page: crashes over episodes, and ROC curves of detectors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator
from PIL import Image

from benchmarks.paper.results import Result
from benchmarks.paper.scenarios import STRATEGIES
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.report.marks import DRAWN, SERIES, Mark
from policyfuzz.store.monitor_record import MethodRecord, MonitorRecord

#: The same for every picture of the page; coverage numbers its campaigns in the same order.
MARKS: Mapping[str, Mark] = dict(zip(STRATEGIES, (*SERIES[: len(STRATEGIES) - 1], DRAWN), strict=True))
#: What is counted, by the name of its curve.
_COUNTS = {"crashes": "confirmed crashes", "lineages": "lineages of crashes"}
#: Inches of one panel, dots per inch of the file, and colours of a picture that is made small.
_WIDTH, _HEIGHT, _DOTS_PER_INCH, _COLOURS = 4.6, 2.5, 100, 256
#: Counts that an even scale shows well.
_FEW = 20
#: Inches of one panel of ROC curves, and how many stand in a row.
_SQUARE, _COLUMNS = 3.1, 3


@rc_context({"text.usetex": False})
def draw_curves(campaigns: Mapping[str, Mapping[str, Sequence[Result]]], path: Path) -> None:
    """Draw a row for each scenario in `campaigns`, which holds the results by label and strategy."""
    size = _WIDTH * len(_COUNTS), _HEIGHT * len(campaigns) + 0.8
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(campaigns), len(_COUNTS), squeeze=False)
    for row, (label, by_strategy) in zip(grid, campaigns.items(), strict=True):
        for axes, (count, name) in zip(row, _COUNTS.items(), strict=True):
            for strategy, results in by_strategy.items():
                _draw_counts(axes, MARKS[strategy], [result.found["curves"] for result in results], count)
            _dress_counts(axes, f"{label}: {name}")
    for axes in grid[-1]:
        axes.set_xlabel("episodes")
    handles = [
        figure.axes[0].plot([], [], color=mark.colour, linestyle=mark.line)[0] for mark in MARKS.values()
    ]
    figure.legend(handles, MARKS, loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    _save(figure, path)


@rc_context({"text.usetex": False})
def draw_roc(records: Mapping[str, MonitorRecord], wanted: tuple[str, str], path: Path) -> None:
    """Draw ROC curves of the detector `wanted` (method and input) and of the chosen one, by label."""
    columns = min(_COLUMNS, len(records))
    rows = -(-len(records) // columns)
    figure = Figure(figsize=(_SQUARE * columns, _SQUARE * rows + 1.1), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.ravel()[len(records) :]:
        axes.remove()
    for axes, (label, record) in zip(grid.ravel(), records.items(), strict=False):
        axes.plot([0, 1], [0, 1], color=DRAWN.colour, linestyle=DRAWN.line, linewidth=0.8)
        for mark, (who, method) in zip(SERIES, _detectors(record, wanted).items(), strict=False):
            for curve in method.curves:
                is_near = curve.negatives == "near-miss"
                axes.plot(
                    curve.false_alarms,
                    curve.detected,
                    color=mark.colour,
                    linestyle="-" if is_near else "--",
                    label=f"{who}, against {'near-misses' if is_near else 'nominal episodes'}",
                )
        axes.set_title(f"{label}: {record.lineages} lineages", fontsize="medium", loc="left")
        axes.set_xlabel("share of other episodes with an alarm", fontsize="small")
        axes.set_ylabel("share of crashes with an alarm", fontsize="small")
        axes.set_aspect("equal")
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    known = {
        name: line
        for axes in figure.axes
        for line, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    beside = min(columns, 2)
    figure.legend(
        known.values(), known, loc="outside upper center", ncols=beside, frameon=False, fontsize="small"
    )
    _save(figure, path)


def _detectors(record: MonitorRecord, wanted: tuple[str, str]) -> dict[str, MethodRecord]:
    """The paper's detector, and the one that was chosen."""
    paper = [one for one in record.methods if (one.method, one.input) == wanted]
    return dict(zip(["the paper's"], paper, strict=False)) | {"best of ours": record.chosen}


def shrink(path: Path) -> None:
    """Write the PNG file `path` again with few colours, as lines and dots need no more."""
    with Image.open(path) as drawn:
        # other methods move the colours of thin lines
        small = drawn.convert("RGB").quantize(
            _COLOURS, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
        )
    with whole_file(path) as unfinished:
        small.save(unfinished, format="PNG", optimize=True)


def _save(figure: Figure, path: Path) -> None:
    make_folder_of(path)
    with whole_file(path) as unfinished:
        figure.savefig(unfinished, dpi=_DOTS_PER_INCH, format="png")
    shrink(path)


def _draw_counts(axes: Axes, mark: Mark, curves: Sequence[Mapping[str, Sequence[int]]], count: str) -> None:
    """The mean over seeds, and the range of all."""
    values = np.array([curve[count] for curve in curves], np.float64)
    points = curves[0]["episodes"]
    if len(values) > 1:
        low, high = values.min(axis=0), values.max(axis=0)
        axes.fill_between(points, low, high, color=mark.colour, alpha=0.15, linewidth=0)
    axes.plot(points, values.mean(axis=0), color=mark.colour, linestyle=mark.line)


def _dress_counts(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize="medium", loc="left")
    if axes.get_ylim()[1] > _FEW:  # strategies differ by orders of magnitude, and some find nothing
        axes.set_yscale("symlog", linthresh=1, linscale=0.3)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,.0f}"))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_ylim(0, max(axes.get_ylim()[1], 1.5))
    axes.margins(x=0)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
