import math
from dataclasses import replace

import numpy as np
import pytest

from policyfuzz.analysis.separation import auc, chance, distances_of, judge, purity

COUNT = 200


def classes(apart, dimensions=5):
    rng = np.random.default_rng(0)
    is_positive = np.arange(COUNT) % 2 == 0
    points = rng.normal(size=(COUNT, dimensions))
    points[is_positive, 0] += apart
    return points, is_positive


def area(points, is_positive, lineages):
    return judge(distances_of(points), is_positive, lineages, seed=0).area()


def test_planted_classes_are_told_apart():
    points, is_positive = classes(apart=12.0)
    assert area(points, is_positive, np.arange(COUNT)) > 0.99


def test_shuffled_classes_are_not():
    points, is_positive = classes(apart=12.0)
    shuffled = chance(distances_of(points), is_positive, np.arange(COUNT), seed=0)
    assert shuffled == pytest.approx(0.5, abs=0.05)


def test_classes_that_do_not_differ_are_not():
    """On average: single draws of so few points vary by some 0.07."""
    is_positive = np.arange(100) % 2 == 0
    draws = [np.random.default_rng(seed).normal(size=(100, 5)) for seed in range(20)]
    areas = [area(points, is_positive, np.arange(100)) for points in draws]
    assert np.mean(areas) == pytest.approx(0.5, abs=0.06)


def test_a_lineage_that_leaks_across_the_split_raises_it():
    """Near-clones of a lineage share their class, and lineages say nothing about each other."""
    rng = np.random.default_rng(1)
    lineages = np.repeat(np.arange(20), 10)
    points = np.repeat(rng.normal(size=(20, 5)), 10, axis=0) + rng.normal(0, 0.01, (COUNT, 5))
    is_positive = lineages % 2 == 0
    assert area(points, is_positive, np.arange(COUNT)) > 0.99
    assert area(points, is_positive, lineages) < 0.75


def test_an_interval_knows_that_near_clones_are_one():
    rng = np.random.default_rng(2)
    lineages = np.repeat(np.arange(40), 5)
    is_positive = lineages % 2 == 0
    points = np.repeat(rng.normal(size=(40, 5)), 5, axis=0) + rng.normal(0, 0.01, (COUNT, 5))
    points[is_positive, 0] += 1.5
    scores = judge(distances_of(points), is_positive, lineages, seed=0)
    assert scores is not None
    (low, high), (lower, higher) = replace(scores, lineages=np.arange(COUNT)).interval(0), scores.interval(0)
    assert lower <= low <= scores.area() <= high <= higher


def test_one_lineage_cannot_be_judged():
    points, is_positive = classes(apart=5.0)
    assert judge(distances_of(points), is_positive, np.where(is_positive, -1, np.arange(COUNT)), 0) is None


def test_equal_scores_count_half():
    assert auc(np.ones(3), np.ones(4)) == 0.5
    assert auc(np.array([1.0, 3.0]), np.array([2.0])) == 0.5
    assert math.isnan(auc(np.empty(0), np.ones(2)))


def test_purity_of_planted_modes_is_one_and_of_shuffled_ones_chance():
    points, is_first = classes(apart=12.0)
    names, lineages = is_first.astype(np.int64), np.arange(COUNT)
    pure, by_chance = purity(points, names, lineages)
    assert pure == 1.0
    assert by_chance == pytest.approx(0.5, abs=0.01)
    shuffled, _ = purity(points, np.random.default_rng(0).permutation(names), lineages)
    assert shuffled == pytest.approx(0.5, abs=0.12)


def test_purity_asks_other_lineages_only():
    points = np.array([[0.0], [0.1], [10.0], [10.1]])
    pure, _ = purity(points, np.array([1, 1, 2, 2]), np.array([1, 1, 2, 2]))
    assert pure == 0.0
