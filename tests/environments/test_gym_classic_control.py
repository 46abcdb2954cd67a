"""Bounds of classic control: wide, and still such that a good controller masters every start in them."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv, PendulumEnv

from policyfuzz.environments.find_start import find_start


def start_of(env):
    return find_start(env.unwrapped)


def corners_and_faces(start, count, rng):
    """All corners of the box, and `count` points with some coordinates at their bounds."""
    low = np.array([dimension.low for dimension in start.inputs.dimensions])
    high = np.array([dimension.high for dimension in start.inputs.dimensions])
    corners = np.array(list(itertools.product(*zip(low, high, strict=True))))
    points = rng.uniform(low, high, (count, len(low)))
    at_bound = rng.random(points.shape) < 0.5
    faces = np.where(at_bound, np.where(rng.random(points.shape) < 0.5, low, high), points)
    return np.concatenate([corners, points, faces])


def steps_until_terminated(env, start, values, controller, limit):
    """Steps to the end of the episode, `limit` + 1 where it is not reached."""
    base = env.unwrapped
    start.begin(base, base.reset, values, 0)
    for step in range(1, limit + 1):
        _, _, terminated, _, _ = base.step(controller(np.asarray(base.state, np.float64)))
        if terminated:
            return step
    return limit + 1


def cart_pole_controller(state):
    """Push towards where cart and pole are going to fall; weights of a linear regulator."""
    return int(state @ [2.61, 5.32, 50.72, 15.38] > 0)


def towards(velocity):
    """1 in the direction of movement, -1 against it."""
    return 1 if velocity >= 0 else -1


CONTROLLERS = {
    "MountainCar-v0": (lambda state: 1 + towards(state[1]), 200),
    "MountainCarContinuous-v0": (lambda state: np.array([float(towards(state[1]))]), 999),
    "Acrobot-v1": (lambda state: 1 - towards(state[2]), 500),
}


@pytest.mark.slow
def test_one_controller_keeps_the_pole_up_from_everywhere_in_the_bounds():
    env = gym.make("CartPole-v1")
    start = start_of(env)
    points = corners_and_faces(start, 300, np.random.default_rng(0))
    ended = [steps_until_terminated(env, start, values, cart_pole_controller, 500) for values in points]
    assert min(ended) == 501


def test_pole_cannot_be_kept_up_from_everywhere_in_bounds_that_are_much_wider():
    env = gym.make("CartPole-v1")
    start = start_of(env)
    corner = np.array([dimension.high for dimension in start.inputs.dimensions]) * 1.5
    assert steps_until_terminated(env, start, corner, cart_pole_controller, 500) < 500


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTROLLERS)
def test_known_controller_arrives_in_time_from_everywhere_in_the_bounds(name):
    controller, limit = CONTROLLERS[name]
    env = gym.make(name)
    start = start_of(env)
    rng = np.random.default_rng(0)
    slow = rng.uniform(-0.1, 0.1, (300, len(start.inputs.dimensions)))  # nearly at rest, the hardest
    points = np.concatenate([corners_and_faces(start, 500, rng), slow[start.inputs.is_valid(slow)]])
    took = [steps_until_terminated(env, start, values, controller, limit) for values in points]
    assert max(took) <= limit


def test_bounds_follow_the_limits_of_the_environment():
    class Short(CartPoleEnv):
        def __init__(self):
            super().__init__()
            self.x_threshold = 1.0

    x = find_start(Short()).inputs.dimensions[0]
    assert (x.low, x.high) == (-0.5, 0.5)


def test_observation_of_a_subclass_is_its_own():
    class Blind(PendulumEnv):
        def _get_obs(self):
            return super()._get_obs() * np.array([1, 1, 0], np.float32)

    env = Blind()
    observation, _ = find_start(env).begin(env, env.reset, np.array([0.5, 3.0]), 0)
    assert observation[2] == 0
    assert observation[0] == np.float32(np.cos(0.5))


def test_fields_beside_the_state_are_reset():
    env = gym.make("CartPole-v1").unwrapped
    start = find_start(env)
    start.begin(env, env.reset, np.array([1.2, 0.6, 0.15, 0.6]), 0)
    while not env.step(0)[2]:
        pass
    assert env.steps_beyond_terminated == 0
    start.begin(env, env.reset, np.zeros(4), 0)
    assert env.steps_beyond_terminated is None

    env = gym.make("Pendulum-v1").unwrapped
    start = find_start(env)
    start.begin(env, env.reset, np.zeros(2), 0)
    env.step(np.ones(1))
    start.begin(env, env.reset, np.zeros(2), 0)
    assert env.last_u is None


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("CartPole-v1", "terminated"),
        ("MountainCar-v0", "truncated"),
        ("Acrobot-v1", "truncated"),
        ("Pendulum-v1", None),
    ],
)
def test_oracle_is_the_usual_one(name, oracle):
    assert start_of(gym.make(name)).oracle == oracle
