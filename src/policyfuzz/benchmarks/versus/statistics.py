"""Statistics between two groups of trials."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

#: Resamples of a bootstrap, and the seed of their draws: the same numbers give the same interval.
_RESAMPLES, _SEED = 10_000, 7
#: Two-sided, in per cent.
_INTERVAL = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(values: NDArray[np.float64]) -> "Mean":
        """The mean of `values` (n,), n > 0."""
        low, high = bootstrap(values[:, None])
        return Mean(float(values.mean()), float(low[0]), float(high[0]))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How values of one group compare with those of another."""

    ratio: float  #: of the means; NaN where both are zero
    a12: float  #: Vargha and Delaney's: chance that one of the first is larger, ties count half
    p: float  #: of the Mann-Whitney U test, two-sided

    @property
    def is_above(self) -> bool:
        """True where the first group is larger beyond chance."""
        return self.a12 > 0.5 and self.p < 0.05

    @property
    def is_below(self) -> bool:
        """True where the first group is smaller beyond chance."""
        return self.a12 < 0.5 and self.p < 0.05


def compare(first: NDArray[np.float64], second: NDArray[np.float64]) -> Comparison:
    """Compare `first` (n,) with `second` (m,)."""
    if np.ptp(np.concatenate([first, second])) == 0:  # the test has no variance to work with
        return Comparison(ratio_of_means(first, second), 0.5, 1.0)
    test = mannwhitneyu(first, second, alternative="two-sided")
    a12 = float(test.statistic) / (len(first) * len(second))
    return Comparison(ratio_of_means(first, second), a12, float(test.pvalue))


def ratio_of_means(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Mean of `first` over that of `second`: infinite where only the latter is 0, NaN where both are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(first.mean()) / np.float64(second.mean()))


def bootstrap(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends (p,) and (p,) of 95 % percentile intervals of the means of `values` (n, p) over n trials."""
    low, high = np.percentile(_weights(len(values)) @ values, _INTERVAL, axis=0)
    return low, high


@cache
def _weights(count: int) -> NDArray[np.float64]:
    """(resamples, count) share of each of so many trials in every resample, all that a mean depends on."""
    rng = np.random.default_rng(_SEED)
    return rng.multinomial(count, np.full(count, 1 / count), _RESAMPLES) / count
