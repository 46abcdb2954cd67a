"""The lock-step simulator against gymnasium's own environment, bit for bit, and what a pure episode is."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("Box2D", reason="needs the extra bipedal")
pytest.importorskip("gymnasium", reason="needs the extra bipedal")

from Box2D import b2World
from gymnasium.envs.box2d.bipedal_walker import BipedalWalker

from policyfuzz.core.errors import PolicyError
from policyfuzz.environments.families.bipedal_walker import ScriptedTypes
from policyfuzz.environments.gauges import find_gauge
from policyfuzz.targets.bipedal.simulator import WalkerSimulator

START_X, GOAL_X = 10 * 14 / 30, 190 * 14 / 30


def gait(observations):
    """Motors (m, 4) of a clumsy walk: alternate legs by the angle of the first hip."""
    swing = np.where(observations[:, 4] < observations[:, 9], 1.0, -1.0)
    hips = np.column_stack([swing, -swing]) * 0.6
    knees = np.where(observations[:, [8, 13]] > 0, 0.9, -0.3)
    return np.column_stack([hips[:, 0], knees[:, 0], hips[:, 1], knees[:, 1]])


def noisy_gait(seed, spread):
    """One walker's own motors: the clumsy walk with noise; a function of the observations so far."""
    rng = np.random.default_rng(seed)
    return lambda observation: gait(observation[None])[0] + spread * rng.normal(size=4)


def cases(seed, count):
    """Inputs (count, 15) and seeds (count,)."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (count, 15)).astype(float), rng.integers(0, 2**63, count, dtype=np.uint64)


def plain_env(row, seed):
    """gymnasium's own environment at the start of a case, and its first observation."""
    env: Any = BipedalWalker(hardcore=True)
    env.np_random = ScriptedTypes(row.astype(int).tolist(), int(seed))
    return env, env.reset()[0]


def plain_episode(row, seed, motors, horizon):
    """(observation, reward, is over, has fallen) of every step by gymnasium's own code."""
    env, observation = plain_env(row, seed)
    steps = [(observation, 0.0, False, False)]
    for _ in range(horizon):
        observation, reward, is_over, _, _ = env.step(motors(observation))
        steps.append((observation, float(reward), is_over, env.game_over))
        if is_over:
            break
    return steps


def lock_step(inputs, seeds, motors, horizon, simulator=None):
    """The same of all cases, by the simulator."""
    simulator = simulator or WalkerSimulator()
    frame, rows = simulator.reset(inputs, seeds), np.arange(len(inputs))
    episodes = [[] for _ in rows]
    for step in range(horizon + 1):
        for i, row in enumerate(rows):
            is_fallen = frame.signals[i, 0] == 0
            episodes[row].append((frame.observations[i], frame.rewards[i], frame.ended[i], is_fallen))
        rows = rows[~frame.ended]
        if step == horizon or len(rows) == 0:
            return episodes
        actions = np.array([motors[row](episodes[row][-1][0]) for row in rows])
        frame = simulator.step(actions, rows)
    raise AssertionError


def assert_same(episodes, expected):
    assert len(episodes) == len(expected)
    for mine, its in zip(episodes, expected, strict=True):
        assert [step[1:] for step in mine] == [step[1:] for step in its]
        np.testing.assert_array_equal(
            np.array([step[0] for step in mine]), np.array([step[0] for step in its])
        )


@pytest.mark.parametrize(
    ("count", "horizon", "spread"),
    [(12, 120, 0.5), pytest.param(60, 600, 0.3, marks=pytest.mark.slow)],
)
def test_every_observation_reward_and_flag_equals_gymnasium(count, horizon, spread):
    inputs, seeds = cases(0, count)
    motors = [noisy_gait(row, spread * (row % 4)) for row in range(count)]
    episodes = lock_step(inputs, seeds, motors, horizon)
    motors = [noisy_gait(row, spread * (row % 4)) for row in range(count)]
    expected = [plain_episode(inputs[i], seeds[i], motors[i], horizon) for i in range(count)]
    assert_same(episodes, expected)
    falls = sum(episode[-1][3] for episode in expected)
    assert falls > 0  # both ends of an episode were among them
    assert len({len(episode) for episode in expected}) > 1


def test_room_and_impact_are_what_the_gauge_of_the_family_reads():
    inputs, seeds = cases(3, 3)
    simulator, motors = WalkerSimulator(), np.array([1.0, -1.0, 0.5, 1.0])
    for row in range(3):
        env, _ = plain_env(inputs[row], seeds[row])
        gauge = find_gauge(env)
        assert gauge is not None
        frame, rooms = simulator.reset(inputs[[row]], seeds[[row]]), []
        while True:
            _, x, room, impact = frame.signals[0]
            # the environment also fails behind its start, which the target does not call a fall
            np.testing.assert_allclose((min(room, x / START_X), impact), gauge.read(env), atol=1e-6)
            rooms.append(room)
            if frame.ended[0]:
                break
            frame = simulator.step(motors[None], np.array([0]))
            env.step(motors)
        assert frame.signals[0, 0] == 0  # it has fallen
        assert rooms[-1] < 0.1 < rooms[0]


def test_seed_and_its_own_types_give_the_course_of_gymnasium():
    env = BipedalWalker(hardcore=True)
    simulator = WalkerSimulator()
    for seed in range(20):
        env.world, env.terrain = b2World(), []
        observation, _ = env.reset(seed=seed)
        course = types_of(env, seed)
        frame = simulator.reset(np.array([course], float), np.array([seed], np.uint64))
        np.testing.assert_array_equal(frame.observations[0], observation)
        laid = simulator._walkers[0].course
        assert [float(height) for height in env.terrain_y] == laid.heights


def types_of(env, seed):
    """The first 15 obstacle types that gymnasium draws for a seed."""

    class Listening(ScriptedTypes):
        def integers(self, low, high=None, **_options):
            drawn = super().integers(low, high)
            if (low, high) == (1, 4):
                heard.append(drawn - 1)
            return drawn

    heard = []
    env.world, env.terrain, env.np_random = b2World(), [], Listening([], seed)
    env.reset()
    return (heard + [0] * 15)[:15]


def test_episode_depends_on_input_and_seed_only_when_others_ran_before():
    inputs, seeds = cases(1, 6)
    walks = [lambda observation: gait(observation[None])[0]] * 6
    fresh = lock_step(inputs, seeds, walks, 80)
    used = WalkerSimulator()
    others = cases(2, 9)
    lock_step(others[0], others[1], [noisy_gait(row, 1.0) for row in range(9)], 40, used)
    assert_same(lock_step(inputs, seeds, walks, 80, used), fresh)
    assert_same(lock_step(inputs[::-1], seeds[::-1], walks, 80, used)[::-1], fresh)
    assert_same(lock_step(inputs[3:4], seeds[3:4], walks, 80, used), fresh[3:4])


def test_other_seed_gives_another_episode():
    inputs, seeds = cases(1, 1)
    simulator = WalkerSimulator()
    rough = [simulator.reset(inputs, seeds + np.uint64(i)).observations[0] for i in range(2)]
    assert not np.array_equal(*rough)


@pytest.mark.parametrize("x", [-1.0, GOAL_X + 1.0], ids=["behind the start", "at the goal"])
def test_episode_ends_as_in_gymnasium_without_a_fall_when_the_walker_leaves(x):
    inputs, seeds = cases(3, 1)
    env, _ = plain_env(inputs[0], seeds[0])
    simulator = WalkerSimulator()
    simulator.reset(inputs, seeds)
    for one in (env, simulator._walkers[0]._env):
        carry_to(one, x)
    _, reward, is_over, _, _ = env.step(np.zeros(4))
    frame = simulator.step(np.zeros((1, 4)), np.array([0]))
    assert frame.rewards[0] == reward
    assert frame.ended[0]
    assert is_over
    assert frame.signals[0, 0] == 1.0
    assert (reward == -100) == (x < 0)


def carry_to(env, x):
    """Put the whole walker elsewhere, well above the ground."""
    shift = x - env.hull.position.x
    for body in (env.hull, *env.legs):
        body.transform = (body.position.x + shift, body.position.y + 5), body.angle


def test_fall_is_told_when_the_hull_touches_the_ground():
    inputs, seeds = cases(4, 1)
    simulator = WalkerSimulator()
    frame = simulator.reset(inputs, seeds)
    for _ in range(300):
        assert frame.signals[0, 0] == 1.0
        frame = simulator.step(np.array([[1.0, 1.0, 1.0, 1.0]]), np.array([0]))
        if frame.ended[0]:
            break
    hull = simulator._walkers[0]._env.hull
    assert any(edge.contact.touching for edge in hull.contacts)
    assert frame.signals[0, 0] == 0.0
    assert frame.rewards[0] == -100.0


@pytest.mark.parametrize(
    ("actions", "complaint"),
    [
        (np.array([[0.0, np.nan, 0.0, 0.0]]), "NaN"),
        (np.array([[0.0, np.inf, 0.0, 0.0]]), "infinite"),
        (np.zeros((1, 3)), r"shape \(1, 3\)"),
    ],
)
def test_actions_that_no_motor_can_follow_are_refused(actions, complaint):
    simulator = WalkerSimulator()
    simulator.reset(*cases(5, 1))
    with pytest.raises(PolicyError, match=complaint):
        simulator.step(actions, np.array([0]))


def test_actions_beyond_full_power_act_as_full_power():
    inputs, seeds = cases(6, 2)
    inputs[1], seeds[1] = inputs[0], seeds[0]
    simulator = WalkerSimulator()
    simulator.reset(inputs, seeds)
    frame = simulator.step(np.array([[1.0, -1.0, 1.0, -1.0], [9.0, -2.0, 1.5, -1.0]]), np.array([0, 1]))
    np.testing.assert_array_equal(frame.observations[0], frame.observations[1])
    assert frame.rewards[0] == frame.rewards[1]
