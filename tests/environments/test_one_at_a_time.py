import numpy as np
import pytest

import policyfuzz as pf
from policyfuzz.core.errors import TargetCodeError
from policyfuzz.core.interfaces import Renders

SPACE = pf.InputSpace(
    (pf.Real("x", 0, 1), pf.Integer("count", 1, 5), pf.Choice("colour", ("red", "green")), pf.Seed("layout"))
)
INPUTS = np.array([[0.5, 2, 0, 7], [0.25, 5, 1, 8], [1.0, 1, 1, 9]])
SEEDS = np.arange(3, dtype=np.uint64)


class Walk:
    """Walks by its action, `count` times, with noise from its seed."""

    def reset(self, values, seed):
        self.values, self.place, self.left = values, values["x"], values["count"]
        self.rng = np.random.default_rng(seed)
        return np.array([self.place, 0.0]), {"place": self.place}

    def step(self, action):
        self.place += action + self.rng.normal(0, 0.1)
        self.left -= 1
        return np.array([self.place, action]), -self.place, self.left == 0, {"place": self.place}


def simulator(kind=Walk, signals=("place",)):
    return pf.OneAtATime(kind, SPACE, signals)


def test_values_come_by_name_and_in_words():
    made = []

    class Seen(Walk):
        def __init__(self):
            made.append(self)

    simulator(Seen).reset(INPUTS, SEEDS)
    assert [episode.values for episode in made[1:]] == [
        {"x": 0.5, "count": 2, "colour": "red", "layout": 7},
        {"x": 0.25, "count": 5, "colour": "green", "layout": 8},
        {"x": 1.0, "count": 1, "colour": "green", "layout": 9},
    ]
    assert type(made[1].values["count"]) is int


def test_frames_hold_the_rows_that_run():
    walks = simulator()
    first = walks.reset(INPUTS, SEEDS)
    assert first.observations.shape == first.states.shape == (3, 2)
    assert first.signals[:, 0].tolist() == [0.5, 0.25, 1.0]
    second = walks.step(np.array([1.0, 1.0, 1.0]), np.arange(3))
    assert second.ended.tolist() == [False, False, True]
    third = walks.step(np.array([2.0, 2.0]), np.array([0, 1]))
    assert third.ended.tolist() == [True, False]
    assert third.rewards.tolist() == (-third.signals[:, 0]).tolist()


def test_episode_that_raises_is_the_only_one_to_end():
    class Broken(Walk):
        def step(self, action):
            if self.values["colour"] == "red":
                raise ValueError("no red")
            return super().step(action)

    walks = simulator(Broken)
    walks.reset(INPUTS, SEEDS)
    frame = walks.step(np.zeros(3), np.arange(3))
    assert list(frame.errors) == [0]
    assert (frame.errors[0].kind, frame.errors[0].step) == ("raised", 1)
    assert frame.errors[0].text.endswith("ValueError: no red")
    assert frame.ended.tolist() == [True, False, True]


def test_reset_that_raises_everywhere_still_gives_a_frame():
    class Broken(Walk):
        def reset(self, values, seed):
            raise ValueError("no map")

    frame = simulator(Broken).reset(INPUTS, SEEDS)
    assert list(frame.errors) == [0, 1, 2]
    assert frame.ended.all()


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (np.zeros(2), "reset of the simulator returned a ndarray"),
        ((np.zeros(2), {}, 3), "returned a tuple of 3"),
        ((np.zeros(2), 1.0), "returned a tuple of 2"),
        ((np.zeros(2), {}), "gave the signals none, and announced place"),
        ((np.zeros(2), {"place": 0.0, "speed": 1.0}), "gave the signals place, speed"),
        (("here", {"place": 0.0}), "gave the observation 'here'"),
    ],
)
def test_what_is_not_expected_is_told(given, problem):
    class Strange(Walk):
        def reset(self, values, seed):
            return given

    with pytest.raises(TargetCodeError, match=problem):
        simulator(Strange).reset(INPUTS, SEEDS)


@pytest.mark.parametrize(
    ("reward", "ended", "problem"),
    [
        (1.0, "no", "step gave ended = 'no', expected True or False"),
        (1.0, None, "step gave ended = None, expected True or False"),
        ("1.0", False, "step gave the reward '1.0', expected a number"),
    ],
)
def test_step_that_gives_something_else_ends_its_episode(reward, ended, problem):
    class Vague(Walk):
        def step(self, action):
            observation, *_, signals = super().step(action)
            return observation, reward, ended, signals

    walks = simulator(Vague)
    walks.reset(INPUTS, SEEDS)
    frame = walks.step(np.zeros(3), np.arange(3))
    assert frame.errors[0].summary == f"ValueError: {problem}"
    assert frame.rewards.tolist() == [0.0, 0.0, 0.0]


def test_observations_of_another_shape_are_told():
    class Growing(Walk):
        def step(self, action):
            return (np.zeros(3), *super().step(action)[1:])

    walks = simulator(Growing)
    walks.reset(INPUTS, SEEDS)
    with pytest.raises(TargetCodeError, match=r"shape \(3,\) after one of \(2,\)"):
        walks.step(np.zeros(3), np.arange(3))


def test_simulator_renders_if_its_episodes_do():
    class Drawn(Walk):
        def render(self):
            return np.full((4, 4, 3), int(self.place), np.uint8)

    assert not isinstance(simulator(), Renders)
    drawn = simulator(Drawn)
    assert isinstance(drawn, Renders)
    drawn.reset(INPUTS, SEEDS)
    assert drawn.render(2).max() == 1


def test_observation_may_be_a_number():
    class Plain(Walk):
        def reset(self, values, seed):
            super().reset(values, seed)
            return self.place, {}

    frame = simulator(Plain, ()).reset(INPUTS, SEEDS)
    assert frame.observations.shape == (3,)
    assert frame.states.shape == (3, 1)
