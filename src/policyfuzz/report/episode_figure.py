"""A picture of any episode: stills of it, its signals and its states over time, the crash marked."""

import textwrap
from contextlib import suppress
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from policyfuzz.core.errors import CannotRender
from policyfuzz.core.interfaces import Renders
from policyfuzz.core.recording import Recording, record
from policyfuzz.core.visible import visible
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.report.film import Camera
from policyfuzz.triage.replay import Replay

#: More state coordinates than this would only be a tangle.
_MOST_LINES = 12
#: Characters of a line of the title: the figure has room for so many.
_TITLE_WIDTH = 110
#: Stills are this far between the start and the crash.
_STILLS = (0.0, 0.5, 0.85, 1.0)


# matplotlib reads a matplotlibrc in the current folder, which may be a stranger's, and TeX is a program
@rc_context({"text.usetex": False})
def draw_replay(replay: Replay, path: Path) -> None:
    """Draw the episode of `replay` into the PNG file `path`, in the target's own way if it has one."""
    target, finding = replay.target, replay.finding
    make_folder_of(path)
    with whole_file(path) as unfinished:
        if target.draw is not None:
            target.draw(target, finding.input, finding.case_seed, unfinished)
        else:
            draw_episode(replay, unfinished)


def draw_episode(replay: Replay, path: Path) -> None:
    """Draw stills, signals and states of the episode of `replay` into the PNG file `path`."""
    end = replay.steps if replay.crash_step is None else replay.crash_step
    shown = sorted({round(share * end) for share in _STILLS})

    camera = Camera()

    def look(step: int, simulator: object) -> object:
        if step not in shown or not isinstance(simulator, Renders):
            return None
        with suppress(CannotRender):  # the numbers can still be drawn
            return camera.shoot(simulator)
        return None

    recording = record(replay.target, replay.finding.input, replay.finding.case_seed, look)
    stills = {step: scene for step, scene in enumerate(recording.scenes) if scene is not None}
    figure = Figure(figsize=(11, 9 if stills else 6), layout="constrained")
    grid = figure.add_gridspec(3, max(len(stills), 1), height_ratios=(2 if stills else 0.01, 2, 3))
    for column, (step, still) in enumerate(stills.items()):
        axes = figure.add_subplot(grid[0, column])
        axes.imshow(still)
        axes.set_axis_off()
        colour = "tab:red" if step == replay.crash_step else "black"
        axes.set_title(f"step {step}", fontsize="small", color=colour)
    top = figure.add_subplot(grid[1, :])
    _draw_numbers(top, figure.add_subplot(grid[2, :], sharex=top), recording, replay)
    verdict = f"{replay.kind} at step {replay.crash_step}" if replay.crashes else "no crash"
    title = _plain(f"{replay.target.name}, finding {replay.finding.id}: {verdict}")
    figure.suptitle("\n".join(textwrap.wrap(title, _TITLE_WIDTH)), fontsize="medium")
    figure.savefig(path, dpi=120, format="png")


def _draw_numbers(top: Axes, bottom: Axes, recording: Recording, replay: Replay) -> None:
    """Signals that change and rewards above, states below, a line at the crash."""
    changing = np.ptp(np.nan_to_num(recording.signals), axis=0) > 0
    for name, values, changes in zip(recording.signal_names, recording.signals.T, changing, strict=True):
        if changes:
            top.plot(values, label=_plain(name))
    top.set_ylabel("signals that the oracle judges")
    beside = top.twinx()
    beside.plot(recording.rewards, color="grey", linewidth=0.8, linestyle=":", label="reward")
    beside.set_ylabel("reward", color="grey")
    if changing.any():
        top.legend(loc="best")
    states = recording.executions.states[0]
    names = recording.state_names
    if len(names) != states.shape[1]:
        names = tuple(f"state {number}" for number in range(states.shape[1]))
    for name, values in list(zip(names, states.T, strict=True))[:_MOST_LINES]:
        bottom.plot(values, linewidth=1, label=name)
    left_out = states.shape[1] - _MOST_LINES
    bottom.set_ylabel("states" if left_out <= 0 else f"states, the first {_MOST_LINES} of {states.shape[1]}")
    bottom.set_xlabel("step")
    bottom.legend(loc="best", ncols=2, fontsize="small")
    if replay.crash_step is not None:
        for axes in (top, bottom):
            axes.axvline(replay.crash_step, color="tab:red", linestyle="--")


def _plain(name: str) -> str:
    """`name` as a picture can show it: fonts have no control characters, and $ would begin a formula."""
    return visible(name).replace("$", r"\$")
