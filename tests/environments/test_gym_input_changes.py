"""The user's changes of bounds and values, as they are written and as they are carried out."""

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import Integer, Real, Seed
from policyfuzz.environments.changed_start import changed
from policyfuzz.environments.find_start import InputChanges, find_start, read_changes
from policyfuzz.environments.simulator import EnvironmentSlot


def start_of(name, changes=""):
    return find_start(gym.make(name, disable_env_checker=True), read_changes(changes))


def test_text_is_read():
    changes = read_changes(" theta = -0.1..0.1 ; x=0; passenger=red;push x=1e-3..2 ")
    assert changes.bounds == {"theta": (-0.1, 0.1), "push x": (1e-3, 2)}
    assert changes.fixed == {"x": 0, "passenger": "red"}
    assert read_changes("seed") == InputChanges(way="seed")
    assert read_changes("") == InputChanges()


@pytest.mark.parametrize("text", ["theta", "=1", "theta=", "x=0;x=1", "x=a..b", "x=1..", "seed;state"])
def test_text_that_cannot_be_read_is_refused_with_the_notation(text):
    with pytest.raises(UsageError, match="cannot read") as raised:
        read_changes(text)
    assert "NAME=LOW..HIGH" in raised.value.hint


def test_toml_is_read(tmp_path: Path):
    file = tmp_path / "input.toml"
    file.write_text(
        'way = "state"\n[bounds]\ntheta = [-0.1, 0.1]\n"wind[0]" = [0, 3]\n[fixed]\nx = 0.0\nto = "red"\n'
    )
    assert read_changes(str(file)) == InputChanges(
        "state", {"theta": (-0.1, 0.1), "wind[0]": (0, 3)}, {"x": 0.0, "to": "red"}
    )


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("way = ", "is not TOML"),
        ('way = "stat"', "did you mean 'state'"),
        ("[bound]\nx = [0, 1]", "did you mean 'bounds'"),
        ("bounds = 3", "expected a table"),
        ("[bounds]\nx = [0]", r"write x = \[low, high\]"),
        ('[bounds]\nx = ["a", "b"]', r"write x = \[low, high\]"),
        ("[fixed]\nx = [0, 1]", "x in .* is fixed to"),
        ("[bounds]\nx = [0, 1]\n[fixed]\nx = 0", "has bounds and is fixed"),
    ],
)
def test_toml_that_makes_no_sense_says_what_is_wrong(tmp_path, content, what):
    file = tmp_path / "input.toml"
    file.write_text(content)
    with pytest.raises(UsageError) as raised:
        read_changes(str(file))
    raised.match(what)


@pytest.mark.parametrize("name", ["none.toml", "none.py"])
def test_file_that_is_missing_is_named(name):
    with pytest.raises(UsageError, match=f"no file '{name}'"):
        read_changes(name)


def test_no_changes_leave_the_start_alone():
    start = start_of("CartPole-v1")
    assert changed(start, {}) is start


def test_bounds_become_narrower_or_wider():
    start = start_of("CartPole-v1", "theta=-0.01..0.02;x=-2..2")
    x, x_dot, theta, theta_dot = start.inputs.dimensions
    assert (x.low, x.high, theta.low, theta.high) == (-2, 2, -0.01, 0.02)
    assert (x.unit, theta.unit) == ("m", "rad")
    assert (x_dot, theta_dot) == tuple(start_of("CartPole-v1").inputs.dimensions[1::2])


def test_fixed_dimension_disappears_from_the_input_and_is_set():
    env = gym.make("CartPole-v1", disable_env_checker=True)
    start = find_start(env, read_changes("x=0.25;theta_dot=0..0"))
    assert start.inputs.names == ("x_dot", "theta")
    assert start.label.endswith("x = 0.25; theta_dot = 0")
    observation, _ = EnvironmentSlot(env, start).reset(np.array([0.5, -0.1]), 0)
    np.testing.assert_array_equal(observation, np.array([0.25, 0.5, -0.1, 0], np.float32))
    np.testing.assert_array_equal(start.read(env.unwrapped), [0.5, -0.1])
    assert start.oracle == "terminated"


def test_part_of_a_circle_is_an_interval():
    theta = start_of("Pendulum-v1", "theta=3..3.3").inputs.dimensions[0]
    assert isinstance(theta, Real)
    assert (theta.low, theta.high, theta.unit) == (3, 3.3, "rad")
    whole = start_of("Pendulum-v1").inputs.dimensions[0]
    assert theta.noise == pytest.approx(whole.noise / (2 * np.pi) * 0.3)


def test_option_of_a_choice_is_fixed_by_its_name():
    env = gym.make("Taxi-v4", disable_env_checker=True)
    start = find_start(env, read_changes("passenger=green;row=1..3"))
    assert start.inputs.names == ("row", "column", "destination")
    assert start.inputs.dimensions[0] == Integer("row", 1, 3)
    destinations = start.inputs.dimensions[2].options
    inputs = np.array([[1.0, 0.0, destination] for destination in range(4)])
    assert [destinations[row] for row in np.flatnonzero(start.inputs.is_valid(inputs))] == [
        "red",
        "yellow",
        "blue",
    ]
    assert start.solvable(inputs).all()
    EnvironmentSlot(env, start).reset(np.array([2.0, 3.0, 0.0]), 0)
    assert tuple(env.unwrapped.decode(env.unwrapped.s)) == (2, 3, 1, 0)


def test_cells_outside_of_the_map_stay_invalid_under_wider_bounds():
    start = start_of("FrozenLake-v1", "row=-1..9")
    inputs = np.array([[-1.0, 0.0], [0.0, 0.0], [9.0, 0.0]])
    assert start.inputs.is_valid(inputs).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("name", "changes", "what"),
    [
        ("CartPole-v1", "thet=0", "did you mean 'theta'"),
        ("CartPole-v1", "x=red", "x is set to 'red', expected a number"),
        ("CartPole-v1", "theta=0.1..-0.1", "low first"),
        ("CartPole-v1", "theta=0..inf", "finite bounds"),
        ("Taxi-v4", "row=0.5", "row takes whole numbers, given 0.5"),
        ("Taxi-v4", "row=0..inf", "row takes whole numbers, given inf"),
        ("Taxi-v4", "passenger=purple", "known: blue, green, red, yellow"),
        ("Taxi-v4", "passenger=0..1", "passenger is a choice and has no bounds"),
        ("FrozenLake-v1", "row=0;column=0", "all dimensions of the input are fixed: row, column"),
    ],
)
def test_change_that_makes_no_sense_says_what_is_wrong(name, changes, what):
    with pytest.raises(UsageError) as raised:
        start_of(name, changes)
    raised.match(what)


def test_sampler_of_the_start_goes_on_where_bounds_are_as_they_were():
    pytest.importorskip("minigrid", reason="minigrid is not installed")
    rng = np.random.default_rng(0)
    fixed = start_of("MiniGrid-FourRooms-v0", "direction=up")
    assert fixed.inputs.is_valid(fixed.inputs.sample(rng, 50)).all()
    narrow = start_of("MiniGrid-FourRooms-v0", "layout=3..4")
    layouts = narrow.inputs.sample(rng, 50)[:, 0]
    assert set(layouts.tolist()) == {3.0, 4.0}
    assert narrow.inputs.dimensions[0] == Seed("layout", 3, 4, change=0.03)
