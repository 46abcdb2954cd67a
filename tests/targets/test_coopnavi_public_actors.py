"""Facts that are known of the public actors; skipped where those are not at hand."""

import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from policyfuzz import Runner
from policyfuzz.targets.coopnavi.target import make_target

DATA = Path(os.environ.get("POLICYFUZZ_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILE = DATA / "coopnavi" / "actors.npz"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FILE.is_file(), reason="the public MADDPG actors are not here"),
]

SAMPLES = 20_000


def run(finish, horizon):
    target = make_target({"horizon": str(horizon), "finish": finish}, f"coopnavi:{FILE}")
    inputs = target.inputs.sample(np.random.default_rng(20), SAMPLES)
    return Runner(target)(inputs, np.zeros(SAMPLES, np.uint64))


def test_share_of_episodes_finished_in_25_steps_is_the_known_one():
    """Every agent within 0.2 of a landmark; a 26th step tells those that end with the 25th from the rest."""
    finished = int((run("ends", 26).lengths <= 26).sum())
    assert binomtest(finished, SAMPLES, 0.926).pvalue > 1e-3


@pytest.mark.parametrize(("finish", "low", "high"), [("excuses", 1e-3, 2e-3), ("ends", 8e-3, 10e-3)])
def test_crash_rate_is_the_known_one(finish, low, high):
    crashes = int(run(finish, 25).crashed.sum())
    assert binomtest(crashes, SAMPLES, low, alternative="less").pvalue > 1e-3
    assert binomtest(crashes, SAMPLES, high, alternative="greater").pvalue > 1e-3
