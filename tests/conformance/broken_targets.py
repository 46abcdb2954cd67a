"""Targets that each break one promise."""

from dataclasses import replace

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target


class Walk:
    """A walk with seeded noise; it falls below zero now and then."""

    signals = ("height",)
    capacity = None

    def reset(self, inputs, seeds):
        self.heights = inputs[:, 0] + 0.5
        self.noise = [np.random.default_rng(int(seed)) for seed in seeds]
        return self.frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        steps = np.array([self.noise[row].normal(0, 0.15) for row in rows])
        self.heights[rows] += steps + 0.1 * actions
        return self.frame(rows, self.heights[rows])

    def frame(self, rows, rewards=None):
        states = np.column_stack([self.heights[rows], self.heights[rows] ** 2])
        return Frame(
            observations=states,
            states=states,
            signals=self.heights[rows, None],
            rewards=np.zeros(len(rows)) if rewards is None else rewards,
            ended=self.heights[rows] < 0,
        )

    def render(self, row):
        picture = np.full((20, 30, 3), 200, np.uint8)
        picture[10, int(np.clip(10 * self.heights[row], 0, 29))] = 0
        return picture


class Lazy:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


SPACE = InputSpace((Real("height", 0, 1), Real("nothing", 0, 1)))


def sound():
    return Target(
        name="broken_targets:sound",
        inputs=SPACE,
        simulator=Walk,
        policy=Lazy,
        oracle=Below("height", 0, kind="fell"),
        horizon=12,
        policy_sha256="lazy",
    )


class EditsInputs(Walk):
    def reset(self, inputs, seeds):
        frame = super().reset(inputs, seeds)
        inputs[:, 1] = 0
        return frame


class MixesRows(Walk):
    """The mean of the batch pulls every walk."""

    def step(self, actions, rows):
        self.heights[rows] += 0.01 * self.heights[rows].mean()
        return super().step(actions, rows)


class LastOneCounts(Walk):
    """The last episode of the batch slows the others down."""

    def reset(self, inputs, seeds):
        frame = super().reset(inputs, seeds)
        self.drag = inputs[-1, 0]
        return frame

    def step(self, actions, rows):
        self.heights[rows] -= 1e-9 * self.drag
        return super().step(actions, rows)


class Ages(Walk):
    """Wears out a little in every step it has ever made."""

    age = 0

    def step(self, actions, rows):
        self.age += 1
        self.heights[rows] -= 1e-9 * self.age
        return super().step(actions, rows)


PROCESS_NUMBER = np.random.default_rng().random()


class KnowsItsProcess(Walk):
    def reset(self, inputs, seeds):
        return super().reset(inputs + np.array([1e-6 * PROCESS_NUMBER, 0.0]), seeds)


class DisturbedByCamera(Walk):
    def render(self, row):
        self.heights[row] += 0.01
        return super().render(row)


class ZoomingCamera(Walk):
    def render(self, row):
        return np.zeros((20, 30 + int(100 * abs(self.heights[row])), 3), np.uint8)


class StartsWithReward(Walk):
    def reset(self, inputs, seeds):
        return replace(super().reset(inputs, seeds), rewards=np.ones(len(inputs)))


class TooManySignals(Walk):
    def frame(self, rows, rewards=None):
        return replace(super().frame(rows, rewards), signals=np.zeros((len(rows), 2)))


class AllRowsAlways(Walk):
    def step(self, actions, rows):
        super().step(actions, rows)
        return self.frame(np.arange(len(self.heights)), self.heights)


class Unseeded(Walk):
    def reset(self, inputs, seeds):
        return super().reset(inputs, np.random.default_rng().integers(0, 2**60, len(seeds)))


class FloatCamera(Walk):
    def render(self, row):
        return np.zeros((20, 30, 3))


class GreyCamera(Walk):
    def render(self, row):
        return np.zeros((20, 30), np.uint8)


class CameraOfGymnasium(Walk):
    def render(self):  # type: ignore[override]
        return np.zeros((20, 30, 3), np.uint8)


class BrokenCamera(Walk):
    def render(self, row):
        raise RuntimeError("no film in it")


class CannotBeMade(Walk):
    def __init__(self):
        raise RuntimeError("no such simulator here")


def _with_simulator(simulator):
    return lambda: replace(sound(), simulator=simulator)


edits_inputs = _with_simulator(EditsInputs)
mixes_rows = _with_simulator(MixesRows)
last_one_counts = _with_simulator(LastOneCounts)
ages = _with_simulator(Ages)
knows_its_process = _with_simulator(KnowsItsProcess)
disturbed_by_camera = _with_simulator(DisturbedByCamera)
zooming_camera = _with_simulator(ZoomingCamera)
starts_with_reward = _with_simulator(StartsWithReward)
too_many_signals = _with_simulator(TooManySignals)
all_rows_always = _with_simulator(AllRowsAlways)
unseeded = _with_simulator(Unseeded)
float_camera = _with_simulator(FloatCamera)
grey_camera = _with_simulator(GreyCamera)
camera_of_gymnasium = _with_simulator(CameraOfGymnasium)
broken_camera = _with_simulator(BrokenCamera)
cannot_be_made = _with_simulator(CannotBeMade)


def _fails(inputs):
    raise RuntimeError("cannot say")


def cannot_judge():
    return replace(sound(), solvable=_fails)


def with_policy(policy="0"):
    """Its policy is named, and has neither a path nor a digest."""

    class Push(Lazy):
        def act(self, observations, rows):
            return np.full(len(rows), float(policy))

    return replace(sound(), policy=Push, policy_sha256="")


def never_crashes():
    return replace(sound(), oracle=Below("height", -100, kind="fell"))


def _with_space(**changes):
    return lambda: replace(sound(), inputs=replace(SPACE, **changes))


draws_by_itself = _with_space(sampler=lambda rng, count: np.random.default_rng().random((count, 2)))
relative_validity = _with_space(constraint=lambda inputs: inputs[:, 0] >= np.median(inputs[:, 0]))


def changes_with_every_load():
    return replace(sound(), policy_sha256=str(np.random.default_rng().random()))


def _edits_and_judges(inputs):
    inputs[:, 1] = 0.5
    return np.ones(len(inputs), bool)


def edits_while_judging():
    return replace(sound(), solvable=_edits_and_judges)


class Stretched(Real):
    """Forgets half of the way back from the unit cube."""

    def from_unit(self, unit):
        return super().from_unit(unit) * 0.5


def stretched_dimension():
    return replace(sound(), inputs=InputSpace((Stretched("height", 0, 1), Real("nothing", 0, 1))))


#: Changes from campaign to campaign, but not while the health check runs episodes twice.
class WearsOutSlowly(Walk):
    episodes = 0

    def reset(self, inputs, seeds):
        WearsOutSlowly.episodes += len(inputs)
        frame = super().reset(inputs, seeds)
        self.heights -= 1e-9 * (WearsOutSlowly.episodes // 150)
        return frame


wears_out_slowly = _with_simulator(WearsOutSlowly)
