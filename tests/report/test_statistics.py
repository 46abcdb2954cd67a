import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from policyfuzz.report.statistics import wilson_interval

some_examples = settings(max_examples=50, deadline=None, derandomize=True)


@some_examples
@given(st.integers(1, 10**6), st.floats(0.0, 1.0))
def test_wilson_interval_equals_scipy(trials, share):
    successes = round(share * trials)
    expected = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    low, high = wilson_interval(successes, trials)
    assert low == pytest.approx(expected.low, abs=1e-12)
    assert high == pytest.approx(expected.high, abs=1e-12)


def test_wilson_interval_is_everything_when_nothing_was_tried():
    assert wilson_interval(0, 0) == (0.0, 1.0)
