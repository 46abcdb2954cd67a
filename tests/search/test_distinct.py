import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.search.behaviour import DESCRIPTOR_SIZE
from policyfuzz.search.distinct import ALIKE_BEHAVIOUR, DistinctFindings, DistinctSet

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
    restored.insert(points[:700][packing.add(points[:700])])
    assert len(restored) == len(packing)
    np.testing.assert_array_equal(restored.add(points[700:]), packing.add(points[700:]))


def alike(first, second, radius):
    """True if two findings, pairs of unit input (d,) and descriptor (q,), are alike."""
    (unit, descriptor), (other_unit, other_descriptor) = first, second
    is_near = np.sqrt(((unit - other_unit) ** 2).mean()) < radius
    both_known = not np.isnan(descriptor).any() and not np.isnan(other_descriptor).any()
    return is_near or (both_known and np.linalg.norm(descriptor - other_descriptor) < ALIKE_BEHAVIOUR)


def findings_of(seed, count, dimensions, unknown_share=0.0):
    """(count, dimensions) random inputs and (count, q) random descriptors, some of which are not known."""
    rng = np.random.default_rng(seed)
    descriptors = rng.normal(scale=0.2, size=(count, DESCRIPTOR_SIZE))
    descriptors[rng.random(count) < unknown_share] = np.nan
    return rng.random((count, dimensions)), descriptors


def in_parts(distinct, unit, descriptors, parts):
    added = zip(np.array_split(unit, parts), np.array_split(descriptors, parts), strict=True)
    return np.concatenate([distinct.add(*part) for part in added])


@some_examples
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 5),
    st.floats(0.01, 0.3),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.integers(1, 9),
)
def test_distinct_findings_are_a_greedy_packing_in_input_and_behaviour(
    seed, dimensions, radius, unknown_share, parts
):
    unit, descriptors = findings_of(seed, 120, dimensions, unknown_share)
    taken, expected = [], []
    for one in zip(unit, descriptors, strict=True):
        expected.append(not any(alike(one, other, radius) for other in taken))
        if expected[-1]:
            taken.append(one)
    distinct = DistinctFindings(radius, np.zeros(dimensions))
    np.testing.assert_array_equal(in_parts(distinct, unit, descriptors, parts), expected)
    assert len(distinct) == len(taken)


def one_distinct():
    distinct = DistinctFindings(0.05, np.zeros(2))
    assert distinct.add(np.full((1, 2), 0.5), np.zeros((1, DESCRIPTOR_SIZE))).all()
    return distinct


@pytest.mark.parametrize(
    ("shift", "behaviour", "expected"),
    [
        (0.049, 1.0, False),
        (0.051, 1.0, True),
        (0.4, 0.9 * ALIKE_BEHAVIOUR, False),
        (0.4, 1.1 * ALIKE_BEHAVIOUR, True),
        (0.001, 0.001, False),
        (0.4, np.nan, True),
        (0.049, np.nan, False),
    ],
)
def test_finding_is_distinct_when_it_is_unlike_in_input_and_in_behaviour(shift, behaviour, expected):
    unit, descriptors = np.full((1, 2), 0.5 + shift), np.zeros((1, DESCRIPTOR_SIZE))
    descriptors[0, 0] = behaviour
    assert one_distinct().add(unit, descriptors).tolist() == [expected]


@pytest.mark.parametrize("dimensions", [1, 10, 100])
def test_radius_is_per_dimension_however_many_there_are(dimensions):
    unknown = np.full((3, DESCRIPTOR_SIZE), np.nan)
    unit = np.stack([np.full(dimensions, place) for place in (0.5, 0.549, 0.551)])
    assert DistinctFindings(0.05, np.zeros(dimensions)).add(unit, unknown).tolist() == [True, False, True]


def test_what_is_not_distinct_stands_in_nobodys_way():
    distinct, known = one_distinct(), np.zeros((1, DESCRIPTOR_SIZE))
    assert not distinct.add(np.array([[0.1, 0.1]]), known).any(), "it behaves alike"
    assert distinct.add(np.array([[0.1, 0.1]]), known + 1.0).all(), "the place is free"


@pytest.mark.parametrize("periods", [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]])
@pytest.mark.parametrize("count", [0, 50, 900])
def test_distinct_findings_that_are_inserted_give_the_same_answers_later(periods, count):
    unit, descriptors = findings_of(7, 1400, 3, unknown_share=0.5)
    descriptors *= 5
    first, second = (DistinctFindings(0.02, np.array(periods)) for _ in range(2))
    is_distinct = in_parts(first, unit[:count], descriptors[:count], 6)
    second.insert(unit[:count][is_distinct], descriptors[:count][is_distinct])
    assert len(second) == len(first)
    later = [in_parts(each, unit[count:], descriptors[count:], 5) for each in (first, second)]
    assert 0 < later[0].sum() < len(later[0])
    np.testing.assert_array_equal(*later)


def test_adding_no_findings_changes_nothing():
    distinct = one_distinct()
    assert distinct.add(np.empty((0, 2)), np.empty((0, DESCRIPTOR_SIZE))).shape == (0,)
    assert len(distinct) == 1
