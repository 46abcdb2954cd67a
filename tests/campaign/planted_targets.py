"""Targets of which everything is known: where they crash, how often, who survives, and what shows it."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target

#: Below this value of x a noisy target crashes with nearly all case seeds, above it with few.
HOLDS_BELOW = 0.1
OFTEN, SELDOM = 0.95, 0.02
#: Above this value of y the reference policy crashes as well.
SAVED_BELOW = 0.5
#: Intervals of x from which a target with regions crashes.
REGIONS = ((0.05, 0.12), (0.3, 0.37), (0.6, 0.67), (0.85, 0.92))


@dataclass
class Shown:
    """Episodes of a few steps; a subclass says what they show, how healthy they are, and what they earn."""

    signals: ClassVar[tuple[str, ...]] = ("health",)
    capacity: ClassVar[int | None] = None
    #: Inputs and case seeds of all episodes in the order in which they were run, by class.
    episodes: ClassVar[list[tuple[float | int, ...]]] = []
    inputs: np.ndarray = field(default_factory=lambda: np.empty((0, 2)))
    seeds: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint64))

    def reset(self, inputs, seeds):
        self.inputs, self.seeds, self.time = inputs, seeds, 0
        rows = zip(inputs.tolist(), seeds.tolist(), strict=True)
        self.episodes.extend((*row, seed) for row, seed in rows)
        return self.frame(np.arange(len(inputs)), np.zeros(len(inputs)))

    def step(self, actions, rows):
        self.time += 1
        return self.frame(rows, actions)

    def frame(self, rows, actions):
        shown, health = self.shown(rows), self.health(rows, actions)
        if self.time < 2:
            health = np.ones(len(rows))
        return Frame(shown, shown, health[:, None], self.rewards(rows), np.zeros(len(rows), bool))

    def shown(self, rows):
        """(m, k) states."""
        return self.inputs[rows] + self.time

    def rewards(self, rows):
        """(m,) of a step."""
        return self.inputs[rows, 0]

    def health(self, rows, actions):
        """(m,) below zero for a crash."""
        return self.inputs[rows, 0] - HOLDS_BELOW


class Noisy(Shown):
    """The case seed decides whether an episode crashes: often where x is small, seldom elsewhere."""

    def reset(self, inputs, seeds):
        self.drawn = np.array([np.random.default_rng(int(seed)).random() for seed in seeds])
        return super().reset(inputs, seeds)

    def luck(self, rows):
        """(m,) evenly spread over 0 to 1."""
        return self.drawn[rows]

    def rewards(self, rows):
        return self.inputs[rows, 0] + 0.1 * self.luck(rows)

    def health(self, rows, actions):
        chance = np.where(self.inputs[rows, 0] < HOLDS_BELOW, OFTEN, SELDOM)
        return np.where(self.luck(rows) < chance, -1.0, 1.0)


class Avoidable(Shown):
    """Crashes where x is small, unless the policy does something."""

    def health(self, rows, actions):
        return np.where((self.inputs[rows, 0] < HOLDS_BELOW) & (actions == 0), -1.0, 1.0)


class Regions(Shown):
    """Crashes in some intervals of x. A crash shows which one it is, and hardly anything of the rest."""

    detail = 1e-3

    def shown(self, rows):
        x, others = self.inputs[rows, 0], self.inputs[rows, 1:]
        region = region_of(self.inputs[rows])
        middles = np.array([sum(ends) / 2 for ends in REGIONS])
        place = np.where(region >= 0, middles[region], x)
        others = np.where(region[:, None] >= 0, self.detail * others, others)
        return np.column_stack([place, others.sum(axis=1)])

    def health(self, rows, actions):
        middles = np.array([sum(ends) / 2 for ends in REGIONS])
        apart = np.abs(self.inputs[rows, :1] - middles).min(axis=1)
        return np.where(region_of(self.inputs[rows]) >= 0, -1.0, apart)


class PlainRegions(Regions):
    """The same, where a crash shows nothing but its region."""

    detail = 0.0


def region_of(inputs):
    """(n,) number of the region that each of `inputs` (n, d) lies in, -1 for none."""
    found = np.full(len(inputs), -1)
    for number, (low, high) in enumerate(REGIONS):
        found[(inputs[:, 0] > low) & (inputs[:, 0] < high)] = number
    return found


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


class Careful(Idle):
    """Does what saves it where y is small."""

    def act(self, observations, rows):
        return (observations[:, 1] % 1 < SAVED_BELOW).astype(float)


class Helpless(Idle):
    """Saves itself nowhere."""


def _target(name, simulator, dimensions=2, policy=Idle):
    names = ("x", "y", "z", "u", "v")[:dimensions]

    return Target(
        name=f"planted_targets:{name}",
        inputs=InputSpace(tuple(Real(one, 0, 1) for one in names)),
        simulator=type(simulator.__name__, (simulator,), {"episodes": []}),
        policy=policy,
        oracle=Below("health", 0, kind="ill"),
        horizon=4,
        policy_name=policy.__name__.lower(),
    )


def plain():
    return _target("plain", Shown)


def noisy():
    return _target("noisy", Noisy)


def avoidable():
    return _target("avoidable", Avoidable)


def careful():
    """The reference that survives some of what `avoidable` crashes from."""
    return _target("avoidable", Avoidable, policy=Careful)


def helpless():
    return _target("avoidable", Avoidable, policy=Helpless)


def regions():
    return _target("regions", Regions, 5)


def plain_regions():
    return _target("plain_regions", PlainRegions, 5)
