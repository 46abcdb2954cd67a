"""CMA-ME: how its solutions become inputs, and what becomes of proposals that cannot be run."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.versus.peers.cma_me import CmaMe, from_solutions
from policyfuzz import load_target
from policyfuzz.core.errors import UnhealthyTarget
from policyfuzz.core.inputs import Angle, InputSpace, Integer, Real
from policyfuzz.core.target import Runner

pytest.importorskip("ribs")


def test_solutions_outside_the_cube_are_reflected_and_angles_go_round():
    space = InputSpace((Real("x", 0.0, 10.0), Angle("a"), Integer("n", 0, 4)))
    inputs = from_solutions(space, np.array([[1.2, 1.25, 1.0], [-0.3, -0.25, -0.1], [0.5, 0.5, 0.5]]))
    np.testing.assert_allclose(inputs[:, 0], [8.0, 3.0, 5.0])
    np.testing.assert_allclose(inputs[:, 1], [-np.pi / 2, np.pi / 2, 0.0])
    np.testing.assert_array_equal(inputs[:, 2], [4.0, 0.0, 2.0])
    assert space.is_valid(inputs).all()


@pytest.mark.slow
def test_it_finds_more_than_random_inputs_where_the_return_leads_to_the_crash():
    target = load_target("ripple")
    trial = CmaMe()(target, 5000, 0)
    expected_of_random = 5
    assert len(trial.numbers) > 5 * expected_of_random


@pytest.mark.slow
def test_budget_is_spent_on_good_inputs_though_nearly_all_proposals_are_invalid():
    plain = load_target("ripple:dimensions=3,probability=0.2")
    narrow = InputSpace(plain.inputs.dimensions, constraint=lambda inputs: inputs[:, 0] % 0.1 < 0.002)
    seen = []

    class Spy:
        def __init__(self, simulator):
            self._simulator = simulator
            self.signals, self.capacity, self.step = simulator.signals, simulator.capacity, simulator.step

        def reset(self, inputs, seeds):
            seen.append(inputs)
            return self._simulator.reset(inputs, seeds)

    target = replace(plain, inputs=narrow, simulator=lambda: Spy(plain.simulator()))
    assert CmaMe()(target, 400, 0).episodes == 400
    ran = np.concatenate(seen)
    assert len(ran) == 400
    assert narrow.is_valid(ran).all()


@pytest.mark.slow
def test_nothing_is_searched_where_no_episode_can_be_run():
    class Broken:
        signals, capacity = ("gap",), None

        def reset(self, inputs, seeds):
            raise RuntimeError("no power")

        def step(self, actions, rows):
            raise AssertionError

    target = replace(load_target("ripple"), simulator=Broken)
    assert Runner(target)(target.inputs.sample(np.random.default_rng(0), 1), np.zeros(1, np.uint64)).errors
    with pytest.raises(UnhealthyTarget, match="none of 10"):
        CmaMe()(target, 50, 0)
