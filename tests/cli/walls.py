"""A target for tests of the command line: it crashes where x is small, unless its policy looks at y."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target


@dataclass
class Walls:
    """Three steps; the second says how far the wall is, unless the policy brakes."""

    signals: ClassVar[tuple[str, ...]] = ("room",)
    capacity: ClassVar[int | None] = None
    is_noisy: bool = False

    def reset(self, inputs, seeds):
        self.inputs, self.seeds, self.time = inputs, seeds, 0
        return self.frame(np.arange(len(inputs)), np.zeros(len(inputs)))

    def step(self, actions, rows):
        self.time += 1
        return self.frame(rows, actions)

    def frame(self, rows, actions):
        x = self.inputs[rows, 0]
        room = np.where(actions > 0, 1.0, x - 0.2)
        if self.is_noisy:
            luck = np.array([np.random.default_rng(int(seed)).random() for seed in self.seeds[rows]])
            # from the left wall nearly always, elsewhere once in fifty times
            room = np.where(luck < np.where(x < 0.1, 0.95, 0.02), -1.0, 1.0)
        room = room if self.time == 2 else np.ones(len(rows))
        states = self.inputs[rows] + self.time
        return Frame(states, states, room[:, None], x, np.full(len(rows), self.time == 3))


class Bold:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


class Careful(Bold):
    """Brakes where y is small."""

    def act(self, observations, rows):
        return (observations[:, 1] % 1 < 0.5).astype(float)


class Timid(Bold):
    """Always brakes."""

    def act(self, observations, rows):
        return np.ones(len(rows))


POLICIES = {"bold": Bold, "careful": Careful, "timid": Timid, "as bold": Bold}


def make(policy="bold", noise="no"):
    return Target(
        name="replaced by the loader",
        inputs=InputSpace((Real("x", 0, 1), Real("y", 0, 1))),
        simulator=lambda: Walls(is_noisy=noise == "yes"),
        policy=POLICIES[policy],
        oracle=Below("room", 0, kind="wall"),
        horizon=3,
        policy_name=policy,
        policy_uri=policy,
        policy_sha256=policy.split()[-1],
        batch_size=64,
        samples=64,
    )
