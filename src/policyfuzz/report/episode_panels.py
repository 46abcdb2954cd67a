"""The numbers of an episode that are worth a look, beside its witness and episodes that pass."""

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.branches import Segment
from policyfuzz.core.recording import Recordings, record_all
from policyfuzz.core.target import Runner
from policyfuzz.report import panels
from policyfuzz.report.marks import witness_name
from policyfuzz.report.panels import MOST_ACTIONS, MOST_PANELS, Panel
from policyfuzz.report.passing import PassingEpisodes, passing_episodes
from policyfuzz.store.triage_records import Avoidance
from policyfuzz.triage.replay import Replay

#: A machine that runs this many programs on each of its cores makes all of them wait.
_BUSY = 10


@dataclass(frozen=True, slots=True)
class Seen:
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
        """Episodes that pass."""
        return None if self.passing is None else self.passing.recordings


def look_at(replay: Replay, avoidance: Avoidance | None, is_compared: bool) -> Seen:
    """Run the episode of `replay` again, its witness, and with `is_compared` some that pass nearby."""
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
    return Seen(
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


def panels_of(replay: Replay, seen: Seen) -> list[Panel]:
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
