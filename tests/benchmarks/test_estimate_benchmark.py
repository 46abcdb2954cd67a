import json

import numpy as np
import pytest

from benchmarks.estimate.repeats import Repeats, plain_episodes, plain_error, ripple


def test_intervals_that_hold_the_truth_are_counted():
    estimates = np.array([[1.0, 0.5, 2.0], [3.0, 2.5, 4.0], [1.0, 0.9, 1.0], [2.0, 1.5, 3.0]])
    found = Repeats("target", 1.0, estimates, 100.0)
    assert found.covered == 2
    assert found.error == pytest.approx(np.sqrt((0 + 4 + 0 + 1) / 4))


def test_formula_of_plain_sampling_is_what_sampling_gives():
    target, run, truth = ripple("ripple:probability=0.05")
    draws = round(plain_episodes(truth, 0.3))
    assert plain_error(target, run, truth, draws, 2000, 0) == pytest.approx(0.3, rel=0.1)


@pytest.mark.slow
def test_benchmark_measures_coverage_and_savings(bench):
    code, out, _ = bench("estimate", "--repeats", 3, "--others", 1, "--acasxu", 0, "--json")
    page = json.loads(out)
    assert code in (0, 1)
    rare = {line["target"]: line for line in page["lines"]}["ripple:probability=1e-6"]
    assert 0.2 < rare["mean"] < 5
    assert page["saved_at_1e-6"] == rare["saved"] > 1
