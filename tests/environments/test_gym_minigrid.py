"""Layout, start cell and direction of MiniGrid."""

import gymnasium as gym
import numpy as np
import pytest

from policyfuzz.core.errors import TargetCodeError
from policyfuzz.environments.families.minigrid import flood
from policyfuzz.environments.find_start import find_start

pytest.importorskip("minigrid", reason="minigrid is not installed")
from minigrid.core.grid import Grid
from minigrid.core.mission import MissionSpace
from minigrid.core.world_object import Goal, Wall
from minigrid.minigrid_env import MiniGridEnv


def made(name):
    env = gym.make(name, disable_env_checker=True).unwrapped
    return env, find_start(env)


class Divided(MiniGridEnv):
    """A custom room of 5 x 5 cells with the goal behind a wall that has a gap in some layouts only."""

    def __init__(self, **options):
        super().__init__(MissionSpace(lambda: "go"), grid_size=7, max_steps=50, **options)

    def _gen_grid(self, width, height):
        self.grid = Grid(width, height)
        self.grid.wall_rect(0, 0, width, height)
        for row in range(1, 6):
            self.grid.set(3, row, Wall())
        if self.np_random.random() < 0.5:
            self.grid.set(3, 3, None)
        self.put_obj(Goal(), 5, 5)
        self.agent_pos, self.agent_dir, self.mission = (1, 1), 0, "go"


def test_flood_stops_at_walls():
    passable = np.array([[1, 1, 0, 1], [0, 1, 0, 1]], np.bool_)
    assert flood(passable, [(0, 0)]).tolist() == [[True, True, False, False], [False, True, False, False]]


def test_agent_stands_on_free_cells_only():
    env, start = made("MiniGrid-LavaCrossingS9N2-v0")
    inputs = start.inputs.sample(np.random.default_rng(0), 100)
    assert start.inputs.is_valid(inputs).all()
    for values in inputs:
        start.begin(env, env.reset, values, 0)
        assert env.grid.get(*env.agent_pos) is None
    things = [(x, y) for x in range(9) for y in range(9) if env.grid.get(x, y) is not None]
    layout = inputs[-1, 0]
    assert not start.inputs.is_valid(np.array([[layout, x, y, 0] for x, y in things])).any()
    assert {env.grid.get(*cell).type for cell in things} == {"wall", "lava", "goal"}


def test_agent_is_not_put_behind_a_locked_door():
    env, start = made("MiniGrid-DoorKey-8x8-v0")
    for layout in range(5):
        env.reset(seed=layout)
        door = next(
            x for x in range(1, 7) for y in range(8) if getattr(env.grid.get(x, y), "type", "") == "door"
        )
        cells = np.array([[layout, x, y, 0] for x in range(1, 7) for y in range(1, 7)], np.float64)
        columns = cells[start.inputs.is_valid(cells), 1]
        assert columns.min() == 1
        assert columns.max() == door - 1
    assert start.solvable is None


def test_cell_that_ends_the_episode_is_no_start():
    env, start = made("MiniGrid-MemoryS7-v0")
    env.reset(seed=4)
    ends = np.array([[4, *env.success_pos, 0], [4, *env.failure_pos, 0]], np.float64)
    assert not start.inputs.is_valid(ends).any()


def test_layout_is_the_seed_of_its_own_reset():
    env, start = made("MiniGrid-FourRooms-v0")
    for layout in (3, 999):
        env.reset(seed=layout)
        grid = env.grid.encode()
        start.begin(env, env.reset, np.array([layout, 1.0, 1.0, 0.0]), 12)
        np.testing.assert_array_equal(env.grid.encode(), grid)


def test_seed_of_the_case_moves_the_obstacles():
    env, start = made("MiniGrid-Dynamic-Obstacles-6x6-v0")
    values = start.inputs.sample(np.random.default_rng(0), 1)[0]
    begun, moved = set(), set()
    for seed in range(10):
        start.begin(env, env.reset, values, seed)
        begun.add(env.grid.encode().tobytes())
        env.step(0)
        moved.add(env.grid.encode().tobytes())
    assert len(begun) == 1
    assert len(moved) > 3


def test_most_perturbations_keep_the_layout():
    _, start = made("MiniGrid-Empty-16x16-v0")
    rng = np.random.default_rng(0)
    inputs = start.inputs.sample(rng, 2000)
    perturbed = start.inputs.perturb(inputs, rng)
    assert (perturbed != inputs).any(axis=1).all()
    kept = (perturbed[:, 0] == inputs[:, 0]).mean()
    assert kept == pytest.approx(0.9, abs=0.02)


def test_goal_behind_a_wall_is_not_solvable():
    env = Divided()
    start = find_start(env)
    gaps = []
    for layout in range(20):
        env.reset(seed=layout)
        gaps.append(env.grid.get(3, 3) is None)
    inputs = np.array([[layout, 1, 1, 0] for layout in range(20)], np.float64)
    assert start.inputs.is_valid(inputs).all()
    assert start.solvable(inputs).tolist() == gaps
    assert 0 < sum(gaps) < 20
    beyond = np.array([[layout, 5, 1, 0] for layout in range(20)], np.float64)
    assert start.inputs.is_valid(beyond).tolist() == gaps


def test_layouts_are_looked_at_in_a_copy():
    env, start = made("MiniGrid-FourRooms-v0")
    start.begin(env, env.reset, np.array([5.0, 1.0, 1.0, 0.0]), 0)
    before = env.hash()
    start.inputs.is_valid(start.inputs.sample(np.random.default_rng(0), 20))
    assert env.hash() == before


def test_babyai_is_left_to_its_seed_because_missions_depend_on_the_start():
    assert made("BabyAI-PickupLoc-v0")[1].way == "seed"


def test_environment_whose_reset_raises_is_blamed():
    class Broken(Divided):
        def _gen_grid(self, width, height):
            raise FileNotFoundError("pattern.png")

    with pytest.raises(TargetCodeError, match="environment Broken raised FileNotFoundError"):
        find_start(Broken())
