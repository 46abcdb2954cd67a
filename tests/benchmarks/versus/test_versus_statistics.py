import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from benchmarks.versus.results import Mean, bootstrap, compare

COUNTS = st.lists(st.integers(0, 20), min_size=1, max_size=12)


def test_a12_is_the_share_of_pairs_that_are_won():
    compared = compare(np.array([1.0, 5.0, 9.0]), np.array([2.0, 5.0]))
    # 1 loses twice, 5 wins and ties, 9 wins twice
    assert compared.a12 == pytest.approx((0 + 1.5 + 2) / 6)
    assert compared.ratio == pytest.approx(5 / 3.5)


@given(COUNTS, COUNTS)
def test_a12_of_any_counts_is_the_one_by_definition(first, second):
    wins = sum((a > b) + 0.5 * (a == b) for a in first for b in second)
    compared = compare(np.array(first, np.float64), np.array(second, np.float64))
    assert compared.a12 == pytest.approx(wins / (len(first) * len(second)))
    assert 0 <= compared.p <= 1


def test_p_is_exact_where_groups_are_small_and_do_not_overlap():
    # of the ways to choose 3 of 6 ranks, two are this extreme
    assert compare(np.array([4.0, 5.0, 6.0]), np.array([1.0, 2.0, 3.0])).p == pytest.approx(2 / 20)


def test_p_is_that_of_scipy():
    first, second = np.arange(10.0), np.arange(10.0) + 4
    assert compare(first, second).p == mannwhitneyu(first, second, alternative="two-sided").pvalue


def test_equal_groups_are_a_tie():
    compared = compare(np.zeros(5), np.zeros(3))
    assert (compared.a12, compared.p) == (0.5, 1.0)
    assert math.isnan(compared.ratio)
    assert not compared.is_above
    assert not compared.is_below


def test_comparison_says_who_is_above():
    low, high = np.arange(10.0), np.arange(10.0) + 20
    assert compare(high, low).is_above
    assert compare(low, high).is_below
    assert math.isinf(compare(high, np.zeros(10)).ratio)


def test_bootstrap_of_many_values_is_near_the_normal_interval():
    values = np.random.default_rng(3).normal(10, 2, 400)
    low, high = (float(end[0]) for end in bootstrap(values[:, None]))
    half = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - half, abs=0.03)
    assert high == pytest.approx(values.mean() + half, abs=0.03)


def test_mean_of_one_value_is_certain():
    assert Mean.of(np.array([3.0])) == Mean(3.0, 3.0, 3.0)


def test_intervals_are_the_same_at_every_time():
    values = np.array([1.0, 4.0, 9.0])
    assert Mean.of(values) == Mean.of(values)
