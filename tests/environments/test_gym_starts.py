"""What every start must keep to, and how one is chosen."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv
from gymnasium.wrappers import FlattenObservation, FrameStackObservation, RescaleObservation

from policyfuzz.core.errors import TargetCodeError, UsageError
from policyfuzz.core.inputs import InputSpace, Integer, Real
from policyfuzz.environments.find_start import InputChanges, find_start, read_changes
from policyfuzz.environments.simulator import EnvironmentSlot, StateNotKept

FAMILIES = [
    "CartPole-v1",
    "MountainCar-v0",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "Acrobot-v1",
    "Taxi-v4",
    "FrozenLake-v1",
    "FrozenLake8x8-v1",
    "CliffWalking-v1",
    "CliffWalkingSlippery-v1",
    "MiniGrid-FourRooms-v0",
    "MiniGrid-LavaCrossingS9N2-v0",
    "MiniGrid-DoorKey-8x8-v0",
    "MiniGrid-Dynamic-Obstacles-6x6-v0",
    "MiniGrid-MemoryS7-v0",
]
NO_FAMILY = ["Blackjack-v1", "BabyAI-GoToRedBallGrey-v0"]


@pytest.fixture(params=FAMILIES + NO_FAMILY)
def name(request):
    if request.param.startswith(("MiniGrid", "BabyAI")):
        pytest.importorskip("minigrid", reason="minigrid is not installed")
    return request.param


def made(name, **options):
    return gym.make(name, disable_env_checker=True, **options)


def drawn(start, count, seed=0):
    """(count, d) valid inputs."""
    inputs = start.inputs.sample(np.random.default_rng(seed), 50 * count)
    return inputs[start.inputs.is_valid(inputs)][:count]


def episode(slot, values, seed, steps=30):
    """Everything that an episode with random actions shows."""
    observation, info = slot.reset(values, seed)
    shown = [observation, info]
    actions = np.random.default_rng(seed)
    for _ in range(steps):
        space = slot.env.action_space
        action = (
            actions.integers(space.n)
            if isinstance(space, spaces.Discrete)
            else actions.uniform(-1, 1, space.shape)
        )
        observation, reward, terminated, truncated, info = slot.env.step(action)
        shown += [observation, reward, terminated, truncated, info]
        if terminated or truncated:
            break
    return shown


def same(one, two):
    """True where nothing differs, types and bits included."""
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and one.shape == two.shape and one.tobytes() == two.tobytes()
    return type(one) is type(two) and one == two


def test_family_is_found_by_the_class_of_the_environment(name):
    assert find_start(made(name)).way == ("state" if name in FAMILIES else "seed")


def test_values_are_read_back(name):
    env = made(name)
    start = find_start(env)
    for values in drawn(start, 10):
        start.begin(env.unwrapped, env.unwrapped.reset, values, 3)
        read = start.read(env.unwrapped)
        told = ~np.isnan(read)
        np.testing.assert_allclose(read[told], values[told], rtol=1e-6, atol=0)
        assert told.sum() >= len(values) - 1  # all but a seed


def test_first_observation_and_info_are_what_reset_may_give(name):
    env = made(name).unwrapped
    start = find_start(env)
    own, own_info = env.reset(seed=3)
    observation, info = start.begin(env, env.reset, drawn(start, 1)[0], 3)
    assert env.observation_space.contains(observation)
    assert type(observation) is type(own)
    assert info.keys() == own_info.keys()


def test_episode_is_the_same_on_a_fresh_and_on_a_used_environment(name):
    start = find_start(made(name))
    used = EnvironmentSlot(made(name), start)
    inputs = drawn(start, 6)
    first = [episode(used, values, 5) for values in inputs]
    again = [episode(used, values, 5) for values in inputs[::-1]][::-1]
    assert same(first, again)
    assert same(first, [episode(EnvironmentSlot(made(name), start), values, 5) for values in inputs])
    assert not all(same(first[0], other) for other in first[1:])


@pytest.mark.parametrize("name", [name for name in FAMILIES if "Obstacles" not in name])  # they move too
def test_observation_is_the_one_that_the_environment_itself_gives_in_that_state(name):
    """Play a little, then start another episode in the state in which the play has ended."""
    if name.startswith("MiniGrid"):
        pytest.importorskip("minigrid", reason="minigrid is not installed")
    env, other = made(name).unwrapped, made(name).unwrapped
    start = find_start(env)
    # where nothing but the agent moves: layout and agent are the whole state
    turns_and_steps = 3 if name.startswith("MiniGrid") else None
    for values in drawn(start, 5):
        start.begin(env, env.reset, values, 1)
        actions = np.random.default_rng(1)
        for _ in range(4):
            if isinstance(env.action_space, spaces.Discrete):
                action = int(actions.integers(turns_and_steps or env.action_space.n))
            else:
                action = actions.uniform(-1, 1, env.action_space.shape)
            observation, _, terminated, _, _ = env.step(action)
            if terminated:
                break
        reached = start.read(env)
        begun, _ = start.begin(other, other.reset, np.where(np.isnan(reached), values, reached), 1)
        if name == "Acrobot-v1":  # its own first state is of single precision, later ones are not
            np.testing.assert_allclose(begun, observation, rtol=1e-5, atol=1e-6)
            assert begun.dtype == observation.dtype
        else:
            assert same(begun, observation)


WRAPPED = {
    "flat": ("CartPole-v1", FlattenObservation),
    "rescaled": ("MountainCar-v0", lambda env: RescaleObservation(env, np.float32(-1), np.float32(1))),
    "stacked": ("CartPole-v1", lambda env: FrameStackObservation(env, 3)),
    "one hot": ("FrozenLake-v1", FlattenObservation),
    "image": ("MiniGrid-FourRooms-v0", lambda env: image_only(env)),
    "flat image": ("MiniGrid-FourRooms-v0", lambda env: FlattenObservation(image_only(env))),
}


def image_only(env):
    return pytest.importorskip("minigrid.wrappers", reason="minigrid is not installed").ImgObsWrapper(env)


@pytest.mark.parametrize("case", WRAPPED)
def test_wrappers_see_the_state_that_was_set(case):
    name, wrap = WRAPPED[case]
    if name.startswith("MiniGrid"):
        pytest.importorskip("minigrid", reason="minigrid is not installed")
    env = wrap(made(name))
    start = find_start(env)
    bare = made(name).unwrapped
    slot = EnvironmentSlot(env, start)
    for values in drawn(start, 3):
        inner, _ = start.begin(bare, bare.reset, values, 2)
        expected = outermost(case, inner, bare.observation_space)
        observation, _ = slot.reset(values, 2)
        np.testing.assert_allclose(np.asarray(observation), expected, rtol=1e-6)
        assert env.observation_space.contains(observation)


def outermost(case, inner, space):
    if case == "rescaled":
        return 2 * (inner - space.low) / (space.high - space.low) - 1
    if case == "stacked":
        return np.stack([inner] * 3)
    if case == "one hot":
        return np.eye(space.n)[inner]
    if case == "flat":
        return inner
    return inner["image"] if case == "image" else inner["image"].ravel()


class OwnReset(CartPoleEnv):
    def reset(self, **options):
        return super().reset(**options)


class OwnReward(CartPoleEnv):
    def step(self, action):
        observation, _, terminated, truncated, info = super().step(action)
        return observation, -1.0, terminated, truncated, info


def test_users_class_counts_as_family_while_it_leaves_reset_alone():
    assert find_start(OwnReward()).inputs.names == ("x", "x_dot", "theta", "theta_dot")
    assert find_start(OwnReset()).way == "seed"


def test_state_of_a_class_with_a_reset_of_its_own_is_refused_with_the_reason():
    with pytest.raises(UsageError, match="OwnReset overrides reset") as raised:
        find_start(OwnReset(), InputChanges(way="state"))
    assert "Python file" in raised.value.hint


def test_state_that_a_subclass_has_changed_is_refused():
    class Longer(CartPoleEnv):
        @property
        def state(self):
            return np.zeros(5)

        @state.setter
        def state(self, value):
            pass

    env = Longer()
    start = find_start(env)
    with pytest.raises(UsageError, match=r"shape \(5,\), expected \(4,\)"):
        start.begin(env, env.reset, np.zeros(4), 0)


def test_module_that_only_begins_like_a_family_is_none():
    env = type("Maze", (Silent,), {"__module__": "minigridlike.maze"})()
    assert find_start(env).way == "seed"


class Silent(gym.Env):
    """Takes options, and says nothing about them."""

    observation_space = spaces.Box(-10, 10, (2,), np.float64)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.given = options
        return self.np_random.uniform(-1, 1, 2), {}


class Windy(Silent):
    """Declares them in a space, and repeats one in `info`, keeps one, and forgets the others."""

    def __init__(self):
        self.reset_options_space = spaces.Dict(
            {
                "wind": spaces.Box(-1, 1, (2,), np.float32),
                "mass": spaces.Box(0.5, 2.0, (), np.float64),
                "level": spaces.Discrete(3, start=1),
                "cells": spaces.Box(0, 4, (1, 2), np.int64),
            }
        )

    def reset(self, *, seed=None, options=None):
        observation, _ = super().reset(seed=seed, options=options)
        self.mass = options["mass"]
        return observation, {"wind": options["wind"].tolist()}


class Declares(Silent):
    metadata = {"reset_options": {"mass": (0.5, 2.0), "level": (1, 3)}}  # noqa: RUF012


def test_declared_space_becomes_flat_dimensions_in_its_own_types():
    env = Windy()
    start = find_start(env)
    kinds = {dimension.name: dimension.kind for dimension in start.inputs.dimensions}
    assert kinds == {
        "cells[0,0]": "integer",
        "cells[0,1]": "integer",
        "level": "integer",
        "mass": "real",
        "wind[0]": "real",
        "wind[1]": "real",
    }
    values = np.array([2.0, 4.0, 3.0, 1.5, 0.25, -0.25])
    assert start.inputs.is_valid(values[None]).all()
    start.begin(env, env.reset, values, 7)
    assert env.given["level"] == 3
    assert env.given["mass"] == 1.5
    assert env.given["cells"].dtype == np.int64
    np.testing.assert_array_equal(env.given["cells"], [[2, 4]])
    np.testing.assert_array_equal(env.given["wind"], np.array([0.25, -0.25], np.float32))
    assert env.reset_options_space.contains(env.given)


def test_options_are_read_back_from_info_or_attribute_where_there_is_one():
    env = Windy()
    start = find_start(env)
    values = np.array([2.0, 4.0, 3.0, 1.5, 0.25, -0.25])
    start.begin(env, env.reset, values, 7)
    np.testing.assert_array_equal(start.read(env), [np.nan, np.nan, np.nan, 1.5, 0.25, -0.25])


def test_option_that_an_environment_does_not_keep_is_noticed():
    class Stubborn(Declares):
        mass = 1.0

    env = Stubborn()
    with pytest.raises(StateNotKept, match=r"mass was set to 1\.5 and reads back as 1"):
        EnvironmentSlot(env, find_start(env)).reset(np.array([1.5, 2.0]), 0)


def test_options_in_metadata_are_whole_where_both_bounds_are():
    start = find_start(Declares())
    assert start.way == "options"
    assert start.inputs.dimensions == (Real("mass", 0.5, 2.0), Integer("level", 1, 3))


def test_seed_of_the_case_feeds_what_options_leave_open():
    env = Declares()
    start = find_start(env)
    values = np.array([1.0, 2.0])
    one, two, three = (start.begin(env, env.reset, values, seed)[0] for seed in (1, 2, 1))
    assert same(one, three)
    assert not same(one, two)


@pytest.mark.parametrize(
    ("space", "what"),
    [
        (spaces.Box(0, 1, (2,)), "is a Box, expected a Dict"),
        (spaces.Dict(name=spaces.Text(3)), "'name' of reset is a Text"),
        (spaces.Dict(mass=spaces.Box(0, np.inf, ())), "'mass' goes from 0.0 to inf"),
    ],
)
def test_space_that_cannot_be_an_input_is_refused(space, what):
    env = Silent()
    env.reset_options_space = space
    with pytest.raises(UsageError, match=what):
        find_start(env)


def test_bounds_in_metadata_that_are_no_pair_are_refused():
    class Wrong(Silent):
        metadata = {"reset_options": {"mass": 2.0}}  # noqa: RUF012

    with pytest.raises(UsageError, match=r"'mass' of reset is declared as 2\.0"):
        find_start(Wrong())


def test_options_that_are_not_declared_are_named_by_the_user():
    env = Silent()
    start = find_start(env, read_changes("options; mass=0.5..2; level=1..3; kind=hard"))
    assert start.inputs.dimensions == (Real("mass", 0.5, 2.0), Integer("level", 1, 3))
    start.begin(env, env.reset, np.array([1.5, 2.0]), 0)
    assert env.given == {"kind": "hard", "mass": 1.5, "level": 2}


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (
            "options;x=-10..10",
            "x is a whole number because both bounds are, write x=-10.0..10.0 for real numbers",
        ),
        (
            "options;x=1..2;y=3..5;z=0.5..1",
            "x and y are whole numbers because both bounds are, write x=1.0..2.0 for real numbers",
        ),
        ("options;x=-10.0..10", ""),
    ],
)
def test_options_that_are_taken_as_whole_numbers_are_told(text, note):
    assert find_start(Silent(), read_changes(text)).label.partition("; ")[2] == note


def test_options_that_nobody_names_are_asked_for():
    with pytest.raises(UsageError, match="Silent does not declare which options"):
        find_start(Silent(), InputChanges(way="options"))


def test_seed_start_ignores_the_seed_of_the_case():
    env = Silent()
    start = find_start(env)
    assert "mutation cannot climb" in start.label
    one, two = (start.begin(env, env.reset, np.array([11.0]), seed)[0] for seed in (1, 2))
    assert same(one, two)
    assert same(one, env.reset(seed=11)[0])


def test_seed_can_be_wanted_where_more_is_to_be_had():
    start = find_start(made("CartPole-v1"), read_changes("seed;seed=0..99"))
    assert start.way == "seed"
    assert (start.inputs.dimensions[0].low, start.inputs.dimensions[0].high) == (0, 99)


def test_dimension_of_an_environment_that_has_only_a_seed_is_refused_with_the_way_out():
    with pytest.raises(UsageError, match="Silent is started by its seed alone; it has no mass") as raised:
        find_start(Silent(), read_changes("mass=1..2"))
    assert "options;NAME=LOW..HIGH" in raised.value.hint


def test_python_file_makes_the_start(tmp_path):
    file = tmp_path / "my_start.py"
    file.write_text(
        """
import numpy as np
from policyfuzz.core.inputs import InputSpace, Real

class Tilted:
    inputs = InputSpace((Real("tilt", -0.1, 0.1),))
    oracle = "terminated"

    def begin(self, env, reset, values, seed):
        _, info = reset(seed=seed)
        env.state = np.array([0.0, 0.0, values[0], 0.0])
        return env.state.astype(np.float32), info

    def read(self, env):
        return [env.state[2]]
"""
    )
    env = made("CartPole-v1")
    start = find_start(env, read_changes(str(file)))
    assert isinstance(start.inputs, InputSpace)
    assert (start.way, start.oracle, start.solvable) == ("state", "terminated", None)
    observation, _ = EnvironmentSlot(env, start).reset(np.array([0.05]), 0)
    np.testing.assert_array_equal(observation, np.array([0, 0, 0.05, 0], np.float32))
    file.write_text(
        file.read_text()
        + "\ndef start(env):\n    made = Tilted()\n    made.label = type(env).__name__\n    return made\n"
    )
    assert find_start(env, read_changes(str(file))).label == "CartPoleEnv"


@pytest.mark.parametrize(
    ("code", "error", "what"),
    [
        ("x = 1", UsageError, "no function start, and 0 classes"),
        ("def start(env): return env", UsageError, "is a CartPoleEnv without inputs, begin, read"),
        ("def start(env): return 1 / 0", TargetCodeError, "ZeroDivisionError"),
        ("import nothing_of_this_name", TargetCodeError, "nothing_of_this_name"),
        ("class A:\n  inputs = 1\n  begin = read = None", UsageError, "is a int, expected an InputSpace"),
    ],
)
def test_python_file_that_makes_no_start_says_why(tmp_path, code, error, what):
    file = tmp_path / "broken.py"
    file.write_text(code)
    with pytest.raises(error, match=what):
        find_start(made("CartPole-v1"), read_changes(str(file)))
