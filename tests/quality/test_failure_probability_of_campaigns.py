"""The search does not bias what its random draws say: targets whose failure probability is known."""

from math import sqrt

import numpy as np
import pytest
from scipy.stats import binomtest

from policyfuzz.report.statistics import FailureProbability

pytestmark = pytest.mark.slow

CAMPAIGNS = 12
#: More than so many of them miss the truth by chance once in 5,000 times.
MOST_MISSES = 4


@pytest.mark.parametrize(("regions", "probability"), [(3, 0.01), (1, 0.002)])
def test_intervals_hold_the_truth_and_estimates_lie_around_it(run_campaign, regions, probability):
    target = f"ripple:dimensions=4,regions={regions},probability={probability}"
    truth = regions * probability
    totals = [
        run_campaign(target, f"c{seed}", executions=2000, seed=seed).progress() for seed in range(CAMPAIGNS)
    ]
    assert sum(one.mutant_crashes for one in totals) > 3 * truth * sum(one.mutants for one in totals)
    estimates = [FailureProbability.of_campaigns([one]) for one in totals]
    assert sum(not one.low <= truth <= one.high for one in estimates) <= MOST_MISSES
    spread = sqrt(truth * (1 - truth) / np.mean([one.draws for one in estimates]) / CAMPAIGNS)
    assert np.mean([one.probability for one in estimates]) == pytest.approx(truth, abs=4 * spread)
    together = FailureProbability.of_campaigns(totals)
    assert binomtest(together.crashes, together.draws, truth).pvalue > 1e-3
