"""How likely a random input fails, with its exact interval.

Only the random stream of a campaign counts: inputs drawn from the target's own distribution until they are
valid, and solvable where that is tested, whatever the search has found meanwhile.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from policyfuzz.core.intervals import exact_interval
from policyfuzz.store.records import Progress

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
        low, high = exact_interval(crashes, draws)
        return cls(crashes / draws if draws else math.nan, low, high, draws, crashes, of_solvable)

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


def percentage(share: float) -> str:
    """As a percentage; rare failures keep their digits."""
    magnitude = math.floor(math.log10(100 * share)) if share > 0 else 0
    return f"{share:.{max(1, _DIGITS - 1 - magnitude)}%}"
