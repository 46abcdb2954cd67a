"""The step loop, the only one: n episodes in lock-step, one policy call per step for all of them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import forks
from policyfuzz.core.errors import (
    PolicyFuzzError,
    blamed_on,
    forbid_copies,
    is_interrupt,
    raise_pending_interrupt,
)
from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.core.interfaces import NUMBERS, RAISED, EpisodeError, Frame, Policy, Simulator, traceback_text
from policyfuzz.core.oracle import Oracle, Trajectories, Verdicts

#: Called after the reset (step 0, no actions) and after each step: step, rows (m,), actions, frame.
Observer = Callable[[int, NDArray[np.int64], NDArray[Any] | None, Frame], None]


class SimulatorRaised(Exception):
    """A simulator raised an exception while it ran one or several episodes."""

    def __init__(self, error: EpisodeError) -> None:
        super().__init__(error.text)
        self.error = error


def rollout(
    simulator: Simulator,
    policy: Policy,
    oracle: Oracle,
    inputs: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    *,
    horizon: int,
    decay: float = 1.0,
    observer: Observer | None = None,
) -> Executions:
    """Run one episode of at most `horizon` steps for each row of `inputs` (n, d).

    The return follows r <- `decay` · r + reward at every step. What a policy raises is a
    TargetCodeError; what a simulator raises is a SimulatorRaised, which does not say whose episode it was.
    """
    raise_pending_interrupt()
    parts = []
    for part in _parts(len(inputs), simulator.capacity):
        watch = observer if observer is None or part.start == 0 else shifted(observer, part.start)
        parts.append(
            _rollout_at_once(simulator, policy, oracle, inputs[part], seeds[part], horizon, decay, watch)
        )
    return concatenate(parts)


def _rollout_at_once(
    simulator: Simulator,
    policy: Policy,
    oracle: Oracle,
    inputs: NDArray[np.float64],
    seeds: NDArray[np.uint64],
    horizon: int,
    decay: float,
    observer: Observer | None,
) -> Executions:
    count = len(inputs)
    with blamed_on("the policy"):
        policy.begin(count)
    with _watched(0):
        frame = simulator.reset(inputs, seeds)
    rows = np.arange(count)
    # time first in memory, so that each step writes one contiguous piece
    states = np.zeros((horizon + 1, count, frame.states.shape[1]))
    signals = np.zeros((horizon + 1, count, frame.signals.shape[1]))
    rewards = np.zeros((horizon + 1, count))
    lengths = np.ones(count, np.int64)
    returns = np.zeros(count)
    errors: dict[int, EpisodeError] = {}
    states[0], signals[0] = frame.states, frame.signals
    if observer is not None:
        observer(0, rows, None, frame)
    for step in range(1, horizon + 1):
        ended = _ended(frame, rows, step - 1, errors)
        if ended.any():
            rows, observations = rows[~ended], frame.observations[~ended]
        else:
            observations = frame.observations
        if len(rows) == 0:
            break
        with blamed_on("the policy"):
            actions = policy.act(observations, rows)
        with _watched(step):
            frame = simulator.step(actions, rows)
        target = slice(None) if len(rows) == count else rows
        states[step, target], signals[step, target] = frame.states, frame.signals
        rewards[step, target] = frame.rewards
        returns[target] = decay * returns[target] + frame.rewards
        lengths[target] += 1
        if observer is not None:
            observer(step, rows, actions, frame)
    else:
        _ended(frame, rows, horizon, errors)
    returns[list(errors)] = np.nan
    longest = int(lengths.max(initial=1))
    states, signals = states[:longest].swapaxes(0, 1), signals[:longest].swapaxes(0, 1)
    trajectories = Trajectories(signals, simulator.signals, rewards[:longest].T, lengths, errors)
    return Executions(returns, lengths, states, _judged(oracle, trajectories), errors)


def _judged(oracle: Oracle, trajectories: Trajectories) -> Verdicts:
    with blamed_on("the oracle"):
        return oracle.judge(trajectories)


def _ended(
    frame: Frame, rows: NDArray[np.int64], step: int, errors: dict[int, EpisodeError]
) -> NDArray[np.bool_]:
    """(m,) True where an episode of `frame` is over; adds those that an error ended to `errors`."""
    for position, error in frame.errors.items():
        errors[int(rows[position])] = error
    # a sum is the cheapest way to see that there is no NaN anywhere
    with np.errstate(invalid="ignore", over="ignore"):
        has_nan = np.isnan(frame.rewards.sum() + frame.states.sum())
    if not has_nan:
        return frame.ended
    is_nan = np.isnan(frame.rewards) | np.isnan(frame.states).any(axis=1)
    for position in np.flatnonzero(is_nan).tolist():
        what = "reward" if np.isnan(frame.rewards[position]) else "state"
        text = f"the {what} is NaN at step {step}"
        errors.setdefault(int(rows[position]), EpisodeError(NUMBERS, step, text))
    return frame.ended | is_nan


@contextmanager
def _watched(step: int) -> Iterator[None]:
    """Turn what a simulator raises into a SimulatorRaised."""
    process = forks.this_process()
    try:
        yield
    except PolicyFuzzError:
        forks.end_copy_of(process)
        raise  # it says what is wrong already
    except BaseException as error:
        forks.end_copy_of(process)
        if is_interrupt(error):
            raise
        raise SimulatorRaised(EpisodeError(RAISED, step, traceback_text(error))) from error
    forbid_copies(process, "the simulator")


def _parts(count: int, capacity: int | None) -> Iterator[slice]:
    size = max(count, 1) if capacity is None else capacity
    for start in range(0, max(count, 1), size):
        yield slice(start, start + size)


def shifted(observer: Observer, start: int) -> Observer:
    """`observer` of a part of the batch that begins at row `start`."""
    return lambda step, rows, actions, frame: observer(step, rows + start, actions, frame)


def not_run(error: EpisodeError, oracle: Oracle, signals: tuple[str, ...]) -> Executions:
    """The execution of one episode that failed with `error` and left nothing else."""
    lengths, errors = np.array([error.step + 1]), {0: error}
    known = np.zeros((1, error.step + 1, len(signals)))
    trajectories = Trajectories(known, signals, known[:, :, :0].sum(axis=2), lengths, errors)
    return Executions(np.array([np.nan]), lengths, known[:, :, :0], _judged(oracle, trajectories), errors)
