"""Targets with something wrong, named module:function on the command line."""

from dataclasses import replace

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target


class Slide:
    """Each episode shows its input for some steps; `judge` is 1 where it is healthy."""

    signals = ("health",)
    capacity = None

    def reset(self, inputs, seeds):
        self._inputs, self._time = inputs, 0
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self._time += 1
        return self._frame(rows)

    def _frame(self, rows):
        states = self._inputs[rows] + self._time
        health = np.where(self._inputs[rows, 0] < 0.1, -1.0, 1.0)
        return Frame(states, states, health[:, None], self.rewards(rows), np.zeros(len(rows), bool))

    def rewards(self, rows):
        return self._inputs[rows, 0]


class Noisy(Slide):
    def rewards(self, rows):
        return np.random.default_rng().random(len(rows))


class Diverging(Slide):
    def rewards(self, rows):
        return np.full(len(rows), np.nan)


class Infinite(Slide):
    def rewards(self, rows):
        return np.full(len(rows), np.inf)


class Flat(Slide):
    def rewards(self, rows):
        return np.zeros(len(rows))


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


def healthy():
    return Target(
        name="faulty_targets:healthy",
        inputs=InputSpace((Real("x", 0, 1, unit="m"), Real("y", 0, 1))),
        simulator=Slide,
        policy=Idle,
        oracle=Below("health", 0, kind="ill"),
        horizon=5,
    )


def noisy():
    return replace(healthy(), name="faulty_targets:noisy", simulator=Noisy)


def diverging():
    return replace(healthy(), name="faulty_targets:diverging", simulator=Diverging)


def infinite():
    return replace(healthy(), name="faulty_targets:infinite", simulator=Infinite)


def flat():
    return replace(healthy(), name="faulty_targets:flat", simulator=Flat)


def always_crashing():
    return replace(
        healthy(), name="faulty_targets:always_crashing", oracle=Below("health", 2, kind="anything")
    )


def nothing_valid():
    space = InputSpace((Real("x", 0, 1),), constraint=lambda inputs: np.zeros(len(inputs), bool))
    return replace(healthy(), name="faulty_targets:nothing_valid", inputs=space)


class Flaky(Slide):
    """Crashes by chance, once the health check is over."""

    episodes = 0

    def reset(self, inputs, seeds):
        frame = super().reset(inputs, seeds)
        Flaky.episodes += len(inputs)
        return frame

    def _frame(self, rows):
        frame = super()._frame(rows)
        if Flaky.episodes > 1500:
            ill = np.random.default_rng().random(len(rows)) < 0.01
            return replace(frame, signals=np.where(ill, -1.0, 1.0)[:, None])
        return replace(frame, signals=np.ones((len(rows), 1)))


def flaky():
    return replace(healthy(), name="faulty_targets:flaky", simulator=Flaky)


def not_a_target():
    return 42


class Raising(Slide):
    def step(self, actions, rows):
        raise ZeroDivisionError("the simulator broke")


def raising():
    return replace(healthy(), simulator=Raising)


class Brittle(Slide):
    """Breaks where x is above 0.9: it raises, or gives NaN where y is above 0.5."""

    def step(self, actions, rows):
        frame = super().step(actions, rows)
        x, y = self._inputs[rows].T
        if ((x > 0.9) & (y < 0.5)).any():
            raise ZeroDivisionError("one bad start")
        return replace(frame, rewards=np.where((x > 0.9) & (self._time == 3), np.nan, frame.rewards))


def brittle():
    return replace(healthy(), name="faulty_targets:brittle", simulator=Brittle)


class Confused(Idle):
    """Raises where it sees x above 0.99 at the start."""

    def act(self, observations, rows):
        if (observations[:, 0] % 1 > 0.99).any():
            raise KeyError("no idea what to do")
        return super().act(observations, rows)


def confused():
    return replace(healthy(), name="faulty_targets:confused", policy=Confused)


def misspelt_signal():
    return replace(healthy(), oracle=Below("helth", 0, kind="ill"))


def needs_an_argument(something):
    return healthy()


def broken_factory():
    raise RuntimeError("cannot be made")


def misnamed():
    return replace(healthy(), name="somebody else")
