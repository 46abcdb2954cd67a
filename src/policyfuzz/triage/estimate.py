"""How likely is a failure at all? Plain sampling where failures are common, subset simulation where not.

The probability is that of a random input, drawn from the target's own distribution until it is valid, and
solvable where that is tested, with a random case seed. That is what the random draws of a campaign measure.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import markup
from policyfuzz.core.errors import UsageError
from policyfuzz.triage.subset_simulation import FLOOR, KEPT, STEPS

PLAIN, SUBSET = "plain sampling", "subset simulation"
#: Replicates by default, and fewest: fewer say too little about how far the result may be off.
REPLICATES, FEWEST_REPLICATES = 10, 8
#: Particles of a replicate by default, and fewest.
_PARTICLES, _FEWEST_PARTICLES = 80, 20
#: Random draws of a replicate for each of its particles: enough to reach a probability of a tenth by choice.
_DRAWS_PER_PARTICLE = 10
#: Episodes of a replicate for each of its particles, down to FLOOR.
_EPISODES_PER_PARTICLE = _DRAWS_PER_PARTICLE + math.ceil(
    math.log(FLOOR * _DRAWS_PER_PARTICLE) / math.log(KEPT) * (1 - KEPT) * STEPS
)
#: exp of more does not fit into a number.
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Probability that a valid input, or a solvable one where that is tested, fails; its 95 % interval."""

    probability: float  #: 0 if no failure was seen
    low: float
    high: float
    episodes: int  #: that it took
    method: str  #: PLAIN or SUBSET
    replicates: int  #: independent runs of subset simulation; 0 for plain sampling
    levels: int  #: thresholds of the longest of them
    relative_error: float  #: standard error as a share of the probability; NaN if no failure was seen
    plain_episodes: float  #: that plain sampling would take for the same error; NaN likewise
    is_complete: bool  #: False where a limit was reached first, or no failure: the interval is a bound then
    of_solvable: bool  #: True where only inputs that passed a test of solvability were drawn
    target: str
    policy: str
    seed: int
    notes: tuple[str, ...] = ()  #: what a reader should know
    policy_sha256: str = ""  #: of what the policy is made of

    def __str__(self) -> str:
        inputs = "of valid, solvable inputs" if self.of_solvable else "of valid inputs"
        if not self.probability > 0:
            claim = f"at most {short(self.high)} {inputs} fail (95 %)"
        else:
            interval = f"95 %: {short(self.low)} to {short(self.high)}"
            claim = f"a share of {short(self.probability)} {inputs} fails ({interval})"
        lines = [claim, *self._in_words(), f"{self.method}, {self.episodes:,} episodes{self._effort()}"]
        return "\n".join([*lines, *self.notes])

    def _repr_html_(self) -> str:
        claim, *rest = str(self).splitlines()
        about = {"target": self.target, "policy": self.policy, "seed": self.seed}
        return markup.heading(claim) + markup.paragraph("\n".join(rest)) + markup.facts(about)

    def _in_words(self) -> list[str]:
        if not self.probability > 0:
            return []
        often, rarely = (f"{_rounded(1 / end):,}" if end > 0 else "never" for end in (self.high, self.low))
        return [f"one in about {_rounded(1 / self.probability):,} fails, between one in {often} and {rarely}"]

    def _effort(self) -> str:
        if self.method == PLAIN or not self.probability > 0:
            return ""
        return (
            f" in {self.replicates} replicates; plain sampling would take about"
            f" {_rounded(self.plain_episodes):,} for the same relative error of {self.relative_error:.0%}"
        )


@dataclass(frozen=True, slots=True)
class EstimateSettings:
    """What the result follows from, beside the target and its policy."""

    seed: int = 0
    replicates: int = REPLICATES
    max_episodes: int | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"seed is {self.seed}, expected 0 or more")
        if not FEWEST_REPLICATES <= self.replicates <= 1000:
            raise UsageError(
                f"replicates is {self.replicates}, expected {FEWEST_REPLICATES} to 1000",
                "fewer say too little about how far the result may be off",
            )
        if self.max_episodes is not None and not 1 <= self.max_episodes <= 10**12:
            raise UsageError(f"max-execs is {self.max_episodes}, expected 1 or more")

    @property
    def fewest_episodes(self) -> int:
        """That subset simulation needs."""
        return self.replicates * _FEWEST_PARTICLES * _EPISODES_PER_PARTICLE

    @property
    def limit(self) -> int:
        """Episodes at most."""
        return self.max_episodes or self.replicates * _PARTICLES * _EPISODES_PER_PARTICLE

    @property
    def particles(self) -> int:
        """Of each replicate, 0 if the budget is too small for subset simulation."""
        affordable = self.limit // (self.replicates * _EPISODES_PER_PARTICLE)
        return affordable if affordable >= _FEWEST_PARTICLES else 0

    @property
    def first_draws(self) -> int:
        """Random draws of each replicate, before anything is decided."""
        return _DRAWS_PER_PARTICLE * self.particles


def combined(shares: NDArray[np.float64]) -> tuple[float, float, float]:
    """The probability that replicates with these `shares` (r,) above zero give, and its 95 % interval."""
    mean = float(shares.mean())
    low, high = log_normal_interval(shares)
    return mean, min(low, mean), min(max(high, mean), 1.0)


def log_normal_interval(values: NDArray[np.float64]) -> tuple[float, float]:
    """Ends of the 95 % interval of the mean of a log-normal distribution, from `values` (n,) above zero.

    A product of many random shares is close to log-normal. Its mean is exp(m + s²/2), and the interval
    takes into account how well m and s² are known (Cox's method, with Student's distribution).
    """
    from scipy.special import stdtrit

    logs, count = np.log(values), len(values)
    variance = float(np.var(logs, ddof=1))
    centre = float(logs.mean()) + variance / 2
    reach = float(stdtrit(count - 1, 0.975)) * math.sqrt(variance / count + variance**2 / (2 * (count - 1)))
    return math.exp(centre - reach), math.exp(min(centre + reach, _LARGEST_EXPONENT))


def short(share: float) -> str:
    """A probability for a reader."""
    return f"{share:.3g}"


def _rounded(value: float) -> int:
    """`value` with two digits that are not zero."""
    magnitude = max(math.floor(math.log10(value)) - 1, 0) if value > 0 else 0
    return int(round(value / 10**magnitude) * 10**magnitude)
