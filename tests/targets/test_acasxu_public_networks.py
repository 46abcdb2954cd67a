"""Facts that are known of the public networks; skipped where those are not at hand."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from policyfuzz import Runner, load_target
from policyfuzz.targets.acasxu import encounter

FOLDER = Path(os.environ.get("POLICYFUZZ_DATA", Path(__file__).parents[3] / "shared" / "data")) / "acasxu"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the public ACAS Xu networks are not here"),
]

SAMPLES = 60_000


@pytest.fixture(scope="module")
def sampled():
    """Valid and solvable random encounters, and what the public networks make of them."""
    target = load_target("acasxu", f"acasxu:{FOLDER}")
    drawn = target.inputs.sample(np.random.default_rng(20), SAMPLES)
    valid = drawn[target.inputs.is_valid(drawn)]
    inputs = valid[encounter.is_solvable_in_paper(valid)]
    runner = Runner(target)
    batches = [runner(part, np.zeros(len(part), np.uint64)) for part in np.array_split(inputs, 40)]
    crashed = np.concatenate([batch.crashed for batch in batches])
    returns = np.concatenate([batch.returns for batch in batches])
    return inputs, crashed, returns


def test_valid_rate_is_the_known_one(sampled):
    assert binomtest(len(sampled[0]), SAMPLES, 0.703).pvalue > 1e-3


def test_crash_rate_is_the_known_one(sampled):
    inputs, crashed, _ = sampled
    assert binomtest(int(crashed.sum()), len(inputs), 4.65e-3).pvalue > 1e-3


def test_share_of_avoided_collisions_is_the_known_one(sampled):
    inputs, crashed, _ = sampled
    straight = ~encounter.survives_turning(inputs, 0)
    assert binomtest(int((~crashed[straight]).sum()), int(straight.sum()), 0.88).pvalue > 1e-3


def test_mean_return_is_the_known_one(sampled):
    _, crashed, returns = sampled
    safe = returns[~crashed]
    assert abs(safe.mean() - 30.67) < 4 * safe.std() / np.sqrt(len(safe))
