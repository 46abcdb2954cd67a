"""What a comparison concludes from its pairs."""

import numpy as np
import pytest

from policyfuzz import Comparison
from policyfuzz.report.comparison import Pair, counted
from policyfuzz.store.comparisons import ERROR, FAILS, FINDINGS_OF_A, PASSES, POOL, Ending
from policyfuzz.triage.compare import Case

FAIL, PASS, FAULT = Ending(FAILS, "crash", 3, -1.0), Ending(PASSES), Ending(ERROR)


def compared(pool, findings=()):
    """A comparison of these (a, b, count) in the pool and among the findings of A."""
    pairs = [
        Pair(Case(group, None if group == POOL else 1, np.array([0.5]), place), a, b)
        for group, ends in ((POOL, pool), (FINDINGS_OF_A, findings))
        for a, b, count in ends
        for place in range(count)
    ]
    return Comparison("target", "a", "b", counted(pairs), len(pairs), pairs=tuple(pairs), dimensions=("x",))


@pytest.mark.parametrize(
    ("fixed", "new", "verdict"),
    [
        (0, 5, "no difference shown"),  # p = 1 / 16
        (0, 6, "worse"),  # p = 1 / 32
        (6, 0, "better"),
        (10, 10, "no difference shown"),
        (20, 40, "worse"),
    ],
)
def test_verdict_follows_the_exact_test_on_the_pairs_that_differ(fixed, new, verdict):
    comparison = compared([(FAIL, PASS, fixed), (PASS, FAIL, new), (FAIL, FAIL, 7), (PASS, PASS, 100)])
    assert comparison.verdict == verdict
    assert comparison.is_worse == (verdict == "worse")


def test_p_value_is_that_of_mcnemar():
    assert compared([(PASS, FAIL, 6), (PASS, PASS, 9)]).p_value == pytest.approx(2 / 2**6)
    assert compared([(PASS, PASS, 9)]).p_value == 1.0


def test_findings_do_not_decide():
    comparison = compared([(PASS, PASS, 50)], findings=[(FAIL, PASS, 40), (FAIL, FAIL, 2)])
    assert comparison.verdict == "no difference shown"
    assert comparison.counts(FINDINGS_OF_A).fixed == 40
    assert "not that B is better" in repr(comparison)


def test_probabilities_and_difference_come_from_the_pairs_that_could_be_run():
    comparison = compared([(FAIL, PASS, 10), (PASS, FAIL, 30), (PASS, PASS, 60), (FAULT, FAIL, 5)])
    of_a, of_b = comparison.failure_probabilities
    assert (of_a.crashes, of_b.crashes, of_a.draws) == (10, 30, 100)
    difference = comparison.difference
    assert difference is not None
    assert difference.value == pytest.approx(0.2)
    assert difference.low < 0.2 < difference.high
    assert comparison.pool.errors_of_a == 5
    assert comparison.pool.cases == 105


def test_interval_of_the_difference_covers_the_truth():
    rng, covered, probabilities = np.random.default_rng(1), 0, [0.02, 0.05, 0.03, 0.9]
    for _ in range(100):
        counts = rng.multinomial(200, probabilities).tolist()
        ends = zip((FAIL, PASS, FAIL, PASS), (PASS, FAIL, FAIL, PASS), counts, strict=True)
        difference = compared(list(ends)).difference
        assert difference is not None
        covered += difference.low <= 0.03 <= difference.high
    assert covered >= 95


def test_comparison_without_a_pool_shows_nothing():
    comparison = compared([], findings=[(FAIL, PASS, 3)])
    assert comparison.difference is None
    assert comparison.verdict == "no difference shown"
    assert "no random input" in repr(comparison)


def test_rows_hold_both_endings_and_the_input():
    (row,) = compared([(FAIL, PASS, 1)]).rows()
    assert row["group"] == "pool"
    assert (row["a_what"], row["a_kind"], row["a_step"], row["b_what"]) == (FAILS, "crash", 3, PASSES)
    assert row["input_x"] == 0.5


def test_table_has_a_row_for_each_case():
    pytest.importorskip("pandas")
    assert len(compared([(FAIL, PASS, 2), (PASS, PASS, 3)]).to_pandas()) == 5
