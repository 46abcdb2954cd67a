"""A picture of any episode: its signals and states over time, the crash marked."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from policyfuzz.campaign.records import Finding
from policyfuzz.errors import CampaignError
from policyfuzz.report.recording import record
from policyfuzz.target import Target

#: More state coordinates than this would only be a tangle.
_MOST_LINES = 12


def draw_finding(target: Target, finding: Finding, path: Path) -> None:
    """Draw the episode of `finding` into the PNG file `path`, in the target's own way if it has one."""
    drawing = target.draw or draw_episode
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        drawing(target, finding.input, finding.case_seed, path)
    except OSError as error:
        raise CampaignError(f"cannot write {path}: {error.strerror}") from error


def draw_episode(target: Target, row: NDArray[np.float64], seed: int, path: Path) -> None:
    """Draw signals and states of the episode of input `row` (d,) into the PNG file `path`."""
    recording = record(target, row, seed)
    states = recording.executions.states[0]
    step = int(recording.executions.verdicts.steps[0])
    figure = Figure(figsize=(8, 6), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for name, values in zip(recording.signal_names, recording.signals.T, strict=True):
        top.plot(values, label=name)
    top.set_ylabel("signals that the oracle judges")
    top.legend(loc="best")
    for number, values in enumerate(states.T[:_MOST_LINES]):
        bottom.plot(values, linewidth=1, label=f"state {number}")
    bottom.set_ylabel("states")
    bottom.set_xlabel("step")
    bottom.legend(loc="best", ncols=2, fontsize="small")
    if step >= 0:
        kind = target.oracle.kinds[int(recording.executions.verdicts.kinds[0])]
        for axes in (top, bottom):
            axes.axvline(step, color="tab:red", linestyle="--")
        figure.suptitle(f"{target.name}: {kind} at step {step}")
    else:
        figure.suptitle(f"{target.name}: no crash")
    figure.savefig(path, dpi=120, format="png")
