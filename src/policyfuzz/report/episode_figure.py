"""A picture of any episode: stills, and the few numbers that leave the band of passing episodes first."""

import textwrap
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from PIL import Image

from policyfuzz.core.branches import Segment
from policyfuzz.core.errors import CannotRender
from policyfuzz.core.interfaces import Renders
from policyfuzz.core.recording import Recordings, record, record_all
from policyfuzz.core.target import Runner
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.report import panels
from policyfuzz.report.film import Camera, Picture
from policyfuzz.report.marks import (
    BAND,
    CRASH,
    LAST_CHANCE,
    POLICY,
    WITNESS,
    picture_text,
    plain_text,
    witness_name,
)
from policyfuzz.report.panels import MOST_ACTIONS, MOST_PANELS, Panel
from policyfuzz.report.passing import PassingEpisodes, passing_episodes
from policyfuzz.store.triage_records import Avoidance
from policyfuzz.triage.replay import Replay

#: Characters of a line of the title: the figure has room for so many.
_TITLE_WIDTH = 120
#: Inches.
_WIDTH, _STILLS_HEIGHT, _ROW_HEIGHT, _MARGIN_HEIGHT = 11.0, 2.1, 1.55, 1.15
_COLUMNS, _DOTS_PER_INCH = 3, 120
#: Stills are this far between the start and the crash.
_STILLS = (0.0, 0.5, 0.85, 1.0)
#: A machine that runs this many programs on each of its cores makes all of them wait.
_BUSY = 10
#: What comes after the crash is shown for as long as what comes before it, or this many steps.
_STEPS_AFTER = 20


# matplotlib reads a matplotlibrc in the current folder, which may be a stranger's, and TeX is a program
@rc_context({"text.usetex": False})
def draw_replay(
    replay: Replay, path: Path, avoidance: Avoidance | None = None, is_compared: bool = True
) -> None:
    """Draw the episode of `replay` into the PNG file `path`, under the target's own drawing if it has one.

    What `avoidance` knows is drawn, too: the witness, and the point of no return. With `is_compared`, some
    episodes that pass are run to compare with.
    """
    target, finding = replay.target, replay.finding
    make_folder_of(path)
    figure = episode_figure(replay, avoidance, is_compared)
    with whole_file(path) as unfinished:
        if target.draw is None:
            figure.savefig(unfinished, dpi=_DOTS_PER_INCH, format="png")
            return
        branch, last_chance = ((), None) if avoidance is None else (avoidance.branch, avoidance.last_chance)
        target.draw(target, finding.input, finding.case_seed, unfinished, branch, last_chance)
        with Image.open(unfinished) as drawn:
            above = drawn.convert("RGB")
        figure.savefig(unfinished, dpi=_DOTS_PER_INCH, format="png")
        with Image.open(unfinished) as drawn:
            below = drawn.convert("RGB")
        _stacked(above, below).save(unfinished, format="PNG")


def episode_figure(replay: Replay, avoidance: Avoidance | None = None, is_compared: bool = True) -> Figure:
    """The figure of an episode: stills unless the target draws it in its own way, and small multiples."""
    seen = _look_at(replay, avoidance, is_compared)
    stills = _stills(replay, seen) if replay.target.draw is None else []
    shown = _panels(replay, seen)
    heights = [_STILLS_HEIGHT * len(stills)] if stills else []
    heights.append(_ROW_HEIGHT * max(1, -(-len(shown) // _COLUMNS)))
    figure = Figure(figsize=(_WIDTH, sum(heights) + _MARGIN_HEIGHT), layout="constrained")
    figure.suptitle(_title(replay, seen, shown, avoidance, is_compared), fontsize="medium")
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    if stills:
        _draw_stills(parts[0], stills, replay.crash_step)
    _draw_panels(parts[-1], shown, seen, replay)
    handles = _legend(seen, shown, replay.crash_step)
    figure.legend(handles=handles, loc="outside lower center", ncols=3, fontsize="small", frameon=False)
    return figure


@dataclass(frozen=True, slots=True)
class _Seen:
    """The numbers of all episodes of a picture."""

    policy: Recordings
    witness: Recordings | None
    passing: PassingEpisodes | None
    signal_names: tuple[str, ...]
    state_names: tuple[str, ...]
    branch: tuple[Segment, ...]
    witness_name: str
    last_chance: int | None
    last: int  #: step up to which the policy is compared: that of the crash, or the end

    @property
    def others(self) -> Recordings | None:
        return None if self.passing is None else self.passing.recordings


def _look_at(replay: Replay, avoidance: Avoidance | None, is_compared: bool) -> _Seen:
    target, row = replay.target, replay.finding.input
    seeds = np.array([replay.finding.case_seed], np.uint64)
    runner = Runner(target)
    start, worked = time.perf_counter(), time.process_time()
    policy = record_all(runner, row[None], seeds)
    # not the time that other programs take, but that of a simulator in another process
    seconds = max(time.process_time() - worked, (time.perf_counter() - start) / _BUSY)
    branch = () if avoidance is None or target.actions is None else avoidance.branch
    witness = record_all(runner, row[None], seeds, [branch]) if branch else None
    passing = passing_episodes(runner, row, replay.finding.case_seed, seconds) if is_compared else None
    return _Seen(
        policy,
        witness,
        passing,
        runner.simulator.signals,
        tuple(getattr(runner.simulator, "state_names", ())),
        branch,
        "" if avoidance is None or witness is None else witness_name(avoidance, witness.executions),
        None if avoidance is None else avoidance.last_chance,
        replay.steps if replay.crash_step is None else replay.crash_step,
    )


def _panels(replay: Replay, seen: _Seen) -> list[Panel]:
    """The numbers to show: signals and states, then actions, then the reward."""
    recordings, space = (seen.policy, seen.witness, seen.others), replay.target.actions
    actions = []
    if space is not None:
        for panel in panels.acted(space, *recordings).panels(seen.last, MOST_ACTIONS):
            name = panel.name if panel.name.startswith("action") else f"action: {panel.name}"
            choices = panels.choices_of(space, panel.name)
            if choices:  # there is nothing between them, so no band either
                panel = Panel(name, panel.policy, panel.witness)
            actions.append(replace(panel, name=name, is_held=True, choices=choices))
    table = panels.measured(seen.signal_names, seen.state_names, *recordings, seen.last)
    rewards = [_after_start(one.rewards[0]) for one in recordings[:2] if one is not None]
    changes = any(np.unique(one[np.isfinite(one)]).size > 1 for one in rewards)
    reward = [Panel("reward", rewards[0], rewards[1] if seen.branch else None)] if changes else []
    return [*table.panels(seen.last, MOST_PANELS - len(actions) - len(reward)), *actions, *reward]


def _after_start(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """`rewards` (t,) without the zero of the start, which nothing was done for."""
    return np.where(np.arange(len(rewards)) > 0, rewards, np.nan)


def _draw_panels(part: SubFigure, shown: Sequence[Panel], seen: _Seen, replay: Replay) -> None:
    """One small axes for each number."""
    rows = max(1, -(-len(shown) // _COLUMNS))  # an episode that fails at once has nothing to show
    grid = part.subplots(rows, _COLUMNS, squeeze=False, sharex=True)
    for axes in grid.ravel()[len(shown) :]:
        axes.remove()
    lengths = [one.executions.lengths[0] for one in (seen.policy, seen.witness) if one is not None]
    end = max(1, min(int(max(lengths)) - 1, seen.last + max(seen.last, _STEPS_AFTER)))
    for number, (axes, panel) in enumerate(zip(grid.ravel(), shown, strict=False)):
        _draw_panel(axes, panel, end)
        for step, colour, style in ((replay.crash_step, CRASH, "--"), (seen.last_chance, LAST_CHANCE, ":")):
            if step is not None:
                axes.axvline(step, color=colour, linestyle=style, linewidth=1.2)
        if number >= len(shown) - _COLUMNS:
            axes.tick_params(labelbottom=True)
    part.supxlabel("step", fontsize="small")


def _draw_panel(axes: Axes, panel: Panel, end: int) -> None:
    """The band, the lines of witness and policy, and where the policy leaves the band for good."""
    style = "steps-pre" if panel.is_held else "default"
    if panel.low is not None and panel.high is not None:
        low, high, times = panel.low[: end + 1], panel.high[: end + 1], np.arange(len(panel.low[: end + 1]))
        axes.fill_between(times, low, high, color=BAND, linewidth=0, step="pre" if panel.is_held else None)
    for values, colour, width in ((panel.witness, WITNESS, 2.2), (panel.policy, POLICY, 1.3)):
        if values is not None:
            axes.plot(_finite(values[: end + 1]), color=colour, linewidth=width, drawstyle=style)
    if panel.left_at is not None:
        axes.plot(
            panel.left_at, panel.policy[panel.left_at], "o", color=POLICY, fillstyle="none", markersize=7
        )
    axes.set_title(picture_text(panel.name), loc="left", fontsize="small")
    axes.set_xlim(-0.01 * end, 1.01 * end)
    axes.tick_params(labelsize="x-small", labelbottom=False)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if panel.choices:
        known = sorted(panel.choices)
        axes.set_yticks(known, [picture_text(panel.choices[value], 20) for value in known])
        axes.set_ylim(known[0] - 0.5, known[-1] + 0.5)


def _legend(seen: _Seen, shown: Sequence[Panel], crash_step: int | None) -> list[Artist]:
    """What lines, marks and the band mean."""
    handles: list[Artist] = [Line2D([], [], color=POLICY, linewidth=1.3, label="policy")]
    if seen.witness is not None:
        handles.append(Line2D([], [], color=WITNESS, linewidth=2.2, label=seen.witness_name))
    if seen.passing is not None:
        where = "near this input" if seen.passing.are_near else "from random inputs"
        said = f"90 % of {len(seen.passing)} passing episodes {where} stay inside"
        handles.append(Patch(color=BAND, label=said))
    if any(panel.left_at is not None for panel in shown):
        label = "leaves the band for good"
        handles.append(
            Line2D(
                [], [], color=POLICY, linestyle="", marker="o", fillstyle="none", markersize=7, label=label
            )
        )
    if seen.last_chance is not None:
        label = f"point of no return, step {seen.last_chance}"
        handles.append(Line2D([], [], color=LAST_CHANCE, linestyle=":", label=label))
    if crash_step is not None:
        handles.append(Line2D([], [], color=CRASH, linestyle="--", label=f"crash, step {crash_step}"))
    return handles


def _title(
    replay: Replay, seen: _Seen, shown: Sequence[Panel], avoidance: Avoidance | None, is_compared: bool
) -> str:
    verdict = f"{replay.kind} at step {replay.crash_step}" if replay.crashes else "no crash"
    error = seen.policy.executions.errors.get(0)
    if error is not None:
        verdict = f"could not be run beyond step {error.step}: {error.summary}"
    lines = [f"{replay.target.name}, finding {replay.finding.id}: {verdict}"]
    if avoidance is not None and seen.witness is not None and avoidance.words:
        lines.append(f"{seen.witness_name}: {avoidance.words}")
    if seen.passing is None:
        lines.append(
            "no band: too few episodes pass, or they take too long"
            if is_compared
            else "no band: episodes of this target have hung or killed their process, so no others were run"
        )
    elif replay.crashes and all(panel.left_at is None for panel in shown):
        lines.append("no number is outside of the band of passing episodes at the crash")
    return "\n".join(part for line in lines for part in textwrap.wrap(plain_text(line), _TITLE_WIDTH))


def _stills(replay: Replay, seen: _Seen) -> list[tuple[str, str, dict[int, Picture]]]:
    """Name, colour and pictures by step of the policy, and of the witness if there is one."""
    rows = [("policy", POLICY, _shoot(replay, seen.last, ()))]
    if seen.branch:
        rows.append((seen.witness_name.partition(",")[0], WITNESS, _shoot(replay, seen.last, seen.branch)))
    return [row for row in rows if row[2]]


def _shoot(replay: Replay, last: int, branch: Sequence[Segment]) -> dict[int, Picture]:
    """Pictures of some steps up to `last`; none if the simulator does not render."""
    shown, camera = {round(share * last) for share in _STILLS}, Camera()
    pictures: dict[int, Picture] = {}

    def look(step: int, simulator: object) -> None:
        if step in shown and isinstance(simulator, Renders):
            with suppress(CannotRender):  # the numbers can still be drawn
                pictures[step] = camera.shoot(simulator)

    record(replay.target, replay.finding.input, replay.finding.case_seed, look, branch)
    return pictures


def _draw_stills(
    part: SubFigure, rows: Sequence[tuple[str, str, dict[int, Picture]]], crash_step: int | None
) -> None:
    """The stills of policy and witness, one below the other."""
    grid = part.subplots(len(rows), len(_STILLS), squeeze=False)
    for axes in grid.ravel():
        axes.set(xticks=(), yticks=())
        axes.spines[:].set_visible(False)
    for line, (name, colour, pictures) in zip(grid, rows, strict=True):
        for axes, (step, picture) in zip(line, sorted(pictures.items()), strict=False):
            axes.imshow(picture)
            axes.spines[:].set(visible=True, color="0.8")
            is_crash = step == crash_step and colour == POLICY
            said = f"step {step}" if len(rows) == 1 else f"{name}, step {step}"
            axes.set_title(picture_text(said), fontsize="small", color=CRASH if is_crash else "black")


def _stacked(above: Image.Image, below: Image.Image) -> Image.Image:
    """Two pictures of any sizes, one below the other; the first is scaled to the width of the other."""
    if above.width != below.width:
        above = above.resize((below.width, max(1, round(above.height * below.width / above.width))))
    sheet = Image.new("RGB", (below.width, above.height + below.height), "white")
    sheet.paste(above, (0, 0))
    sheet.paste(below, (0, above.height))
    return sheet


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isfinite(values), values, np.nan)
