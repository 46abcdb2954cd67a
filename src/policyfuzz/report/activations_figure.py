"""The picture of episodes by what went on inside the policy, by class and by failure mode."""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from policyfuzz.report import marks
from policyfuzz.report.marks import SERIES, Mark, picture_text
from policyfuzz.report.png_files import write_png
from policyfuzz.store.activations_file import CLASSES, CRASH, MUTATED, NEAR_MISS, NORMAL, ActivationMap

#: Inches, and dots per inch.
_WIDTH, _HEIGHT, _DOTS_PER_INCH = 10.0, 5.6, 110
#: Modes that are drawn apart, the worst first, and characters of what is said of them and of the target.
_MOST_MODES, _WORDS, _NAME_WIDTH = len(SERIES), 62, 60
_MARKS = {
    NORMAL: marks.NORMAL,
    MUTATED: marks.MUTATED,
    NEAR_MISS: marks.NEAR_MISS,
    CRASH: marks.CRASHED,
}
#: Of marks, in the order in which they are drawn: a mutant often lies where its normal parent does.
_SIZES = {MUTATED: 7.0, NORMAL: 4.0, NEAR_MISS: 6.0, CRASH: 6.0}
_NAMES = {"tsne": "t-SNE", "umap": "UMAP", "pca": "principal direction"}
_PLURALS = {NORMAL: "normal", MUTATED: "randomly mutated", NEAR_MISS: "near misses", CRASH: "crashes"}


def draw_activations(found: ActivationMap, path: Path) -> None:
    """Draw `found` into the PNG file `path`."""
    write_png(lambda: activations_figure(found), path, _DOTS_PER_INCH)


def activations_figure(found: ActivationMap) -> Figure:
    """A panel by class, and one by failure mode if those are known."""
    has_modes = any(found.modes)
    figure = Figure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    figure.suptitle(_title(found), fontsize="medium")
    panels = figure.subplots(1, 2 if has_modes else 1, squeeze=False, sharex=True, sharey=True)[0]
    _draw_classes(panels[0], found)
    if has_modes:
        _draw_modes(panels[1], found)
    for place, axes in enumerate(panels):
        axes.set_xlabel(_axis(found, 0), fontsize="small")
        if place == 0:
            axes.set_ylabel(_axis(found, 1), fontsize="small")
        axes.tick_params(labelsize="x-small")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.11), ncols=2 - place, fontsize="small", frameon=False
        )
    return figure


def _draw_classes(axes: Axes, found: ActivationMap) -> None:
    classes = np.array(found.classes)
    for name in _SIZES:
        label = f"{_PLURALS[name]} ({found.count(name)})"
        _scatter(axes, found, classes == CLASSES.index(name), _MARKS[name], label, _SIZES[name])
    axes.set_title("by class", loc="left", fontsize="small")


def _draw_modes(axes: Axes, found: ActivationMap) -> None:
    modes, is_crash = np.array(found.modes), np.array(found.classes) == CLASSES.index(CRASH)
    _scatter(axes, found, ~is_crash, Mark(marks.BAND, "."), "no crash")
    known = np.unique(modes[modes > 0]).tolist()
    for place, mode in enumerate(known[:_MOST_MODES]):
        words = found.mode_words.get(str(mode), "")
        said = f"{mode}: {words}" if words else f"mode {mode}"
        _scatter(axes, found, modes == mode, SERIES[place], picture_text(said, _WORDS))
    rest = is_crash & ~np.isin(modes, known[:_MOST_MODES])
    if rest.any():
        _scatter(axes, found, rest, Mark("black", "+"), "other crashes")
    axes.set_title("crashes by failure mode", loc="left", fontsize="small")


def _scatter(
    axes: Axes, found: ActivationMap, rows: NDArray[np.bool_], mark: Mark, label: str, size: float = 5.5
) -> None:
    xs, ys = np.array(found.xs)[rows], np.array(found.ys)[rows]
    edge = mark.colour if mark.marker in ".+" else "white"
    axes.plot(
        xs,
        ys,
        linestyle="",
        marker=mark.marker,
        color=mark.colour,
        markersize=size,
        markeredgecolor=edge,
        markeredgewidth=0.4,
        alpha=0.8,
        label=label,
    )


def _title(found: ActivationMap) -> str:
    target = picture_text(found.target, _NAME_WIDTH)
    when = f"mean of {found.window} decisions before the crash, or at the same steps"
    lines = [f"{target}: {found.of} of the policy, {when}"]
    numbers = [one for one in found.separations if one.of == found.of and one.positive == CRASH]
    said = ", ".join(f"{one.auc:.3f} from {_PLURALS[one.negative]}" for one in numbers if one.auc == one.auc)
    if said:
        few = "" if not numbers[0].means_little else f" (only {numbers[0].lineages} lineages: means little)"
        lines.append(f"crashes told apart in all {found.width:,} dimensions, AUC: {said}{few}")
    return "\n".join(lines)


def _axis(found: ActivationMap, place: int) -> str:
    name = _NAMES[found.method]
    if found.method == "pca":
        share = f" ({found.explained[place]:.0%} of variance)" if len(found.explained) > place else ""
        return f"{name} {place + 1}{share}, no unit"
    return f"{name} {place + 1}, no unit; distances mean nothing"
