from dataclasses import replace

import numpy as np

from policyfuzz.core.inputs import Angle, InputSpace, Real
from policyfuzz.repairing.states import Cases, cases_near
from tests.repairing.planted_gaps import world

SPACE = InputSpace((Angle("heading"), Real("gap", -0.9, 0.9)), constraint=lambda inputs: inputs[:, 1] < 0.5)


def solvable(inputs):
    assert SPACE.is_valid(inputs).all(), "nobody may ask about an invalid input"
    return inputs[:, 1] > 0.49


def near(row, count):
    cases = Cases(np.array([row]), np.array([7], np.uint64))
    return cases_near(
        replace(world(), inputs=SPACE, solvable=solvable), cases, np.random.default_rng(0), count
    )


def test_neighbours_go_round_a_circle_and_do_not_pile_up_at_its_cut():
    headings = near((np.pi - 1e-6, 0.495), 600).inputs[:, 0]

    assert 0.4 < (headings < 0).mean() < 0.6
    assert len(np.unique(headings)) == len(headings)


def test_neighbours_are_what_the_target_allows_and_keep_their_case_seed():
    found = near((0.0, 0.495), 600)

    assert 0 < len(found) < 600
    assert SPACE.is_valid(found.inputs).all()
    assert (found.inputs[:, 1] > 0.49).all()
    assert set(found.seeds.tolist()) == {7}


def test_nothing_has_no_neighbours():
    nothing = Cases(np.empty((0, 2)), np.empty(0, np.uint64))
    assert len(cases_near(world(), nothing, np.random.default_rng(0), 10)) == 0
