"""How networks do from starts drawn as the fuzzer's, with the oracle that it uses by default."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from policyfuzz.core.target import Runner
from policyfuzz.targets.registry import load_target

_BATCH = 64


@dataclass(frozen=True, slots=True)
class Scores:
    """What came of n episodes."""

    crashed: NDArray[np.bool_]  #: (n,)
    returns: NDArray[np.float64]  #: (n,)
    lengths: NDArray[np.int64]  #: (n,) steps

    @property
    def crash_rate(self) -> float:
        return float(self.crashed.mean())

    def __str__(self) -> str:
        low, high = binomtest(int(self.crashed.sum()), len(self.crashed)).proportion_ci(method="wilson")
        half = 1.96 * self.returns.std(ddof=1) / np.sqrt(len(self.returns))
        return (
            f"crashes {100 * self.crash_rate:.2f} % ({100 * low:.2f} to {100 * high:.2f})  "
            f"return {self.returns.mean():.1f} ± {half:.1f}  median {np.median(self.returns):.1f}  "
            f"steps {self.lengths.mean():.0f}"
        )


def score(target_name: str, network: Path, episodes: int, seed: int) -> Scores:
    """Run so many episodes; the same seed means the same starts and case seeds."""
    target = load_target(target_name, policy=f"npz:{network}")
    rng, run = np.random.default_rng(seed), Runner(target)
    inputs = target.inputs.sample(rng, episodes)
    seeds = rng.integers(2**63, size=episodes, dtype=np.uint64)
    parts = [
        run(inputs[first : first + _BATCH], seeds[first : first + _BATCH])
        for first in range(0, episodes, _BATCH)
    ]
    return Scores(
        np.concatenate([part.verdicts.crashed for part in parts]),
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.lengths for part in parts]) - 1,
    )
