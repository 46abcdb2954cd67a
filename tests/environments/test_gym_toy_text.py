"""Start cells of Taxi, FrozenLake and CliffWalking."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

from policyfuzz.core.errors import UsageError
from policyfuzz.environments.find_start import find_start


def made(name, **options):
    env = gym.make(name, disable_env_checker=True, **options).unwrapped
    return env, find_start(env)


def all_cells(start):
    sizes = [int(dimension.high) + 1 for dimension in start.inputs.dimensions]
    return np.argwhere(np.ones(sizes)).astype(np.float64)


def valid(start):
    inputs = all_cells(start)
    return inputs[start.inputs.is_valid(inputs)]


def test_taxi_starts_where_its_own_reset_may():
    env, start = made("Taxi-v4")
    inputs = valid(start)
    states = set()
    for values in inputs:
        observation, info = start.begin(env, env.reset, values, 0)
        assert tuple(env.decode(observation)) == tuple(values)
        np.testing.assert_array_equal(info["action_mask"], env.action_mask(observation))
        states.add(observation)
    assert states == set(np.flatnonzero(env.initial_state_distrib).tolist())
    assert len(inputs) == 300
    assert start.solvable(inputs).all()


def test_taxi_keeps_the_luck_of_its_seed():
    env, start = made("Taxi-v4", fickle_passenger=True, fickle_probability=0.5)
    values = valid(start)[0]
    fickle = set()
    for seed in range(20):
        start.begin(env, env.reset, values, seed)
        fickle.add(bool(env.fickle_step))
    assert fickle == {False, True}


def test_fields_beside_the_state_are_reset():
    for name in ("Taxi-v4", "FrozenLake-v1", "CliffWalking-v1"):
        env, start = made(name)
        start.begin(env, env.reset, valid(start)[0], 0)
        env.step(0)
        start.begin(env, env.reset, valid(start)[0], 0)
        assert env.lastaction is None


@pytest.mark.parametrize(
    "options", [{}, {"map_name": "8x8"}, {"desc": generate_random_map(6, seed=1)}, {"desc": ["SFH", "HFG"]}]
)
def test_lake_starts_on_any_ice(options):
    env, start = made("FrozenLake-v1", **options)
    letters = {(row, column): letter for (row, column), letter in np.ndenumerate(env.desc)}
    expected = {cell for cell, letter in letters.items() if letter in (b"S", b"F")}
    assert {tuple(cell) for cell in valid(start).astype(int)} == expected
    for values in valid(start):
        observation, _ = start.begin(env, env.reset, values, 0)
        assert observation == env.s == values[0] * env.ncol + values[1]


def test_lake_cell_is_solvable_where_the_goal_can_be_reached():
    _, start = made("FrozenLake-v1", desc=["SFHF", "FFHF", "HHFG"], is_slippery=False)
    reachable = {tuple(cell) for cell in valid(start)[start.solvable(valid(start))].astype(int)}
    assert reachable == {(0, 3), (1, 3), (2, 2)}


def test_lake_whose_map_is_another_in_every_object_is_refused():
    _, start = made("FrozenLake-v1", desc=generate_random_map(8, seed=1))
    other, _ = made("FrozenLake-v1", desc=generate_random_map(8, seed=2))
    with pytest.raises(UsageError, match="different maps"):
        start.begin(other, other.reset, np.zeros(2), 0)


@pytest.mark.parametrize(
    ("rewards", "oracle"),
    [
        ((1, 0, 0), "terminated & return<0.5 | truncated"),
        ((10, -5, -1), "reward<-3 | truncated"),
        ((1, -1, 0), "reward<-0.5 | truncated"),
        ((1, -1, -1), None),
    ],
)
def test_lake_oracle_tells_a_hole_from_the_goal_by_the_rewards(rewards, oracle):
    assert made("FrozenLake-v1", reward_schedule=rewards)[1].oracle == oracle


def test_cliff_walker_starts_on_any_ground_but_the_goal():
    _, start = made("CliffWalking-v1")
    cells = {tuple(cell) for cell in valid(start).astype(int)}
    assert cells == {(row, column) for row in range(3) for column in range(12)} | {(3, 0)}
    assert start.solvable(valid(start)).all()
    assert start.oracle == "reward<-50 | truncated"
    assert made("CliffWalkingSlippery-v1")[1].oracle == "truncated"


def test_slippery_ground_is_a_matter_of_the_seed():
    env, start = made("FrozenLake-v1")
    ways = set()
    for seed in range(20):
        start.begin(env, env.reset, np.zeros(2), seed)
        ways.add(tuple(int(env.step(1)[0]) for _ in range(3)))
    assert len(ways) > 3
