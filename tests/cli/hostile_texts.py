"""A target all of whose texts hold what a terminal would obey."""

import numpy as np

from policyfuzz import Below, Choice, Diagnosis, Frame, InputSpace, Level, Real, Target

#: Sets the title of a terminal, clears it, and turns the rest of the line round.
HOSTILE = "\x1b]0;x\x07\x1b[2J\x9b1m\u202e\u2066\u200b\r"


class Slide:
    """Raises far on the right, and is ill far on the left."""

    signals = (f"health{HOSTILE}",)
    capacity = None

    def reset(self, inputs, seeds):
        self._inputs = inputs
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        if (self._inputs[rows, 0] > 0.8).any():
            raise ValueError(f"too far{HOSTILE}")
        return self._frame(rows)

    def _frame(self, rows):
        states = self._inputs[rows]
        health = np.where(states[:, :1] < 0.1, -1.0, 1.0)
        return Frame(states, states, health, states[:, 0], np.zeros(len(rows), bool))


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


def checks(_executions, _make_runner):
    return [Diagnosis(f"name{HOSTILE}", Level.WARNING, f"message{HOSTILE}", f"hint{HOSTILE}")]


def make(options=None, policy=None):
    return Target(
        name=f"{__file__}:make",
        inputs=InputSpace(
            (
                Real(f"x{HOSTILE}", 0, 1, unit=f"m{HOSTILE}"),
                Choice(f"y{HOSTILE}", (f"a{HOSTILE}", f"b{HOSTILE}")),
            )
        ),
        simulator=Slide,
        policy=Idle,
        oracle=Below(f"health{HOSTILE}", 0, kind=f"ill{HOSTILE}"),
        horizon=3,
        policy_name=f"idle{HOSTILE}",
        notes=(f"note{HOSTILE}",),
        further_checks=checks,
    )


def broken(options=None, policy=None):
    raise ValueError(f"cannot be made{HOSTILE}")
