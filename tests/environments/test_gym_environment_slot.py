"""Environment objects that are started again and again."""

from pathlib import Path

import numpy as np
import pytest

from policyfuzz.core.code_files import load_file
from policyfuzz.environments.simulator import EnvironmentSlot, GymSimulator
from policyfuzz.environments.starts import SeedStart

TARGETS = Path(__file__).parents[1] / "environments"


@pytest.fixture(scope="module")
def hostile():
    return load_file(TARGETS / "gym_hostile.py", "environment")


def test_reset_that_calls_itself_draws_anew_and_is_a_function_of_its_seed(hostile):
    def starts(seeds):
        slot = EnvironmentSlot(hostile.Choosy(), SeedStart())
        return {seed: float(slot.reset(np.array([float(seed)]), 7)[0][0]) for seed in seeds}

    found = starts(range(8))
    assert all(0 < place < 2 for place in found.values())
    assert len(set(found.values())) == 8
    assert starts(reversed(range(8))) == found


def test_environments_that_are_replaced_are_closed(hostile):
    made = []

    class Counted(hostile.Corridor):
        is_open = True

        def __init__(self):
            made.append(self)

        def close(self):
            self.is_open = False

    simulator = GymSimulator(Counted, SeedStart(), is_fresh=True)
    for seeds in ([1, 2, 3], [4, 5], [6, 7, 8]):
        simulator.reset(np.array(seeds, np.float64)[:, None], np.array(seeds, np.uint64))
    assert len(made) >= 8
    assert [env.is_open for env in made].count(True) == 3


def test_environment_that_has_failed_is_closed_and_replaced(hostile):
    closed = []

    class Failing(hostile.Corridor):
        def step(self, action):
            raise RuntimeError("stuck")

        def close(self):
            closed.append(self)
            raise RuntimeError("stuck here too")

    simulator = GymSimulator(Failing, SeedStart())
    for _ in range(2):
        simulator.reset(np.zeros((1, 1)), np.zeros(1, np.uint64))
        frame = simulator.step(np.zeros(1, np.int64), np.zeros(1, np.int64))
        assert frame.errors[0].summary == "RuntimeError: stuck"
    assert len(set(closed)) == 2
