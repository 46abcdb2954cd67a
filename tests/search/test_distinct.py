import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.search.distinct import DistinctSet

some_examples = settings(max_examples=30, deadline=None, derandomize=True)


def greedy(points, radius, periods):
    """(n,) True where a point is at least `radius` from all that were taken before it."""
    taken, fits = np.empty((0, points.shape[1])), []
    for point in points:
        apart = np.abs(taken - point)
        apart = np.where(periods > 0, np.minimum(apart, 1 - apart), apart)
        fits.append(bool((np.sqrt((apart**2).sum(axis=1)) >= radius).all()))
        if fits[-1]:
            taken = np.vstack([taken, point])
    return np.array(fits, bool)


@some_examples
@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=4),
    st.floats(0.01, 0.6),
)
def test_packing_equals_a_greedy_packing(seed, periods, radius):
    points = np.random.default_rng(seed).random((100, len(periods)))
    packing = DistinctSet(radius, np.array(periods))
    expected = greedy(points, radius, np.array(periods))
    np.testing.assert_array_equal(packing.add(points), expected)
    assert len(packing) == expected.sum()


@pytest.mark.parametrize("periods", [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
def test_packing_equals_a_greedy_packing_when_it_holds_many_points(periods):
    points = np.random.default_rng(0).random((2500, 2))
    packing, periods = DistinctSet(0.015, np.array(periods)), np.array(periods)
    got = np.concatenate([packing.add(part) for part in np.array_split(points, 7)])
    np.testing.assert_array_equal(got, greedy(points, 0.015, periods))
    assert len(packing) > 1000  # the tree is built and rebuilt on the way


def test_a_point_is_refused_when_an_equal_one_was_added():
    packing = DistinctSet(0.01, np.zeros(2))
    assert packing.add(np.array([[0.5, 0.5], [0.5, 0.5]])).tolist() == [True, False]
    assert packing.add(np.array([[0.5, 0.5]])).tolist() == [False]


def test_ends_of_a_coordinate_are_the_same_place_when_it_is_periodic():
    points = np.array([[0.0], [1.0], [0.999]])
    assert DistinctSet(0.01, np.ones(1)).add(points).tolist() == [True, False, False]
    assert DistinctSet(0.01, np.zeros(1)).add(points).tolist() == [True, True, False]


def test_ends_of_a_coordinate_are_the_same_place_when_it_is_periodic_and_the_tree_is_built():
    packing = DistinctSet(1e-4, np.array([1.0, 0.0]))
    places = np.concatenate([[1.0], np.linspace(0.1, 0.9, 600)])
    assert packing.add(np.column_stack([places, np.full(601, 0.5)])).all()
    points = np.array([[1.0, 0.5], [0.0, 0.5], [0.99999, 0.5], [0.1, 0.5], [0.0, 0.6]])
    assert packing.add(points).tolist() == [False, False, False, False, True]


def test_adding_no_points_changes_nothing():
    packing = DistinctSet(0.1, np.zeros(3))
    assert packing.add(np.empty((0, 3))).shape == (0,)
    assert len(packing) == 0


@pytest.mark.parametrize("periods", [[0.0, 0.0], [1.0, 0.0]])
def test_restored_packing_goes_on_like_the_one_that_was_left(periods):
    points = np.random.default_rng(1).random((1200, 2))
    packing, restored = DistinctSet(0.03, np.array(periods)), DistinctSet(0.03, np.array(periods))
    restored.restore(points[:700][packing.add(points[:700])])
    assert len(restored) == len(packing)
    np.testing.assert_array_equal(restored.add(points[700:]), packing.add(points[700:]))
