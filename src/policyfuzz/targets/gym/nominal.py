"""Nominal episodes: those that start as the environment's own reset has it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.oracles import NONE, Trajectories, Verdicts
from policyfuzz.oracles.defaults import NominalEpisodes
from policyfuzz.policies.protocol import Policy
from policyfuzz.rollout import rollout
from policyfuzz.simulators.protocol import Simulator

#: Episodes that nominal returns are taken from. Their seeds are fixed: the same policy has the same ones.
EPISODES = 50


class _Witness:
    """An oracle that never fires and remembers what it was shown."""

    kinds = ("never",)
    seen: Trajectories

    def judge(self, trajectories: Trajectories) -> Verdicts:
        self.seen = trajectories
        nothing = np.full(len(trajectories.lengths), NONE)
        return Verdicts(nothing, nothing)


def nominal_episodes(simulator: Simulator, policy: Policy, horizon: int) -> NominalEpisodes:
    """What `policy` does where `simulator` starts from seeds; episodes that could not be run are left out."""
    witness, seeds = _Witness(), np.arange(EPISODES, dtype=np.uint64)
    inputs = seeds.astype(np.float64)[:, None]
    executions = rollout(simulator, policy, witness, inputs, seeds, horizon=horizon)
    seen, sound = witness.seen, executions.sound
    last = (np.arange(EPISODES), seen.lengths - 1)
    terminated = seen.signal("terminated")[last][sound] > 0
    return NominalEpisodes(
        returns=executions.returns[sound],
        lengths=executions.lengths[sound],
        terminated=terminated,
        truncated=~terminated,
        info={
            name.removeprefix("info."): _largest(seen, name)[sound] for name in seen.names if "info." in name
        },
        last_rewards=seen.rewards[last][sound],
        failure=next((error.summary for error in executions.errors.values()), ""),
    )


def _largest(seen: Trajectories, name: str) -> NDArray[np.float64]:
    """(n,) the largest value of a signal in each episode, NaN where it never had one."""
    values = np.where(seen.counted & ~np.isnan(seen.signal(name)), seen.signal(name), -np.inf)
    largest = values.max(axis=1)
    return np.where(np.isneginf(largest), np.nan, largest)


class RandomActions:
    """Draws actions from their space: what any oracle of a control task should catch now and then."""

    def __init__(self, space: Any) -> None:
        self._space = space

    def begin(self, count: int) -> None:
        self._space.seed(0)

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.array([self._space.sample() for _ in rows])
