"""Two policies in numbers: counts of what they did on the same cases, and all that follows from them.

A comparison that has just been run gives such numbers, and so does one that was stored. Verdict, test and
probabilities always follow from the counts, so a file cannot claim what its counts do not show.
"""

from dataclasses import asdict, dataclass
from typing import Any

from policyfuzz.report.statistics import FailureProbability, percentage
from policyfuzz.store.comparisons import FINDINGS_OF_A, FINDINGS_OF_B, POOL

#: Chance of calling two policies different that fail equally often, at most.
SIGNIFICANCE = 0.05
#: Groups of cases, in the order in which they are shown.
GROUPS = (FINDINGS_OF_A, FINDINGS_OF_B, POOL)
#: Columns of the table of groups.
HEADS = ("", "cases", "fixed", "still failing", "newly failing", "both pass", "errors A", "errors B")
#: Verdicts about B.
WORSE, BETTER, NOT_SHOWN = "worse", "better", "no difference shown"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many cases of a group ended how."""

    cases: int = 0  #: that both policies were given
    fixed: int = 0  #: A fails, and B does not
    still_failing: int = 0  #: both fail
    newly_failing: int = 0  #: B fails, and A does not
    both_pass: int = 0
    errors_of_a: int = 0  #: episodes that could not be run to their end, which are in no other count
    errors_of_b: int = 0

    @property
    def counted(self) -> int:
        """Cases that both policies were run on to the end."""
        return self.fixed + self.still_failing + self.newly_failing + self.both_pass


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much the failure probability of B exceeds that of A, and its interval of 95 % or more."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Searched:
    """What a campaign against one of the policies found."""

    folder: str
    executions: int
    distinct_findings: int
    lineages: int


@dataclass(frozen=True, slots=True)
class Tally:
    """What two policies, A and B, did on the same findings and on the same random inputs."""

    target: str
    a: str  #: names the policy
    b: str
    groups: dict[str, Counts]  #: those of GROUPS that have cases
    planned: int  #: cases; more than were run if the comparison was stopped
    of_solvable: bool = False  #: only solvable inputs were drawn
    is_same_policy: bool = False
    searched: tuple[Searched, ...] = ()  #: the campaigns against A and B, where there are both
    setting_differences: tuple[str, ...] = ()  #: of these campaigns
    policy_sha256: tuple[str, ...] = ("", "")  #: of what A and B are made of

    @property
    def cases(self) -> int:
        """That both policies were given."""
        return sum(one.cases for one in self.groups.values())

    @property
    def is_complete(self) -> bool:
        """False if the comparison was stopped."""
        return self.cases == self.planned

    def counts(self, group: str) -> Counts:
        """Of the cases of one group: "findings of A", "findings of B" or "pool"."""
        return self.groups.get(group, Counts())

    @property
    def pool(self) -> Counts:
        """Counts of the random pool, the only group that says which policy is better."""
        return self.counts(POOL)

    @property
    def p_value(self) -> float:
        """Of McNemar's exact two-sided test on the pool; 1 where no pair tells the policies apart."""
        from scipy.stats import binomtest

        told_apart = self.pool.fixed + self.pool.newly_failing
        return float(binomtest(self.pool.newly_failing, told_apart).pvalue) if told_apart else 1.0

    @property
    def failure_probabilities(self) -> tuple[FailureProbability, FailureProbability]:
        """Of A and of B, from the pool, with exact 95 % intervals."""
        pool = self.pool
        of_a, of_b = pool.fixed + pool.still_failing, pool.newly_failing + pool.still_failing
        return (
            FailureProbability.of(of_a, pool.counted, self.of_solvable),
            FailureProbability.of(of_b, pool.counted, self.of_solvable),
        )

    @property
    def difference(self) -> Difference | None:
        """Failure probability of B less that of A; None without a pool.

        The interval joins exact ones of 97.5 % for both kinds of pairs that differ, so it holds in 95 % of
        cases or more, however few these pairs are.
        """
        from scipy.stats import binomtest

        pool = self.pool
        if not pool.counted:
            return None
        new, fixed = (
            binomtest(count, pool.counted).proportion_ci(0.975, "exact")
            for count in (pool.newly_failing, pool.fixed)
        )
        value = (pool.newly_failing - pool.fixed) / pool.counted
        return Difference(value, float(new.low - fixed.high), float(new.high - fixed.low))

    @property
    def verdict(self) -> str:
        """B is "worse" or "better" if the pool shows so at the 5 % level, else "no difference shown"."""
        if self.p_value > SIGNIFICANCE:
            return NOT_SHOWN
        return WORSE if self.pool.newly_failing > self.pool.fixed else BETTER

    @property
    def is_worse(self) -> bool:
        """True if B fails significantly more often in the pool."""
        return self.verdict == WORSE

    def summary(self) -> dict[str, Any]:
        """All numbers, for programs."""
        of_a, of_b = self.failure_probabilities
        return {
            "target": self.target,
            "a": self.a,
            "b": self.b,
            "policy_sha256": list(self.policy_sha256),
            "is_same_policy": self.is_same_policy,
            "verdict": self.verdict,
            "is_worse": self.is_worse,
            "is_complete": self.is_complete,
            "cases": self.cases,
            "planned": self.planned,
            "of_solvable": self.of_solvable,
            "groups": {name: asdict(counts) for name, counts in self.groups.items()},
            "p_value": self.p_value,
            "failure_probability_a": asdict(of_a),
            "failure_probability_b": asdict(of_b),
            "difference": self.difference and asdict(self.difference),
            "campaigns": [asdict(one) for one in self.searched],
            "setting_differences": list(self.setting_differences),
        }

    @property
    def table(self) -> list[tuple[Any, ...]]:
        """The name of each group, and its counts in the order of HEADS."""
        return [(name, *asdict(self.groups[name]).values()) for name in GROUPS if name in self.groups]

    @property
    def verdict_text(self) -> str:
        """The verdict in a sentence."""
        level = f"{SIGNIFICANCE:.0%} level"
        if self.verdict != NOT_SHOWN:
            how = "more often" if self.is_worse else "less often"
            return f"B is {self.verdict}: in the pool it fails significantly {how} (at the {level})"
        return f"no difference shown: the pool does not tell A and B apart (at the {level})"

    @property
    def numbers(self) -> dict[str, str]:
        """Probabilities, their difference and the test, in words by name; empty without a pool."""
        of_a, of_b = self.failure_probabilities
        found, pool = self.difference, self.pool
        if found is None:
            return {}
        return {
            "failure probability A": str(of_a),
            "failure probability B": str(of_b),
            "difference": f"B less A: {_points(found.value)} (95 %: {_points(found.low)} to"
            f" {_points(found.high)})",
            "McNemar's exact test": f"p = {self.p_value:.3g}: {pool.fixed:,} fail with A alone,"
            f" {pool.newly_failing:,} with B alone",
        }

    @property
    def campaigns(self) -> list[str]:
        """What the campaigns against A and B found, where there are both."""
        lines = [
            f"campaign against {name}   {one.distinct_findings:,} distinct findings from {one.lineages:,}"
            f" lineages in {one.executions:,} episodes ({one.folder})"
            for name, one in zip("AB", self.searched, strict=False)
        ]
        if lines and self.setting_differences:
            lines.append(f"                     their settings differ: {'; '.join(self.setting_differences)}")
        return lines

    @property
    def warnings(self) -> list[str]:
        """What stands against the numbers."""
        lines = []
        if not self.is_complete:
            lines.append(f"Stopped early: {self.cases:,} of {self.planned:,} cases were run.")
        lost = self.counts(FINDINGS_OF_A)
        if count := lost.newly_failing + lost.both_pass:
            lines.append(
                f"{count:,} findings of A do not fail with A any more: the target is not what it was."
            )
        return lines


def _points(share: float) -> str:
    """A difference of probabilities, with its sign."""
    return f"{'-' if share < 0 else '+'}{percentage(abs(share))}"
