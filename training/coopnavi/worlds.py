"""Many worlds at once for training: they run on and on, each starting anew when its time is up."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.coopnavi import layout, physics

Floats = NDArray[np.float64]


class TrainingWorlds:
    """n worlds of `length` steps each; their ages differ, so that every batch has all parts of an episode."""

    def __init__(self, count: int, length: int, rng: np.random.Generator) -> None:
        self.length = length
        self.worlds = physics.start(layout.sample(rng, count))
        self.ages = np.arange(count) % length

    def step(
        self, bank: MlpBank, noise: float, rng: np.random.Generator
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """One step of all worlds: worlds (n, 18), forces (n, 6), worlds afterwards (n, 18), rewards (n,).

        Actions are the softmax of logits plus `noise` times Gumbel noise.
        """
        count = len(self.worlds)
        rows = np.arange(count)
        observations = np.empty((count, physics.AGENTS, physics.OBSERVED))
        physics.observe(self.worlds, rows, observations)
        logits = bank(observations.reshape(-1, physics.OBSERVED), np.tile(np.arange(physics.AGENTS), count))
        noisy = logits + noise * rng.gumbel(size=logits.shape)
        actions = np.exp(noisy - noisy.max(axis=1, keepdims=True))
        actions /= actions.sum(axis=1, keepdims=True)
        actions = actions.reshape(count, physics.AGENTS, physics.ACTIONS)
        before = self.worlds.copy()
        physics.advance(self.worlds, rows, actions, False)
        after = self.worlds.copy()
        rewards, counts = np.empty(count), np.empty((3, count), np.int64)
        physics.judge(after, rows, rewards, *counts)
        self._start_anew(rng)
        forces = np.stack([actions[..., 1] - actions[..., 2], actions[..., 3] - actions[..., 4]], axis=-1)
        return before, forces.reshape(count, -1), after, rewards

    def _start_anew(self, rng: np.random.Generator) -> None:
        self.ages += 1
        over = np.flatnonzero(self.ages >= self.length)
        self.worlds[over] = physics.start(layout.sample(rng, len(over)))
        self.ages[over] = 0

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint needs."""
        return {"worlds": self.worlds, "ages": self.ages}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.worlds, self.ages = state["worlds"], state["ages"]
