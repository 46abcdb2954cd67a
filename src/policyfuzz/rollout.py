"""The step loop, the only one: n episodes in lock-step, one policy call per step for all of them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.episode_error import NUMBERS, RAISED, EpisodeError, traceback_text
from policyfuzz.errors import PolicyFuzzError, UsageError, blamed_on
from policyfuzz.oracles import NONE, Oracle, Trajectories, Verdicts
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
    errors: Mapping[int, EpisodeError] = field(default_factory=dict)  #: row to why it could not be run

    @classmethod
    def of(
        cls,
        returns: Sequence[float] | NDArray[Any],
        crashed: Sequence[bool] | NDArray[Any],
        states: Sequence[NDArray[Any]] | NDArray[Any] | None = None,
        errors: Mapping[int, str] | None = None,
    ) -> "Executions":
        """Results of n episodes that were run elsewhere.

        `returns` (n,) are numbers and `crashed` (n,) truth values. `states` are n sequences (t, k) of any
        lengths, or (t,) of single numbers; without them no sequence can be fresh. `errors` tell which rows
        could not be run to their end, and why.
        """
        fired = np.asarray(crashed, np.bool_)
        sequences = [
            np.asarray(one, np.float64) for one in ([[0.0]] * len(fired) if states is None else states)
        ]
        if not len(returns) == len(fired) == len(sequences):
            raise UsageError(
                f"{len(returns)} returns, {len(fired)} verdicts and {len(sequences)} sequences of states",
                "give one of each for every case, in their order",
            )
        tables = [one[:, None] if one.ndim == 1 else one for one in sequences]
        lengths = np.array([len(one) for one in tables], np.int64)
        return cls(
            np.array(returns, np.float64),
            lengths,
            np.concatenate(_padded([one[None] for one in tables])) if tables else np.empty((0, 1, 1)),
            Verdicts(np.where(fired, 0, NONE), np.where(fired, lengths - 1, NONE)),
            {row: EpisodeError(RAISED, int(lengths[row]) - 1, text) for row, text in (errors or {}).items()},
        )

    def __len__(self) -> int:
        return len(self.returns)

    @property
    def sound(self) -> NDArray[np.bool_]:
        """(n,) False where the episode could not be run to its end."""
        sound = np.ones(len(self), np.bool_)
        sound[list(self.errors)] = False
        return sound

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
            self._errors_at(rows) if self.errors else {},
        )

    def _errors_at(self, rows: NDArray[Any] | slice) -> dict[int, EpisodeError]:
        positions = np.arange(len(self))[rows].tolist()
        return {new: self.errors[old] for new, old in enumerate(positions) if old in self.errors}


class SimulatorRaised(Exception):
    """An exception came out of a simulator that was running several episodes, or one."""

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
    TargetCodeError; what a simulator raises is a SimulatorRaised, which does not tell whose episode it was.
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
    """(m,) True where an episode of `frame` is over; `errors` gets those that are so by an error."""
    for position, error in frame.errors.items():
        errors[int(rows[position])] = error
    # a sum is the cheapest way to see that there is no NaN anywhere
    if not np.isnan(frame.rewards.sum() + frame.states.sum()):
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
    try:
        yield
    except PolicyFuzzError:
        raise  # somebody knows better what is wrong
    except Exception as error:
        raise SimulatorRaised(EpisodeError(RAISED, step, traceback_text(error))) from error


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
    starts = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    return Executions(
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate(_padded([part.states for part in parts])),
        Verdicts(
            np.concatenate([part.verdicts.kinds for part in parts]),
            np.concatenate([part.verdicts.steps for part in parts]),
        ),
        {
            start + row: error
            for start, part in zip(starts, parts, strict=False)
            for row, error in part.errors.items()
        },
    )


def _padded(states: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Arrays (n, t, k) of one length and width, zero behind their end."""
    longest, widest = (max(one.shape[axis] for one in states) for axis in (1, 2))
    return [np.pad(one, ((0, 0), (0, longest - one.shape[1]), (0, widest - one.shape[2]))) for one in states]


def not_run(error: EpisodeError, oracle: Oracle, signals: tuple[str, ...]) -> Executions:
    """The execution of one episode of which nothing is known but its `error`."""
    lengths, errors = np.array([error.step + 1]), {0: error}
    known = np.zeros((1, error.step + 1, len(signals)))
    trajectories = Trajectories(known, signals, known[:, :, :0].sum(axis=2), lengths, errors)
    return Executions(np.array([np.nan]), lengths, known[:, :, :0], _judged(oracle, trajectories), errors)
