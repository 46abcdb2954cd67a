"""A walker that meets an obstacle, of which everything is known: who can avoid it, how, and until when."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from policyfuzz import Frame, InputSpace, Integer, Real, Target
from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.oracle import Below, Oracle
from policyfuzz.triage.witness import Crash

HORIZON = 40
#: What a crash costs, and what a step earns at most.
COST, STEP_REWARD = 10.0, 1.0
STEPS_ASIDE = np.array([-1.0, 1.0, 0.0, 0.0])
LEFT, RIGHT, AHEAD = 0, 1, 2


@dataclass
class Obstacles:
    """The obstacle comes at step `at` and is `width` wide to either side; a step aside takes one off.

    Actions are left, right, ahead and wait, numbered from 0, or one number from -1 to 1 for the way aside.
    Nothing happens to a walker that waits, which earns nothing. `later` is a step at which a walker that is
    not in the middle crashes after all, 0 for none.
    """

    signals: ClassVar[tuple[str, ...]] = ("room",)
    capacity: ClassVar[int | None] = None
    is_chosen: bool = True

    def reset(self, inputs, seeds):
        self.inputs, self.time = inputs, 0
        self.aside, self.waited = np.zeros(len(inputs)), np.zeros(len(inputs), bool)
        return self._frame(np.arange(len(inputs)), np.zeros(len(inputs)))

    def step(self, actions, rows):
        self.time += 1
        chosen = np.asarray(actions, float).reshape(len(rows))
        waits = self.is_chosen & (chosen == 3)
        self.waited[rows] = waits
        self.aside[rows] += STEPS_ASIDE[chosen.astype(int)] if self.is_chosen else np.clip(chosen, -1, 1)
        return self._frame(rows, np.where(waits, 0.0, STEP_REWARD))

    def _frame(self, rows, rewards):
        at, width, later = self.inputs[rows].T
        room = np.full(len(rows), 100.0)
        is_met = (self.time == at) & ~self.waited[rows]
        room = np.where(is_met, np.abs(self.aside[rows]) - width, room)
        room = np.where((later > 0) & (self.time == later) & (self.aside[rows] != 0), -1.0, room)
        state = np.column_stack([self.aside[rows], np.full(len(rows), float(self.time))])
        return Frame(state, state, room[:, None], rewards - COST * (room < 0), room < 0)


class Ahead:
    """Never looks."""

    def __init__(self, action):
        self.action = action

    def begin(self, count): ...

    def act(self, observations, rows):
        return np.full(len(rows), self.action)


class Homing(Ahead):
    """Goes ahead, and back to the middle from anywhere else."""

    def act(self, observations, rows):
        aside = observations[:, 0]
        return np.where(aside > 0, LEFT, np.where(aside < 0, RIGHT, AHEAD))


CHOICES = ActionSpace.choices(("left", "right", "ahead"))
WAITS = ActionSpace.choices(("ahead", "wait"), start=AHEAD)
NUMBERS = ActionSpace.box(np.array([-1.0]), np.array([1.0]), ("aside",))


def obstacles(actions: ActionSpace = CHOICES, oracle: Oracle | None = None) -> Target:
    is_chosen = bool(actions.is_whole.all())
    return Target(
        name="planted:obstacles",
        inputs=InputSpace(
            (Integer("at", 2, HORIZON), Real("width", -5, 60, noise=2.0), Integer("later", 0, 3 * HORIZON))
        ),
        simulator=lambda: Obstacles(is_chosen),
        policy=lambda: Ahead(AHEAD if is_chosen else 0.0),
        oracle=oracle or Below("room", 0, kind="bump"),
        horizon=HORIZON,
        actions=actions,
    )


def crash(at: int, width: float, later: int = 0, kind: str = "bump") -> Crash:
    """The crash of who goes straight ahead."""
    return Crash(np.array([at, width, later], float), 5, at, kind, at * STEP_REWARD - COST)
