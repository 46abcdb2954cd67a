"""A target whose crash region is any function of the input, and dimensions of every kind."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Target


@dataclass
class OneStep:
    """Episodes of one step that crash where `region` says so."""

    region: Callable[[np.ndarray], np.ndarray]
    signals: ClassVar[tuple[str, ...]] = ("health",)
    capacity: ClassVar[int | None] = None
    inputs: np.ndarray = field(default_factory=lambda: np.empty((0, 1)))

    def reset(self, inputs, seeds):
        self.inputs = inputs
        return self.frame(np.arange(len(inputs)), np.ones(len(inputs)))

    def step(self, actions, rows):
        return self.frame(rows, np.where(self.region(self.inputs[rows]), -1.0, 1.0))

    def frame(self, rows, health):
        shown = self.inputs[rows]
        return Frame(shown, shown, health[:, None], np.zeros(len(rows)), np.zeros(len(rows), bool))


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


def target_of(dimensions, region, constraint=None, solvable=None) -> Target:
    """A target that crashes where `region` (n, d) -> (n,) is true."""
    return Target(
        "boxes",
        InputSpace(tuple(dimensions), constraint),
        lambda: OneStep(region),
        Idle,
        Below("health", 0.0, kind="crash"),
        horizon=1,
        solvable=solvable,
    )


class Recorder:
    """Runs episodes, and keeps their inputs."""

    def __init__(self, run):
        self._run, self.inputs, self.seeds, self.calls = run, [], [], 0

    def __call__(self, inputs, seeds):
        self.inputs += inputs.tolist()
        self.seeds += seeds.tolist()
        self.calls += 1
        return self._run(inputs, seeds)
