"""Targets that take their process with them, or do not come back, where their input says so."""

import ctypes
import os
import signal
import time
from pathlib import Path
from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from policyfuzz import Below, Frame, InputSpace, Real, Target


class Trap(gymnasium.Env):
    """Walks to the right, into a pit beyond 3; the start is an option of reset, and has its dangers."""

    metadata = {"render_modes": []}  # noqa: RUF012 (as gymnasium declares it)
    observation_space = spaces.Box(-10.0, 10.0, (1,), np.float64)
    action_space = spaces.Discrete(2)
    reset_options_space = spaces.Dict({"start": spaces.Box(-4.0, 2.0, (), np.float64)})
    dangers: ClassVar[tuple[str, ...]] = ("segfault", "kill", "hang")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = float((options or {}).get("start", 0.0)), 0
        self.danger = danger(self.place, self.dangers)
        return np.array([self.place]), {}

    def step(self, action):
        self.time += 1
        if self.time == 3:
            if self.danger == "segfault":
                os.kill(os.getpid(), signal.SIGSEGV)
            elif self.danger == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.danger == "hang":
                ctypes.PyDLL(None).sleep(1000)
            elif self.danger == "raise":
                raise KeyError("no map of this place")
        self.place += 0.1 if action else -0.1
        return np.array([self.place]), -abs(self.place), self.place > 3, self.time >= 20, {}


class Raising(Trap):
    """Raises at various steps, so that episodes side by side do not fail in the order of their rows."""

    dangers = ("raise",) * 6

    def reset(self, *, seed=None, options=None):
        first = super().reset(seed=seed, options=options)
        self.time = -int(-100 * self.place) % 7  # the third step comes sooner or later
        return first


class Segfault(Trap):
    dangers = ("segfault",)


class Hang(Trap):
    dangers = ("hang",)


class Once(Trap):
    """Can be run once from each start below -1; after that it kills its process. DOOMED names its notes."""

    dangers = ()

    def reset(self, *, seed=None, options=None):
        first = super().reset(seed=seed, options=options)
        notes = Path(os.environ["DOOMED"])
        place, known = f"{self.place!r}\n", notes.read_text() if notes.exists() else ""
        notes.write_text(known + place)
        self.danger = "kill" if self.place < -1 and place in known else None
        return first


def danger(place, dangers):
    """What happens from this `place`: each danger has its own stretch of 0.3 on the far left."""
    position = int((place + 4.0) / 0.3)
    return dangers[position] if position < len(dangers) else None


def brave(observations):
    return (np.asarray(observations)[:, 0] > 0.5).astype(np.int64)


class Bog:
    """Slow; and bottomless where x is above 0.5, as long as a file named by BOG exists."""

    signals = ("depth",)
    capacity = None

    def reset(self, inputs, seeds):
        self._inputs, self._time = inputs, 0
        time.sleep(0.001 * len(inputs))  # as a simulator would work
        bog = os.environ.get("BOG")
        if bog and (inputs[:, 0] > 0.5).any() and Path(bog).exists():
            Path(f"{bog}-{os.getpid()}").touch()
            ctypes.PyDLL(None).sleep(1000)
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self._time += 1
        return self._frame(rows)

    def _frame(self, rows):
        states = self._inputs[rows] * (1 + self._time)
        depth = self._inputs[rows, :1] - 0.03
        return Frame(states, states, depth, states.sum(axis=1), np.zeros(len(rows), bool))


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


def bog():
    return Target(
        name=f"{__file__}:bog",
        inputs=InputSpace((Real("x", 0, 1), Real("y", 0, 1))),
        simulator=Bog,
        policy=Idle,
        oracle=Below("depth", 0, kind="sunk"),
        horizon=3,
        batch_size=50,
        samples=200,
    )


def unlicensed():
    """A target whose simulator cannot be made."""
    from dataclasses import replace

    return replace(bog(), name=f"{__file__}:unlicensed", simulator=refuse)


def refuse():
    raise PermissionError("no licence for this simulator")
