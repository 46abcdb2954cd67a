import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import betaincinv
from scipy.stats import binom, binomtest, nbinom

from policyfuzz.report.statistics import FailureProbability

some_examples = settings(max_examples=50, deadline=None, derandomize=True)


@some_examples
@given(st.integers(1, 10**6), st.floats(0.0, 1.0))
def test_interval_is_the_exact_one(draws, share):
    crashes = round(share * draws)
    expected = binomtest(crashes, draws).proportion_ci(0.95, method="exact")
    estimate = FailureProbability.of(crashes, draws)
    assert estimate.probability == crashes / draws
    assert estimate.low == pytest.approx(expected.low, rel=1e-6, abs=1e-12)
    assert estimate.high == pytest.approx(expected.high, rel=1e-6, abs=1e-12)


@settings(some_examples, max_examples=400)
@given(st.integers(0, 2**27), st.integers(0, 2**27))
@example(0, 1)
@example(1, 0)
@example(1, 2**27)
@example(2**27, 1)
@example(2**27, 2**27)
def test_bounds_are_those_of_scipy_over_many_orders_of_magnitude(crashes, others):
    draws = max(crashes + others, 1)
    estimate = FailureProbability.of(crashes, draws)
    # scipy itself is off by some 1e-9 where draws are many and crashes few
    low = betaincinv(crashes, draws - crashes + 1, 0.025) if crashes else 0.0
    high = betaincinv(crashes + 1, draws - crashes, 0.975) if crashes < draws else 1.0
    assert (estimate.low, estimate.high) == pytest.approx((low, high), rel=1e-8, abs=0)


@some_examples
@given(st.integers(1, 10**8), st.sampled_from([0, 1]))
def test_bounds_without_or_with_one_crash_have_their_closed_form(draws, crashes):
    estimate = FailureProbability.of(crashes, draws)
    if crashes == 0:
        assert estimate.high == pytest.approx(-math.expm1(math.log(0.025) / draws), rel=1e-12, abs=0)
    else:
        assert estimate.low == pytest.approx(-math.expm1(math.log(0.975) / draws), rel=1e-12, abs=0)


@pytest.mark.parametrize("draws", [1, 7, 100, pytest.param(2000, marks=pytest.mark.slow)])
def test_interval_holds_the_truth_at_least_95_times_in_100_whatever_it_is(draws):
    """Not simulated: all outcomes are gone through, each with its chance."""
    crashes = np.arange(draws + 1)
    estimates = [FailureProbability.of(int(count), draws) for count in crashes]
    low, high = np.array([(one.low, one.high) for one in estimates]).T
    # coverage falls where an interval has just ended, so look there too
    edges = np.concatenate([low * (1 - 1e-9), high * (1 + 1e-9)])
    truths = np.unique(np.concatenate([np.geomspace(1e-6, 0.5, 200), edges[edges < 1][:200]]))
    for truth in truths.tolist():
        is_held = (low <= truth) & (truth <= high)
        assert binom.pmf(crashes, draws, truth)[is_held].sum() >= 0.95 - 1e-9


@pytest.mark.parametrize("truth", [pytest.param(0.002, marks=pytest.mark.slow), 0.03, 0.4])
def test_interval_holds_the_truth_even_if_the_first_crashes_end_the_draws(truth):
    """The estimate is too high then on average; the interval is not misled."""
    wanted = 3
    draws = np.arange(wanted, int(16 / truth))
    chances = nbinom.pmf(draws - wanted, wanted, truth)
    estimates = [FailureProbability.of(wanted, int(count)) for count in draws]
    is_held = np.array([one.low <= truth <= one.high for one in estimates])
    assert chances[is_held].sum() >= 0.95
    assert chances @ [one.probability for one in estimates] > 1.1 * truth


def test_nothing_is_known_without_a_draw():
    estimate = FailureProbability.of(0, 0)
    assert math.isnan(estimate.probability)
    assert (estimate.low, estimate.high) == (0.0, 1.0)
    assert str(estimate) == "not known: nothing was drawn at random"
    assert estimate.brief == "not known yet"


@pytest.mark.parametrize(
    ("crashes", "draws", "text", "brief"),
    [
        (
            182,
            293_805,
            "0.0619% of valid, solvable inputs (95 %: 0.0533% to 0.0716%), from 293,805 random draws",
            "0.0533% to 0.0716%",
        ),
        (
            0,
            1000,
            "at most 0.368% of valid, solvable inputs (95 %): none of 1,000 random draws failed",
            "at most 0.368%",
        ),
        (
            5,
            5,
            "100.0% of valid, solvable inputs (95 %: 47.8% to 100.0%), from 5 random draws",
            "47.8% to 100.0%",
        ),
    ],
)
def test_text_says_of_what_and_from_how_many(crashes, draws, text, brief):
    estimate = FailureProbability.of(crashes, draws, of_solvable=True)
    assert (str(estimate), estimate.brief) == (text, brief)
    untested = FailureProbability.of(crashes, draws)
    assert str(untested) == text.replace("valid, solvable", "valid")
