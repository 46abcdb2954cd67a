"""Walks: whole episodes of many walkers, as training wants them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.environments.families.bipedal_walker import NAMED, OBSTACLES
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.bipedal.simulator import WalkerSimulator

#: Walkers in lock-step; more do not fit the processor's cache.
TOGETHER = 64
FULL = 2000  #: steps of an episode as gymnasium registers it
SHORT = 300  #: steps of an episode of the target by default

Floats = NDArray[np.float32]
#: Observations (m, 24) to actions (m, 4).
Act = Callable[[Floats], NDArray[np.floating]]


@dataclass(frozen=True, slots=True)
class Cases:
    """Episodes to walk."""

    inputs: NDArray[np.float64]  #: (n, 15)
    seeds: NDArray[np.uint64]  #: (n,)

    @classmethod
    def random(cls, rng: np.random.Generator, count: int) -> "Cases":
        """`count` random terrains."""
        inputs = rng.integers(0, len(OBSTACLES), (count, NAMED)).astype(np.float64)
        return cls(inputs, rng.integers(0, 2**63, count, dtype=np.uint64))

    @classmethod
    def concatenate(cls, first: "Cases", second: "Cases") -> "Cases":
        """Both, one after another."""
        return cls(np.concatenate([first.inputs, second.inputs]), np.concatenate([first.seeds, second.seeds]))

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_] | slice) -> "Cases":
        return Cases(self.inputs[rows], self.seeds[rows])


@dataclass(frozen=True, slots=True)
class Walks:
    """What n walkers did, padded behind the end of each; t steps at most."""

    observations: Floats  #: (n, t + 1, 24) the last one that counts is that after the last step
    actions: Floats  #: (n, t, 4)
    rewards: Floats  #: (n, t)
    lengths: NDArray[np.int64]  #: (n,) steps
    has_fallen: NDArray[np.bool_]  #: (n,)
    has_ended: NDArray[np.bool_]  #: (n,) False where only time ran out

    @property
    def returns(self) -> NDArray[np.float64]:
        """(n,) sum of the rewards."""
        return self.rewards.astype(np.float64).sum(axis=1)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """(n, t) True where a walker was still on its way."""
        counted: NDArray[np.bool_] = np.arange(self.rewards.shape[1]) < self.lengths[:, None]
        return counted


@dataclass(frozen=True, slots=True)
class Scores:
    """What n walks came to, all (n,)."""

    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    has_fallen: NDArray[np.bool_]
    has_ended: NDArray[np.bool_]  #: False where only time ran out
    short_returns: NDArray[np.float64]  #: after SHORT steps

    @property
    def falls_early(self) -> NDArray[np.bool_]:
        """(n,) True where an episode of SHORT steps would have had the fall."""
        return self.has_fallen & (self.lengths <= SHORT)


def acting(bank: MlpBank, rng: np.random.Generator | None = None, noise: float = 0.0) -> Act:
    """Acts by `bank`, with some noise on the motors if asked for."""

    def act(observations: Floats) -> NDArray[np.float64]:
        motors = bank(observations, np.zeros(len(observations), np.int64))
        return motors if rng is None else motors + noise * rng.normal(size=motors.shape)

    return act


def walk(
    simulator: WalkerSimulator,
    act: Act,
    cases: Cases,
    horizon: int,
    limits: NDArray[np.int64] | None = None,
) -> Walks:
    """Walk all `cases` at once, for `horizon` steps at most; `limits` (n,) are for single ones."""
    count = len(cases)
    observations = np.zeros((count, horizon + 1, 24), np.float32)
    actions, rewards = np.zeros((count, horizon, 4), np.float32), np.zeros((count, horizon), np.float32)
    lengths = np.zeros(count, np.int64)
    has_fallen, has_ended = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    frame = simulator.reset(cases.inputs, cases.seeds)
    observations[:, 0] = frame.observations
    rows = np.arange(count)
    for step in range(horizon):
        if len(rows) == 0:
            break
        chosen = act(observations[rows, step])
        frame = simulator.step(chosen, rows)
        actions[rows, step], rewards[rows, step] = chosen, frame.rewards
        observations[rows, step + 1] = frame.observations
        lengths[rows] += 1
        has_fallen[rows], has_ended[rows] = frame.signals[:, 0] == 0, frame.ended
        goes_on = ~frame.ended if limits is None else ~frame.ended & (limits[rows] > step + 1)
        rows = rows[goes_on]
    return Walks(observations, actions, rewards, lengths, has_fallen, has_ended)


def score(simulator: WalkerSimulator, act: Act, cases: Cases, horizon: int) -> Scores:
    """Walk `cases` some at a time and keep the results only."""
    parts = [
        walk(simulator, act, cases[start : start + TOGETHER], horizon)
        for start in range(0, len(cases), TOGETHER)
    ]
    return Scores(
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.has_fallen for part in parts]),
        np.concatenate([part.has_ended for part in parts]),
        np.concatenate([part.rewards[:, :SHORT].astype(np.float64).sum(axis=1) for part in parts]),
    )
