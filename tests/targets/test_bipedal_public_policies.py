"""Facts that are known of the public policies; skipped where those are not at hand."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("Box2D", reason="needs the extra bipedal")
pytest.importorskip("gymnasium", reason="needs the extra bipedal")

from policyfuzz import Runner, load_target

FOLDER = Path(os.environ.get("POLICYFUZZ_DATA", Path(__file__).parents[3] / "shared" / "data")) / "bipedal"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="the public BipedalWalker policies are not here"),
]


@pytest.mark.parametrize(
    ("name", "score"), [("bipedhard.256.16.json", 300.6), ("bipedhard.256.16.v3.json", 309.0)]
)
def test_public_policy_scores_what_is_known_of_it(name, score):
    target = load_target("bipedal:horizon=full", f"bipedal:{FOLDER / name}")
    rng = np.random.default_rng(11)
    executions = Runner(target)(target.inputs.sample(rng, 32), rng.integers(0, 2**63, 32, dtype=np.uint64))
    assert executions.crashed.mean() < 0.35
    assert np.median(executions.returns) == pytest.approx(score, abs=3.0)
