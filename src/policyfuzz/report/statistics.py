"""How likely a random input fails, with its exact interval.

Only the random stream of a campaign counts: inputs drawn from the target's own distribution until they are
valid, and solvable where that is tested, whatever the search has found meanwhile.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from policyfuzz.store.records import Progress

#: Chance that the truth lies above the interval, and below it, at most.
_TAIL = 0.025
#: Relative size of the last step towards a bound (each step squares the error), and the most steps.
_PRECISION, _MOST_STEPS = 1e-12, 100
#: Digits of a percentage that are shown.
_DIGITS = 3


@dataclass(frozen=True, slots=True)
class FailureProbability:
    """Probability that a valid input, or a solvable one where that is tested, fails; its 95 % interval."""

    probability: float  #: NaN before the first draw
    low: float
    high: float
    draws: int  #: random inputs whose episode could be run
    crashes: int  #: of these
    of_solvable: bool = False  #: True where only inputs that passed a test of solvability were drawn

    @classmethod
    def of(cls, crashes: int, draws: int, of_solvable: bool = False) -> "FailureProbability":
        """From independent `draws`, of which some were `crashes` (Clopper and Pearson, exact).

        Without a crash the upper end stays that of the interval: a one-sided bound, used in this case only,
        would be narrower, but the intervals would then miss the truth more often than they say.
        """
        return cls(
            probability=crashes / draws if draws else math.nan,
            low=_rate_with_tail(crashes, draws, _TAIL) if crashes else 0.0,
            high=_rate_with_tail(crashes + 1, draws, 1 - _TAIL) if crashes < draws else 1.0,
            draws=draws,
            crashes=crashes,
            of_solvable=of_solvable,
        )

    @classmethod
    def of_campaigns(cls, totals: Iterable[Progress], of_solvable: bool = False) -> "FailureProbability":
        """From all random draws of campaigns on the same target, none of which have the same seed."""
        counts = [(one.sample_crashes, one.samples) for one in totals]
        crashes, draws = sum(crashes for crashes, _ in counts), sum(draws for _, draws in counts)
        return cls.of(crashes, draws, of_solvable)

    @property
    def brief(self) -> str:
        """The numbers alone, for a narrow column."""
        if not self.draws:
            return "not known yet"
        if not self.crashes:
            return f"at most {percentage(self.high)}"
        return f"{percentage(self.low)} to {percentage(self.high)}"

    def __str__(self) -> str:
        if not self.draws:
            return "not known: nothing was drawn at random"
        inputs = "of valid, solvable inputs" if self.of_solvable else "of valid inputs"
        draws = f"{self.draws:,} random draws"
        if not self.crashes:
            return f"at most {percentage(self.high)} {inputs} (95 %): none of {draws} failed"
        interval = f"{percentage(self.low)} to {percentage(self.high)}"
        return f"{percentage(self.probability)} {inputs} (95 %: {interval}), from {draws}"


def _rate_with_tail(count: int, draws: int, tail: float) -> float:
    """The rate at which `draws` give `count` or more, 1 at least, with probability `tail`.

    Newton's method within a bracket. Importing scipy.special for it would take most of the time of `status`.
    """
    low, high, rate = 0.0, 1.0, count / (draws + 1)
    for _ in range(_MOST_STEPS):
        reached, slope = _tail(count, draws, rate)
        low, high = (rate, high) if reached < tail else (low, rate)
        guess = rate - (reached - tail) / slope if slope > 0 else math.nan
        last, rate = rate, guess if low < guess < high else (low + high) / 2
        if abs(rate - last) <= _PRECISION * rate:
            break
    return rate


def _tail(count: int, draws: int, rate: float) -> tuple[float, float]:
    """Probability that `draws` of this `rate` give `count` or more, and its derivative by the rate.

    Sums binomial probabilities relative to that of the likeliest count; those left out are below 1e-16.
    """
    mode = min(int((draws + 1) * rate), draws)
    reach = 30 + int(10 * math.sqrt(draws * rate * (1 - rate)))
    odds = rate / (1 - rate)
    below = np.arange(mode, max(mode - reach, 0), -1)
    above = np.arange(mode + 1, min(mode + reach, draws) + 1)
    falling = np.cumprod(below / ((draws + 1 - below) * odds))
    rising = np.cumprod((draws + 1 - above) * odds / above)
    terms = np.concatenate([falling[::-1], [1.0], rising])
    place, total = count - (mode - len(below)), terms.sum()
    probability = terms[place] / total if 0 <= place < len(terms) else 0.0
    return float(terms[max(place, 0) :].sum() / total), float(probability * count / rate)


def percentage(share: float) -> str:
    """As a percentage; rare failures keep their digits."""
    magnitude = math.floor(math.log10(100 * share)) if share > 0 else 0
    return f"{share:.{max(1, _DIGITS - 1 - magnitude)}%}"
