"""The vectorised particle world against one written out in plain loops, and against mpe2."""

import math

import numpy as np
import pytest

from policyfuzz.targets.coopnavi import layout, physics
from policyfuzz.targets.coopnavi.simulator import SpreadSimulator


class ScalarWorld:
    """One world of simple_spread in plain Python, after its published equations."""

    def __init__(self, row):
        self.positions = [[row[2 * i], row[2 * i + 1]] for i in range(3)]
        self.landmarks = [[row[6 + 2 * i], row[7 + 2 * i]] for i in range(3)]
        self.velocities = [[0.0, 0.0] for _ in range(3)]

    def step(self, actions):
        forces = [[5.0 * (a[1] - a[2]), 5.0 * (a[3] - a[4])] for a in actions.tolist()]
        for i in range(3):
            for j in range(3):
                if i != j:
                    for axis, force in enumerate(self.contact(i, j)):
                        forces[i][axis] += force
        for i in range(3):
            for axis in range(2):
                self.velocities[i][axis] = 0.75 * self.velocities[i][axis] + 0.1 * forces[i][axis]
                self.positions[i][axis] += 0.1 * self.velocities[i][axis]

    def contact(self, i, j):
        distance = math.dist(self.positions[i], self.positions[j])
        x = -(distance - 0.3) / 1e-3
        penetration = 1e-3 * (max(x, 0.0) + math.log1p(math.exp(-abs(x))))
        return [
            100.0 * (self.positions[i][k] - self.positions[j][k]) / distance * penetration for k in (0, 1)
        ]

    def colliding(self):
        pairs = [(0, 1), (0, 2), (1, 2)]
        return sum(math.dist(self.positions[i], self.positions[j]) < 0.3 for i, j in pairs)

    def reward(self):
        nearest = [min(math.dist(agent, mark) for agent in self.positions) for mark in self.landmarks]
        return -sum(nearest) - 2 * self.colliding()

    def observation(self, i):
        own = self.positions[i]
        marks = [mark[k] - own[k] for mark in self.landmarks for k in (0, 1)]
        others = [self.positions[j][k] - own[k] for j in range(3) if j != i for k in (0, 1)]
        return [*self.velocities[i], *own, *marks, *others, 0.0, 0.0, 0.0, 0.0]

    def become(self, world):
        self.positions, self.velocities = world[:6].reshape(3, 2).tolist(), world[6:12].reshape(3, 2).tolist()


def homing_actions(worlds, rng, strength):
    """(n, 3, 5) noisy actions that push everybody towards the middle: the stronger, the more contacts."""
    pull = -strength * worlds[:, :6].reshape(-1, 3, 2)
    logits = np.stack([0 * pull[..., 0], pull[..., 0], -pull[..., 0], pull[..., 1], -pull[..., 1]], axis=-1)
    weights = np.exp(logits + rng.normal(0.0, 0.5, logits.shape))
    return weights / weights.sum(axis=2, keepdims=True)


@pytest.mark.parametrize(
    ("strength", "is_one_step", "contacts", "tolerance"),
    # three agents that are pressed together all the time are chaotic: there each step is compared by itself
    [(0.0, False, 4, 1e-14), (2.0, True, 500, 2e-15)],
)
def test_thousand_steps_agree_with_the_scalar_world(strength, is_one_step, contacts, tolerance):
    rng = np.random.default_rng(3)
    inputs = layout.sample(rng, 4)
    scalars = [ScalarWorld(row) for row in inputs.tolist()]
    simulator = SpreadSimulator(ends_when_finished=False)
    simulator.reset(inputs, np.zeros(4, np.uint64))
    collisions = np.zeros(4)
    for _ in range(1000):
        actions = homing_actions(simulator.worlds, rng, strength)
        for scalar, world, action in zip(scalars, simulator.worlds, actions, strict=True):
            if is_one_step:
                scalar.become(world)
            scalar.step(action)
        frame = simulator.step(actions, np.arange(4))
        collisions += [scalar.colliding() for scalar in scalars]
        seen = [[scalar.observation(i) for i in range(3)] for scalar in scalars]
        np.testing.assert_allclose(frame.observations, seen, rtol=0, atol=tolerance)
        rewards = [scalar.reward() for scalar in scalars]
        np.testing.assert_allclose(frame.rewards, rewards, rtol=0, atol=10 * tolerance)
        np.testing.assert_array_equal(frame.signals[:, 0], collisions)
    assert collisions.sum() > contacts


def test_each_of_a_thousand_steps_agrees_with_mpe2_when_position_comes_first():
    spread = pytest.importorskip("mpe2.simple_spread_v3")
    rng = np.random.default_rng(5)
    inputs = layout.sample(rng, 1)
    env = spread.raw_env(max_cycles=2000, continuous_actions=True)
    env.reset(seed=0)
    entities = [*env.world.agents, *env.world.landmarks]
    for entity, position in zip(entities, inputs[0].reshape(6, 2), strict=True):
        entity.state.p_pos = position.copy()
    simulator = SpreadSimulator(ends_when_finished=False, position_first=True)
    simulator.reset(inputs, np.zeros(1, np.uint64))
    collisions = 0
    for _ in range(1000):
        actions = homing_actions(simulator.worlds, rng, 2.0)
        simulator.worlds[0, :6] = np.ravel([agent.state.p_pos for agent in env.world.agents])
        simulator.worlds[0, 6:12] = np.ravel([agent.state.p_vel for agent in env.world.agents])
        frame = simulator.step(actions, np.array([0]))
        for action in actions[0][:, [0, 2, 1, 4, 3]]:  # mpe2 counts left before right, down before up
            env.step(action)
        theirs = [env.scenario.observation(agent, env.world) for agent in env.world.agents]
        np.testing.assert_allclose(frame.observations[0], theirs, rtol=0, atol=2e-15)
        data = [env.scenario.benchmark_data(agent, env.world) for agent in env.world.agents]
        distances, colliding, covered = data[0][2], sum(line[1] for line in data) / 2, data[0][3]
        collisions += colliding
        assert frame.rewards[0] == pytest.approx(-distances - 2 * colliding, abs=1e-14)
        assert frame.signals[0, [0, 2]].tolist() == [collisions, covered]
    assert collisions > 200


def test_action_one_pushes_to_the_right_and_three_up():
    worlds = physics.start(np.array([[-0.5, 0.0, 0.5, 0.0, 0.0, 0.9] + [0.0] * 6]))
    actions = np.zeros((1, 3, 5))
    actions[0, [0, 1, 2], [1, 3, 0]] = 1.0
    physics.advance(worlds, np.array([0]), actions, False)
    np.testing.assert_allclose(worlds[0, physics.VELOCITIES], [0.5, 0, 0, 0.5, 0, 0])
    np.testing.assert_allclose(worlds[0, :6], [-0.45, 0.0, 0.5, 0.05, 0.0, 0.9])


def test_agents_at_one_point_stay_finite():
    worlds = physics.start(np.zeros((1, 12)))
    physics.advance(worlds, np.array([0]), np.full((1, 3, 5), 0.2), False)
    assert np.isfinite(worlds).all()


def test_touching_needs_less_than_two_radii():
    apart = np.array([[0.0, 0.0, 0.3, 0.0, 0.9, 0.9] + [0.0] * 6])
    nearer = apart - np.array([0, 0, 1e-9] + [0] * 9)
    assert [physics.colliding_pairs(world) for world in physics.start(np.vstack([apart, nearer]))] == [0, 1]


def judged(inputs):
    rewards, counts = np.empty(len(inputs)), np.empty((3, len(inputs)), np.int64)
    physics.judge(physics.start(inputs), np.arange(len(inputs)), rewards, *counts)
    return rewards, *counts


def test_reward_is_minus_the_distances_of_the_nearest_agents():
    rewards, colliding, covered, arrived = judged(
        np.array([[0.0, 0.0, 0.5, 0.0, -0.8, 0.0, 0.0, 0.05, 0.5, 0.15, 0.5, -0.3]])
    )
    assert rewards[0] == pytest.approx(-(0.05 + 0.15 + 0.3))
    assert (colliding[0], covered[0], arrived[0]) == (0, 1, 2)


def test_arrived_agents_may_share_a_landmark():
    around = [[0.19 * np.cos(a), 0.19 * np.sin(a)] for a in (0.0, 2.1, 4.2)]
    _, colliding, covered, arrived = judged(np.array([[*np.ravel(around), 0, 0, 0.9, 0.9, -0.9, 0.9]]))
    assert (colliding[0], covered[0], arrived[0]) == (0, 0, 3)


def test_episode_does_not_depend_on_its_neighbours():
    rng = np.random.default_rng(11)
    inputs = layout.sample(rng, 50)
    script = np.exp(rng.normal(0.0, 1.0, (40, 50, 3, 5)))

    def run(rows):
        simulator = SpreadSimulator(ends_when_finished=False)
        simulator.reset(inputs[rows], np.zeros(len(rows), np.uint64))
        return [simulator.step(part[rows], np.arange(len(rows))) for part in script]

    together = run(np.arange(50))
    for rows in (np.array([7]), np.array([31, 2, 40]), np.arange(49, -1, -1)):
        for frame, whole in zip(run(rows), together, strict=True):
            for name in ("observations", "states", "signals", "rewards"):
                np.testing.assert_array_equal(getattr(frame, name), getattr(whole, name)[rows])


def test_rows_left_out_stand_still():
    inputs = layout.sample(np.random.default_rng(1), 3)
    simulator = SpreadSimulator()
    simulator.reset(inputs, np.zeros(3, np.uint64))
    simulator.step(np.tile([0.0, 1.0, 0.0, 0.0, 0.0], (2, 3, 1)), np.array([0, 2]))
    np.testing.assert_array_equal(simulator.worlds[1, :6], inputs[1, :6])
    assert (simulator.worlds[[0, 2], 0] > inputs[[0, 2], 0]).all()
