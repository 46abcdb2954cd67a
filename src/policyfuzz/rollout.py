"""The step loop, the only one: n episodes in lock-step, one policy call per step for all of them."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.oracles import Oracle, Trajectories, Verdicts
from policyfuzz.policies.protocol import Policy
from policyfuzz.simulators.protocol import Frame, Simulator

#: Called after the reset (step 0, no actions) and after each step: step, rows (m,), actions, frame.
Observer = Callable[[int, NDArray[np.int64], NDArray[Any] | None, Frame], None]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one episode; two runs of the same case must agree in all of it, to the last bit."""

    kind: int  #: position in the oracle's kinds, NONE where there is no crash
    step: int  #: of the crash, NONE where there is none
    episode_return: float

    def is_same(self, other: "Outcome") -> bool:
        """True where nothing differs; NaN equals NaN."""
        same_return = self.episode_return == other.episode_return or (
            math.isnan(self.episode_return) and math.isnan(other.episode_return)
        )
        return same_return and (self.kind, self.step) == (other.kind, other.step)


@dataclass(frozen=True, slots=True)
class Executions:
    """Results of n episodes."""

    returns: NDArray[np.float64]  #: (n,)
    lengths: NDArray[np.int64]  #: (n,) states seen, the initial one included
    states: NDArray[np.float64]  #: (n, t, k) state sequences, zero behind their end
    verdicts: Verdicts

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def crashed(self) -> NDArray[np.bool_]:
        """(n,) True where the oracle fired."""
        return self.verdicts.crashed

    @property
    def outcomes(self) -> list[Outcome]:
        """One for each episode."""
        verdicts = self.verdicts
        rows = zip(verdicts.kinds.tolist(), verdicts.steps.tolist(), self.returns.tolist(), strict=True)
        return [Outcome(*row) for row in rows]

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Executions":
        """The executions at `rows`: positions, a mask or a slice."""
        # states lie in memory time first, and are copied that way round
        states = self.states.swapaxes(0, 1)[:, rows].swapaxes(0, 1)
        return Executions(
            self.returns[rows],
            self.lengths[rows],
            states,
            Verdicts(self.verdicts.kinds[rows], self.verdicts.steps[rows]),
        )


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

    The return follows r <- `decay` · r + reward at every step.
    """
    parts = []
    for part in _parts(len(inputs), simulator.capacity):
        watch = observer if observer is None or part.start == 0 else _shifted(observer, part.start)
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
    policy.begin(count)
    frame = simulator.reset(inputs, seeds)
    rows = np.arange(count)
    # time first in memory, so that each step writes one contiguous piece
    states = np.zeros((horizon + 1, count, frame.states.shape[1]))
    signals = np.zeros((horizon + 1, count, frame.signals.shape[1]))
    rewards = np.zeros((horizon + 1, count))
    lengths = np.ones(count, np.int64)
    returns = np.zeros(count)
    states[0], signals[0] = frame.states, frame.signals
    if observer is not None:
        observer(0, rows, None, frame)
    for step in range(1, horizon + 1):
        if frame.ended.any():
            running = ~frame.ended
            rows, observations = rows[running], frame.observations[running]
        else:
            observations = frame.observations
        if len(rows) == 0:
            break
        actions = policy.act(observations, rows)
        frame = simulator.step(actions, rows)
        target = slice(None) if len(rows) == count else rows
        states[step, target], signals[step, target] = frame.states, frame.signals
        rewards[step, target] = frame.rewards
        returns[target] = decay * returns[target] + frame.rewards
        lengths[target] += 1
        if observer is not None:
            observer(step, rows, actions, frame)
    longest = int(lengths.max(initial=1))
    states, signals = states[:longest].swapaxes(0, 1), signals[:longest].swapaxes(0, 1)
    trajectories = Trajectories(signals, simulator.signals, rewards[:longest].T, lengths)
    return Executions(returns, lengths, states, oracle.judge(trajectories))


def _parts(count: int, capacity: int | None) -> Iterator[slice]:
    size = max(count, 1) if capacity is None else capacity
    for start in range(0, max(count, 1), size):
        yield slice(start, start + size)


def _shifted(observer: Observer, start: int) -> Observer:
    """`observer` of a part of the batch that begins at row `start`."""
    return lambda step, rows, actions, frame: observer(step, rows + start, actions, frame)


def concatenate(parts: Sequence[Executions]) -> Executions:
    """All results of `parts`, one after another."""
    if len(parts) == 1:
        return parts[0]
    longest = max(part.states.shape[1] for part in parts)
    states = [np.pad(part.states, ((0, 0), (0, longest - part.states.shape[1]), (0, 0))) for part in parts]
    return Executions(
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate(states),
        Verdicts(
            np.concatenate([part.verdicts.kinds for part in parts]),
            np.concatenate([part.verdicts.steps for part in parts]),
        ),
    )
