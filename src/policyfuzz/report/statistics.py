"""Statistics of counts: intervals, and how likely a random input fails.

Only the random stream of a campaign counts: inputs drawn from the target's own distribution until they are
valid and solvable, whatever the search has found meanwhile.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from scipy.special import betaincinv

from policyfuzz.store.records import Progress

#: Standard normal quantile of a two-sided 95 % interval.
_Z = 1.959963984540054


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % interval of a proportion; sensible for rare events, unlike the normal one."""
    if trials == 0:
        return 0.0, 1.0
    rate, spread = successes / trials, _Z**2 / trials
    centre = (rate + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * math.sqrt(rate * (1 - rate) / trials + spread / (4 * trials))
    return max(0.0, centre - half), min(1.0, centre + half)


#: Chance that the truth lies above the interval, and below it, at most.
_TAIL = 0.025
#: Digits of a percentage that are shown.
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class FailureProbability:
    """Probability that a valid, solvable input fails, with its 95 % interval."""

    probability: float  #: NaN before the first draw
    low: float
    high: float
    draws: int  #: random inputs whose episode could be run
    crashes: int  #: of these

    @classmethod
    def of(cls, crashes: int, draws: int) -> "FailureProbability":
        """From independent `draws`, of which some were `crashes` (Clopper and Pearson, exact).

        Without a crash the upper end stays that of the interval: a one-sided bound, used in this case only,
        would be narrower, but the intervals would then miss the truth more often than they say.
        """
        return cls(
            probability=crashes / draws if draws else math.nan,
            low=float(betaincinv(crashes, draws - crashes + 1, _TAIL)) if crashes else 0.0,
            high=float(betaincinv(crashes + 1, draws - crashes, 1 - _TAIL)) if crashes < draws else 1.0,
            draws=draws,
            crashes=crashes,
        )

    @classmethod
    def of_campaigns(cls, totals: Iterable[Progress]) -> "FailureProbability":
        """From all random draws of campaigns on the same target, none of which have the same seed."""
        counts = [(one.sample_crashes, one.samples) for one in totals]
        return cls.of(sum(crashes for crashes, _ in counts), sum(draws for _, draws in counts))

    @property
    def brief(self) -> str:
        """The numbers alone, for a narrow column."""
        if not self.draws:
            return "not known yet"
        if not self.crashes:
            return f"at most {_percentage(self.high)}"
        return f"{_percentage(self.low)} to {_percentage(self.high)}"

    def __str__(self) -> str:
        if not self.draws:
            return "not known: nothing was drawn at random"
        inputs, draws = "of valid, solvable inputs", f"{self.draws:,} random draws"
        if not self.crashes:
            return f"at most {_percentage(self.high)} {inputs} (95 %): none of {draws} failed"
        interval = f"{_percentage(self.low)} to {_percentage(self.high)}"
        return f"{_percentage(self.probability)} {inputs} (95 %: {interval}), from {draws}"


def _percentage(share: float) -> str:
    """As a percentage; rare failures keep their digits."""
    magnitude = math.floor(math.log10(100 * share)) if share > 0 else 0
    return f"{share:.{max(1, _DIGITS - 1 - magnitude)}%}"
