"""Environments and policies that mean no harm and break things all the same; named FILE.py:NAME."""

import sys
from typing import ClassVar

import numpy as np
from gym_environments import Corridor

#: What an environment may say when it raises, by a name that a command line can hold.
TEXTS = {
    "surrogate": "half a pair: \udc80",
    "long": "HEAD " + 1_000_000 * "x" + " TAIL",
}


class Talkative(Corridor):
    """Raises at its third step beyond -3, and says what it is told to."""

    def __init__(self, says):
        self.says = TEXTS.get(says, says)

    def reset(self, *, seed=None, options=None):
        first = super().reset(seed=seed, options=options)
        self.is_lost = self.place < -3
        return first

    def step(self, action):
        if self.is_lost and self.time == 2:
            raise ValueError(self.says)
        return super().step(action)


class Choosy(Corridor):
    """Draws its start, and resets itself again until it likes that."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = float(self.np_random.uniform(-100, 2))
        return (self.seen(), {}) if self.place > 0 else self.reset(options=options)


class Blind(Corridor):
    """Says that it has pictures, and has none."""

    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def render(self):
        return None


def quitter(observations):
    """Ends the whole program, as if all were well, as soon as it sees the far left."""
    if observations[:, 0].min() < -3:
        sys.exit(0)
    return np.zeros(len(observations), np.int64)
