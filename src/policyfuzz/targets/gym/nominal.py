"""Nominal episodes: those that start as the environment's own reset has it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.executions import Executions
from policyfuzz.oracles import NONE, Trajectories, Verdicts
from policyfuzz.oracles.defaults import NominalEpisodes
from policyfuzz.policies.protocol import Policy
from policyfuzz.simulators.gym.seed_start import SeedStart
from policyfuzz.simulators.protocol import Frame, Simulator
from policyfuzz.target import Target, runner_of

#: Episodes that nominal returns are taken from. Their seeds are fixed: the same policy has the same ones.
EPISODES = 50
#: Stands for a signal that is missing, since a state must not be NaN.
_MISSING = -np.inf


class _Shown:
    """A simulator whose states are what the oracle sees, and the reward: executions carry states."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self.signals, self.capacity = simulator.signals, simulator.capacity

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        return self._shown(self._simulator.reset(inputs, seeds))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        return self._shown(self._simulator.step(actions, rows))

    def _shown(self, frame: Frame) -> Frame:
        seen = np.column_stack([frame.signals, frame.rewards])
        seen[np.isnan(seen)] = _MISSING  # info may lack a key, which is no error
        seen[np.isnan(frame.states).any(axis=1)] = np.nan  # and this is one
        return replace(frame, states=seen)


class _Never:
    """An oracle that never fires."""

    kinds = ("never",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        nothing = np.full(len(trajectories.lengths), NONE)
        return Verdicts(nothing, nothing)


def nominal_episodes(
    make_simulator: Callable[[], Simulator], make_policy: Callable[[], Policy], horizon: int
) -> NominalEpisodes:
    """What a policy does where a simulator starts from seeds; episodes that could not be run are left out."""
    names = make_simulator().signals
    target = Target(
        "nominal episodes",
        SeedStart.inputs,
        lambda: _Shown(make_simulator()),
        make_policy,
        _Never(),
        horizon,
    )
    seeds = np.arange(EPISODES, dtype=np.uint64)
    executions = runner_of(target)(seeds.astype(np.float64)[:, None], seeds)
    sound = executions[executions.sound]
    seen = sound.states if len(sound) else np.empty((0, 1, len(names) + 1))
    last = seen[np.arange(len(sound)), sound.lengths - 1]
    largest = np.where(_counted(sound)[:, :, None] & (seen != _MISSING), seen, -np.inf).max(axis=1)
    terminated = last[:, names.index("terminated")] > 0
    return NominalEpisodes(
        returns=sound.returns,
        lengths=sound.lengths,
        terminated=terminated,
        truncated=~terminated,
        info={
            name.removeprefix("info."): np.where(np.isneginf(column), np.nan, column)
            for name, column in zip(names, largest.T, strict=False)
            if "info." in name
        },
        last_rewards=last[:, -1],
        failure=next((error.summary for error in executions.errors.values()), ""),
    )


def _counted(executions: Executions) -> NDArray[np.bool_]:
    """(n, t) True for what lies within an episode."""
    return np.arange(executions.states.shape[1]) < executions.lengths[:, None]


class RandomActions:
    """Draws actions from their space: what any oracle of a control task should catch now and then."""

    def __init__(self, space: Any) -> None:
        self._space = space

    def begin(self, count: int) -> None:
        self._space.seed(0)

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.array([self._space.sample() for _ in rows])
