"""A target whose speed leaves that of passing episodes at a known step, well before the crash."""

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target
from policyfuzz.core.actions import ActionSpace

#: The step after which a strong push shows, and the one of the crash.
PUSHED, CRASH = 10, 30
HORIZON = 40


class Drifting:
    """A push above 0.5 speeds it up from step 11 on and uses up the gap at step 30, unless it brakes."""

    signals = ("gap",)
    capacity = None
    state_names: tuple[str, ...] = ("wobble", "speed [m/s]", "colour", "gap [m]", "speed [km/h]")

    def reset(self, inputs, seeds):
        self.inputs, self.step_number = inputs, np.zeros(len(inputs))
        self.speed = np.zeros(len(inputs))
        return self.frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self.step_number[rows] += 1
        is_pushed = (self.step_number[rows] > PUSHED) & (self.inputs[rows, 0] > 0.5) & (actions == 0)
        self.speed[rows] += is_pushed
        return self.frame(rows)

    def frame(self, rows):
        speed, time = self.speed[rows], self.step_number[rows]
        gap = np.where(speed >= CRASH - PUSHED, -1.0, 5 + 0.1 * np.sin(time))
        wobble = np.sin(time + self.inputs[rows, 1])
        states = np.column_stack(
            [wobble, speed + wobble / 9, np.ones(len(rows)), gap, 3.6 * speed + wobble * 0.4]
        )
        return Frame(states, states, gap[:, None], 1 - speed / 100, gap < 0)

    def render(self, row):
        picture = np.full((20, 30, 3), 200, np.uint8)
        picture[10, min(int(self.speed[row]), 29)] = 0
        return picture


class Rest:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows), np.int64)


def target(simulator=Drifting, noise=0.3):
    return Target(
        name="drifting",
        inputs=InputSpace((Real("push", 0, 1, noise=noise), Real("phase", 0, 6, noise=3.0))),
        simulator=simulator,
        policy=Rest,
        oracle=Below("gap", 0, kind="bump"),
        horizon=HORIZON,
        actions=ActionSpace.choices(("rest", "brake")),
    )
