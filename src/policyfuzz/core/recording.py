"""Runs one episode and keeps everything that a picture or a dataset needs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.branches import Branches, Segment
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.target import Runner, Target


@dataclass(frozen=True, slots=True)
class Recording:
    """One episode, step by step."""

    executions: Executions  #: of the one episode
    actions: list[Any]  #: one per step
    signals: NDArray[np.float64]  #: (t, s)
    signal_names: tuple[str, ...]
    rewards: NDArray[np.float64]  #: (t,) zero at the start
    scenes: list[Any]  #: what `look` returned at each of t times
    observations: list[Any]  #: what the policy saw at each of t times
    state_names: tuple[str, ...] = ()  #: one for each number of a state; empty if the simulator has none


def record(
    target: Target,
    row: NDArray[np.float64],
    seed: int,
    look: Callable[[int, Any], Any] | None = None,
    branch: Sequence[Segment] = (),
) -> Recording:
    """Run the episode of input `row` (d,), and keep what `look(step, simulator)` returns at every time.

    It departs from the policy where `branch` says so.
    """
    runner = Runner(target if look is None else target.for_film())
    actions: list[Any] = []
    signals: list[NDArray[np.float64]] = []
    rewards: list[float] = []
    scenes: list[Any] = []
    observations: list[Any] = []

    def observer(step: int, _rows: NDArray[np.int64], acted: NDArray[Any] | None, frame: Frame) -> None:
        signals.append(frame.signals[0])
        rewards.append(float(frame.rewards[0]))
        observations.append(np.copy(frame.observations[0]))  # a simulator may write its next one there
        if acted is not None:
            actions.append(acted[0])
        if look is not None:
            scenes.append(look(step, runner.simulator))

    branches = None
    if branch and target.actions is not None:
        branches = Branches.of([branch], len(target.actions.low))
    executions = runner(row[None], np.array([seed], np.uint64), observer, branches=branches)
    names, of_states = runner.simulator.signals, tuple(getattr(runner.simulator, "state_names", ()))
    return Recording(
        executions, actions, np.array(signals), names, np.array(rewards), scenes, observations, of_states
    )
