import numpy as np
import pytest
from scipy.spatial.distance import cdist

from policyfuzz.triage.clusters import PointSpace, adjusted_rand, group, linked_groups, nearest


def two_clouds(count=60, apart=10.0):
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(count, 2)), rng.normal(size=(count, 2)) + apart])
    return points, np.arange(2 * count) % 12


def test_rand_index_is_one_for_the_same_groups_under_other_names():
    assert adjusted_rand(np.array([0, 0, 1, 2]), np.array([5, 5, 3, 1])) == 1.0


def test_rand_index_of_a_worked_example():
    # of 6 pairs 2 are together in the first, 1 in the second, 1 in both: (1 - 2/6) / (1.5 - 2/6)
    assert adjusted_rand(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 2])) == pytest.approx(4 / 7)


def test_rand_index_is_about_zero_by_chance():
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 4, 5000), rng.integers(0, 4, 5000)
    assert abs(adjusted_rand(first, second)) < 0.01


def test_clouds_with_a_gap_are_two_groups():
    points, roots = two_clouds()
    found = group(points, roots)
    assert found.is_stable
    assert adjusted_rand(found.labels, np.repeat([0, 1], 60)) == 1.0


def test_one_long_cloud_is_one_group():
    points = np.random.default_rng(0).random((400, 2)) * [20.0, 1.0]
    found = group(points, np.arange(400) % 15)
    assert found.is_stable
    assert found.labels.max() == 0
    assert "no gap" in found.reason


def test_clouds_of_one_lineage_each_are_no_groups_where_lineages_are_always_apart():
    rng = np.random.default_rng(0)
    roots = np.repeat(np.arange(30), 20)
    # cousins are near-clones; lineages lie evenly on a grid, so that no gap is wider than others
    centres = np.stack(np.meshgrid(np.arange(6), np.arange(5)), axis=-1).reshape(-1, 2)
    points = centres[roots] + 0.01 * rng.normal(size=(600, 2))
    assert linked_groups(cdist(points, points), roots, 20).max() == 0


def test_few_points_are_one_group_that_was_not_tested():
    found = group(np.array([[0.0], [100.0]]), np.array([0, 1]))
    assert found.labels.tolist() == [0, 0]
    assert not found.is_stable
    assert np.isnan(found.agreement)


def test_equal_points_are_one_group():
    assert group(np.zeros((50, 3)), np.arange(50) % 5).labels.max() == 0


def test_states_that_play_no_part_do_not_hide_groups():
    rng = np.random.default_rng(0)
    which = np.arange(600) % 3
    centres = rng.normal(size=(3, 2)) * 3
    shared = centres[which] + 0.2 * rng.normal(size=(600, 2))
    # what plays no part spreads as in passing episodes, which are the unit
    states = np.concatenate([shared, rng.normal(size=(600, 6))], axis=1)[:, :, None]
    roots = rng.integers(0, 40, 600)
    found = group(PointSpace.fit(states, roots).points(states), roots)
    assert adjusted_rand(found.labels, which) > 0.95


def test_nearest_is_the_first_of_equal_ones():
    assert nearest(np.array([[0.0]]), np.array([[1.0], [-1.0], [1.0]])).tolist() == [0]
    assert nearest(np.empty((0, 2)), np.zeros((3, 2))).tolist() == []


def scattered_lineages(count, spread):
    """Near-clones of lineages that lie anywhere: what looks like a group depends on who was found."""
    rng, roots = np.random.default_rng(0), np.repeat(np.arange(count), 20)
    return rng.lognormal(size=(count, 3))[roots] + spread * rng.normal(size=(20 * count, 3)), roots


def test_groups_that_halves_do_not_agree_on_are_not_given():
    found = group(*scattered_lineages(16, 0.2))
    assert not found.is_stable
    assert found.agreement < 0.9
    assert found.labels.max() == 0
    assert "no stable modes" in found.reason


def test_larger_parts_are_given_where_only_finer_groups_do_not_hold():
    found = group(*scattered_lineages(8, 0.3))
    assert found.is_stable
    assert found.labels.max() > 0
    assert "finer groups differ" in found.reason
