"""A target all of whose texts try to end a literal, a comment or an element."""

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target

HOSTILE = "'\"\\\n\r'''\"\"\"]]>&<!--\x1b\x85\u2028#{x}%s\nimport os; os.abort() #"


class Slope:
    """Falls on the left."""

    signals = ("height",)
    capacity = None

    def reset(self, inputs, seeds):
        self._inputs = inputs
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        return self._frame(rows)

    def _frame(self, rows):
        states = self._inputs[rows]
        return Frame(states, states, states - 0.2, states[:, 0], np.zeros(len(rows), bool))


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


def hostile_target() -> Target:
    return Target(
        name=f"x{HOSTILE}.py:make",
        inputs=InputSpace((Real(f"x{HOSTILE}", 0, 1),)),
        simulator=Slope,
        policy=Idle,
        oracle=Below("height", 0, kind=f"fall{HOSTILE}"),
        horizon=3,
        batch_size=32,
        samples=32,
    )
