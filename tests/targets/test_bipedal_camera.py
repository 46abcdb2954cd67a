"""Pictures of walkers: gymnasium's own, and no episode notices that they are taken."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("Box2D", reason="needs the extra bipedal")
pytest.importorskip("gymnasium", reason="needs the extra bipedal")
pytest.importorskip("pygame", reason="needs the extra bipedal")

from gymnasium.envs.box2d.bipedal_walker import BipedalWalker

from policyfuzz import Runner, load_target
from policyfuzz.environments.families.bipedal_walker import ScriptedTypes
from policyfuzz.targets.bipedal.simulator import WalkerSimulator


@pytest.fixture
def case():
    rng = np.random.default_rng(0)
    return rng.integers(0, 3, (1, 15)).astype(float), np.array([4], np.uint64)


def walk(simulator, case, steps, look):
    """Let the shipped network walk one case; `look` at it after each step."""
    policy, row = load_target("bipedal").policy(), np.array([0])
    frame = simulator.reset(*case)
    for step in range(steps):
        motors = policy.act(frame.observations, row)
        frame = simulator.step(motors, row)
        look(step, motors[0])
    return frame


def test_picture_equals_gymnasium_pixel_for_pixel(case):
    env: Any = BipedalWalker(hardcore=True, render_mode="rgb_array")
    env.np_random = ScriptedTypes(case[0][0].astype(int).tolist(), int(case[1][0]))
    env.reset()
    simulator = WalkerSimulator()
    looks = []

    def look(step, motors):
        env.step(motors)
        if step % 10 == 0:
            looks.append(step)
            np.testing.assert_array_equal(simulator.render(0), env.render())

    walk(simulator, case, 150, look)
    assert len(looks) == 15


def test_pictures_are_of_one_even_size_and_not_blank(case):
    simulator = WalkerSimulator()
    pictures = []
    walk(
        simulator, case, 60, lambda step, _: pictures.append(simulator.render(0)) if step % 20 == 0 else None
    )
    assert {picture.shape for picture in pictures} == {(400, 600, 3)}
    assert all(picture.dtype == np.uint8 for picture in pictures)
    assert len(np.unique(pictures[-1].reshape(-1, 3), axis=0)) > 10
    assert not np.array_equal(pictures[0], pictures[-1])


def test_episode_is_the_same_when_it_is_filmed(case):
    simulator = WalkerSimulator()
    seen = walk(simulator, case, 60, lambda step, motors: simulator.render(0))
    unseen = walk(WalkerSimulator(), case, 60, lambda step, motors: None)
    np.testing.assert_array_equal(seen.observations, unseen.observations)
    assert seen.rewards[0] == unseen.rewards[0]


def test_each_row_is_pictured_on_its_own_course():
    rng = np.random.default_rng(1)
    inputs, seeds = rng.integers(0, 3, (3, 15)).astype(float), np.arange(3, dtype=np.uint64)
    simulator = WalkerSimulator()
    simulator.reset(inputs, seeds)
    together = [simulator.render(row) for row in (2, 0, 1)]
    for row, picture in zip((2, 0, 1), together, strict=True):
        alone = WalkerSimulator()
        alone.reset(inputs[row : row + 1], seeds[row : row + 1])
        different = (alone.render(0) != picture).any(axis=2).mean()
        assert different < 0.005  # but for the one lidar ray that is drawn, a different one in each picture


def test_nothing_is_drawn_when_nobody_looks(case, monkeypatch):
    monkeypatch.setattr("policyfuzz.targets.bipedal.simulator.Camera", lambda: pytest.fail("a camera"))
    target = load_target("bipedal:horizon=5")
    Runner(target)(*case)
