import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.freshness.ablation import VARIANTS
from benchmarks.freshness.scores import area_under_curve

numbers = st.lists(st.integers(0, 5).map(float), min_size=1, max_size=20).map(np.array)


@given(numbers, numbers)
def test_area_is_the_share_of_pairs_with_ties_counted_half(lower, higher):
    below = lower[:, None] < higher
    ties = lower[:, None] == higher
    assert area_under_curve(lower, higher) == pytest.approx((below + 0.5 * ties).mean())


def test_area_is_unknown_when_one_side_is_empty():
    assert np.isnan(area_under_curve(np.empty(0), np.ones(3)))
    assert np.isnan(area_under_curve(np.ones(3), np.empty(0)))


@pytest.mark.slow
def test_freshness_compares_crashes_by_both_scores(bench):
    name = "ripple:dimensions=2,probability=0.01"
    code, out, _ = bench("freshness", "--target", name, "--episodes", 1500, "--seeds", 2, "--json")
    rows = json.loads(out)
    assert code == 0
    assert [(row["seed"], row["score"]) for row in rows] == [
        (seed, score) for seed in range(2) for score in ("transition", "mean")
    ]
    assert all(0 <= row["random"] <= 1 and 0 <= row["near_miss"] <= 1 for row in rows)
    assert all(row["crashes"] > 0 for row in rows)


def test_freshness_says_so_when_a_search_found_no_crash(bench):
    name = "ripple:dimensions=10,probability=0.0001"
    code, out, _ = bench("freshness", "--target", name, "--episodes", 20, "--seeds", 1)
    assert code == 0
    assert "no crashes" in out


@pytest.mark.slow
def test_searches_are_compared_with_freshness_and_without(bench):
    name = "ripple:dimensions=2,probability=0.01"
    arguments = ("freshness", "--rq2", "--target", name, "--episodes", 4000, "--seeds", 1)
    code, out, _ = bench(*arguments, "--json")
    rows = {row["variant"]: row for row in json.loads(out)}
    assert code == 0
    assert list(rows) == [variant.label for variant in VARIANTS]
    for row in rows.values():
        assert 0 < row["independent"] <= row["findings"]
        assert row["findings_before"] <= row["findings"]
        assert row["independent_before"] <= row["independent"]
    assert rows["random"]["emptied"] is None
    code, out, _ = bench(*arguments, "--strategy", "reward-published")
    assert code == 0
    assert "reward-published" in out
    assert "mdpfuzz" not in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--seeds", "0"], "expected 1 or more"),
        (["--episodes", "3"], "expected 10 or more"),
        (["--target", "acasxo"], "did you mean 'acasxu"),
        (["--rq2", "--strategy", "portfolio"], "unknown strategy of the comparison 'portfolio'"),
    ],
)
def test_freshness_refuses_what_makes_no_sense(bench, arguments, complaint):
    code, _, err = bench("freshness", *arguments)
    assert code == 2
    assert complaint in err
