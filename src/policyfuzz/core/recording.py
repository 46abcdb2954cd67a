"""Runs episodes and keeps what pictures and datasets need: of one all there is, of many the numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import action_numbers
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
    has_ended: bool = False  #: by itself; False if the horizon cut it


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
    tape = _Tape()
    scenes: list[Any] = []
    observations: list[Any] = []
    ended = [False]

    def observer(step: int, rows: NDArray[np.int64], acted: NDArray[Any] | None, frame: Frame) -> None:
        tape.note(step, rows, acted, frame)
        ended.append(bool(frame.ended[0]))
        observations.append(np.copy(frame.observations[0]))  # a simulator may write its next one there
        if look is not None:
            scenes.append(look(step, runner.simulator))

    branches = None
    if branch and target.actions is not None:
        branches = Branches.of([branch], len(target.actions.low))
    executions = runner(row[None], np.array([seed], np.uint64), observer, branches=branches)
    names = runner.simulator.signals
    return Recording(
        executions,
        [actions[0] for _, _, actions, _, _ in tape.notes if actions is not None],
        np.array([signals[0] for _, _, _, signals, _ in tape.notes]).reshape(len(tape.notes), len(names)),
        names,
        np.array([rewards[0] for _, _, _, _, rewards in tape.notes]),
        scenes,
        observations,
        tuple(getattr(runner.simulator, "state_names", ())),
        ended[-1],
    )


@dataclass(frozen=True, slots=True)
class Recordings:
    """The numbers of n episodes, step by step; NaN after their end, and from an error on."""

    executions: Executions
    states: NDArray[np.float64]  #: (n, t, k)
    signals: NDArray[np.float64]  #: (n, t, s)
    rewards: NDArray[np.float64]  #: (n, t) zero at the start
    #: (n, t, a) what led to the state of the same time, so none at the start; a is 0 if they are no numbers.
    actions: NDArray[np.float64]


def record_all(
    runner: Runner,
    inputs: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    branches: Sequence[Sequence[Segment]] = (),
) -> Recordings:
    """Run the episodes of `inputs` (n, d) with case seeds (n,) at once, and keep their numbers.

    They depart from the policy where `branches`, segments for each episode, say so.
    """
    space = runner.target.actions
    steered = Branches.of(branches, len(space.low)) if any(branches) and space is not None else None
    tape = _Tape()
    executions = runner(inputs, seeds, tape.note, branches=steered)
    lengths = executions.lengths.copy()
    for row, error in executions.errors.items():
        lengths[row] = min(lengths[row], error.step)  # numbers that come with an error mean nothing
    time = max((step for step, *_ in tape.notes), default=0) + 1
    is_counted = np.arange(time) < lengths[:, None]
    signals = np.full((len(inputs), time, len(runner.simulator.signals)), np.nan)
    rewards = np.full((len(inputs), time), np.nan)
    actions = np.full((len(inputs), time, 0 if space is None else len(space.low)), np.nan)
    for step, rows, acted, shown, earned in tape.notes:
        signals[rows, step], rewards[rows, step] = shown, earned
        if acted is not None and space is not None:
            actions[rows, step] = action_numbers(acted)
    states = np.full((*is_counted.shape, executions.states.shape[2]), np.nan)
    known = min(time, executions.states.shape[1])
    states[:, :known] = executions.states[:, :known]
    signals[~is_counted], rewards[~is_counted] = np.nan, np.nan
    states[~is_counted], actions[~is_counted] = np.nan, np.nan
    return Recordings(executions, states, signals, rewards, actions)


@dataclass(frozen=True, slots=True)
class _Tape:
    """Notes what an observer sees: step, rows (m,), actions (m, ...), signals (m, s), rewards (m,)."""

    notes: list[tuple[int, NDArray[np.int64], NDArray[Any] | None, NDArray[Any], NDArray[Any]]] = field(
        default_factory=list
    )

    def note(self, step: int, rows: NDArray[np.int64], acted: NDArray[Any] | None, frame: Frame) -> None:
        kept = None if acted is None else acted.copy()
        self.notes.append((step, rows, kept, frame.signals.copy(), frame.rewards.copy()))
