import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.executions import Executions
from policyfuzz.oracles import Verdicts
from policyfuzz.search.evaluation import InputCells, Nearness

INF = float("inf")
some_examples = settings(max_examples=40, deadline=None, derandomize=True)


@some_examples
@given(st.integers(1, 150), st.integers(0, 2**32 - 1))
def test_every_place_of_the_cube_is_in_one_of_at_most_4096_cells(dimensions, seed):
    cells = InputCells(dimensions)
    assert 2 <= cells.count <= 4096
    unit = np.random.default_rng(seed).random((50, dimensions))
    corners = np.array([np.zeros(dimensions), np.ones(dimensions)])
    found = cells.of(np.concatenate([unit, corners]))
    assert ((found >= 0) & (found < cells.count)).all()


@pytest.mark.parametrize(("dimensions", "bins"), [(1, 4096), (2, 64), (3, 16), (12, 2)])
def test_few_dimensions_have_a_grid(dimensions, bins):
    cells, middle = InputCells(dimensions), np.full((1, dimensions), 0.5 / bins)
    assert cells.count == bins**dimensions
    steps = np.eye(dimensions) / bins
    found = cells.of(np.concatenate([middle, middle + 0.4 / bins, middle + steps]))
    assert found[0] == found[1], "in the same box"
    assert len(np.unique(found[1:])) == 1 + dimensions, "every neighbour is another box"


def test_many_dimensions_are_cut_into_cells_of_about_the_same_size():
    unit = np.random.default_rng(0).random((40_000, 120))
    counts = np.bincount(InputCells(120).of(unit), minlength=4096)
    assert np.count_nonzero(counts) > 4000
    assert counts.max() < 60


def test_cell_does_not_depend_on_what_else_is_asked_for():
    unit = np.random.default_rng(0).random((200, 40))
    cells = InputCells(40)
    np.testing.assert_array_equal(cells.of(unit), [cells.of(row[None])[0] for row in unit])


def episodes(returns, margins=None, states=None):
    made = Executions.of(returns, [False] * len(returns), states)
    if margins is None:
        return made
    verdicts = Verdicts(made.verdicts.kinds, made.verdicts.steps, np.array(margins, float))
    return Executions(made.returns, made.lengths, made.states, verdicts)


def pairs(nearness, executions):
    return list(zip(*(values.tolist() for values in nearness.of(executions)), strict=True))


def test_margin_counts_first_and_then_the_return():
    executions = episodes([5.0, 6.0], margins=[0.3, 0.1])
    assert pairs(Nearness.fit(executions), executions) == [(0.3, 5.0), (0.1, 6.0)]


def test_return_counts_first_and_then_unusual_states_where_the_oracle_cannot_tell():
    usual = np.random.default_rng(0).normal(size=(50, 4, 2))
    nearness = Nearness.fit(episodes(np.zeros(50), states=usual))
    calm, wild = np.zeros((4, 2)), np.array([[0.0, 0.0], [0.0, -9.0]])
    (first, calm_one), (second, wild_one) = pairs(nearness, episodes([1.0, 2.0], states=[calm, wild]))
    assert (first, second) == (1.0, 2.0)
    assert wild_one < -8 < -1 < calm_one


def test_what_lies_behind_the_end_of_an_episode_does_not_count():
    nearness = Nearness.fit(episodes(np.zeros(20), states=np.linspace(5, 6, 80).reshape(20, 4, 1)))
    alone, padded = [np.array([[5.5]])], [np.array([[5.5]]), np.full((9, 1), 5.5)]
    assert (
        pairs(nearness, episodes([0.0], states=alone))[0]
        == pairs(nearness, episodes([0.0, 0.0], states=padded))[0]
    )


def test_unknown_margin_is_as_far_as_can_be():
    executions = episodes([5.0, 6.0], margins=[np.nan, 0.1])
    assert pairs(Nearness.fit(executions), executions) == [(INF, 5.0), (0.1, 6.0)]


@pytest.mark.parametrize("margins", [None, [0.1, 0.1, 0.1, 0.1]])
def test_episode_without_a_finite_return_is_as_far_as_can_be(margins):
    executions = episodes([1.0, np.nan, INF, -INF], margins)
    found = pairs(Nearness.fit(executions), executions)
    assert found[1:] == [(INF, INF)] * 3
    assert np.isfinite(found[0]).all()


@pytest.mark.parametrize("odd", [np.nan, INF, 1e308])
def test_states_that_are_no_numbers_give_no_nan(odd):
    states = np.random.default_rng(0).normal(size=(60, 3, 2))
    states[::5, 1, 0] = odd
    executions = episodes(np.zeros(60), states=states)
    for values in Nearness.fit(executions).of(executions):
        assert not np.isnan(values).any()


def test_coordinates_that_never_varied_do_not_count():
    states = np.random.default_rng(0).normal(size=(60, 3, 2))
    states[:, :, 1] = 4.0
    nearness = Nearness.fit(episodes(np.zeros(60), states=states))
    here, there = np.array([[0.0, 4.0]]), np.array([[0.0, 5.0]])
    first, second = pairs(nearness, episodes([0.0, 0.0], states=[here, there]))
    assert first == second


def test_nearness_is_the_same_after_a_round_trip_through_its_state():
    executions = episodes(np.arange(9.0), states=np.random.default_rng(0).normal(size=(9, 3, 2)))
    nearness = Nearness.fit(executions)
    assert pairs(Nearness.from_state(nearness.state()), executions) == pairs(nearness, executions)
    with_margins = episodes([1.0, 2.0], margins=[0.1, 0.2])
    nearness = Nearness.fit(with_margins)
    assert pairs(Nearness.from_state(nearness.state()), with_margins) == pairs(nearness, with_margins)
