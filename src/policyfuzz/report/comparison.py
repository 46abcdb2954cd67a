"""Which of two policies fails more often: counts, an exact test on the random pool, and what they mean."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from policyfuzz.core import extras, markup
from policyfuzz.report.statistics import FailureProbability, percentage
from policyfuzz.store.comparisons import ERROR, Ending
from policyfuzz.triage.compare import FINDINGS_OF_A, FINDINGS_OF_B, POOL, Case

#: Chance of calling two policies different that fail equally often, at most.
SIGNIFICANCE = 0.05
#: Newly failing cases of the pool that a summary lists.
_CASES_LISTED = 100
#: Columns of the table of groups.
_HEADS = ("", "cases", "fixed", "still failing", "newly failing", "both pass", "errors A", "errors B")
#: Verdicts about B.
WORSE, BETTER, NOT_SHOWN = "worse", "better", "no difference shown"


@dataclass(frozen=True, slots=True)
class Pair:
    """A case, and how both policies ended it."""

    case: Case
    a: Ending
    b: Ending

    @property
    def is_counted(self) -> bool:
        """False where an error of the environment ended the episode of one of them."""
        return ERROR not in (self.a.what, self.b.what)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many cases of a group ended how."""

    cases: int  #: that both policies were given
    fixed: int  #: A fails, and B does not
    still_failing: int  #: both fail
    newly_failing: int  #: B fails, and A does not
    both_pass: int
    errors_of_a: int  #: episodes that could not be run to their end, which are in no other count
    errors_of_b: int

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "Counts":
        """The counts of `pairs`."""
        ends = [(one.a.fails, one.b.fails) for one in pairs if one.is_counted]
        return cls(
            cases=len(pairs),
            fixed=ends.count((True, False)),
            still_failing=ends.count((True, True)),
            newly_failing=ends.count((False, True)),
            both_pass=ends.count((False, False)),
            errors_of_a=sum(one.a.what == ERROR for one in pairs),
            errors_of_b=sum(one.b.what == ERROR for one in pairs),
        )

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


@dataclass(frozen=True, slots=True, repr=False)
class Comparison:
    """Two policies, A and B, on the same findings and on the same random inputs."""

    target: str
    a: str  #: names the policy
    b: str
    pairs: tuple[Pair, ...]  #: that were run
    planned: int  #: cases; more than there are pairs if the comparison was stopped
    dimensions: tuple[str, ...]  #: names of the inputs
    of_solvable: bool = False  #: only solvable inputs were drawn
    is_same_policy: bool = False
    searched: tuple[Searched, ...] = ()  #: the campaigns against A and B, where there are both
    setting_differences: tuple[str, ...] = ()  #: of these campaigns

    def counts(self, group: str) -> Counts:
        """Of the cases of one group: "findings of A", "findings of B" or "pool"."""
        return Counts.of([one for one in self.pairs if one.case.group == group])

    @property
    def groups(self) -> dict[str, Counts]:
        """Counts of every group that has cases."""
        found = {name: self.counts(name) for name in (FINDINGS_OF_A, FINDINGS_OF_B, POOL)}
        return {name: counts for name, counts in found.items() if counts.cases}

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

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each case, with inputs by name."""
        return [self._row(pair) for pair in self.pairs]

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each case."""
        return extras.load("pandas", "pandas").DataFrame.from_records(self.rows())

    def summary(self) -> dict[str, Any]:
        """All numbers, for programs; `newly_failing_cases` are the first of the pool."""
        of_a, of_b = self.failure_probabilities
        pool = [one for one in self.pairs if one.is_counted and one.case.group == POOL]
        new = [one for one in pool if one.b.fails and not one.a.fails]
        return {
            "target": self.target,
            "a": self.a,
            "b": self.b,
            "verdict": self.verdict,
            "is_worse": self.is_worse,
            "is_complete": len(self.pairs) == self.planned,
            "cases": len(self.pairs),
            "planned": self.planned,
            "groups": {name: asdict(counts) for name, counts in self.groups.items()},
            "p_value": self.p_value,
            "failure_probability_a": asdict(of_a),
            "failure_probability_b": asdict(of_b),
            "difference": self.difference and asdict(self.difference),
            "campaigns": [asdict(one) for one in self.searched],
            "setting_differences": list(self.setting_differences),
            "newly_failing_cases": [self._row(one) for one in new[:_CASES_LISTED]],
        }

    def lines(self) -> list[str]:
        """What a reader should know, line by line."""
        return [
            f"{self.target}",
            f"  A  {self.a}",
            f"  B  {self.b}" + (", the same policy" if self.is_same_policy else ""),
            "",
            *self._table(),
            *self._numbers(),
            *self._campaigns(),
            *self._advice(),
        ]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        same = ", the same policy" if self.is_same_policy else ""
        about = {"target": self.target, "A": self.a, "B": f"{self.b}{same}"}
        text = "\n".join([*self._numbers()[1:], *self._campaigns(), *self._advice()[1:]])
        table = markup.table(_HEADS, self._counted())
        verdict = markup.heading(self._verdict_text())
        return verdict + markup.facts(about) + table + markup.paragraph(text)

    def _row(self, pair: Pair) -> dict[str, Any]:
        values = dict(zip(self.dimensions, pair.case.input.tolist(), strict=True))
        return {
            "group": pair.case.group,
            "finding": pair.case.finding,
            "case_seed": pair.case.case_seed,
            **{f"a_{name}": value for name, value in asdict(pair.a).items()},
            **{f"b_{name}": value for name, value in asdict(pair.b).items()},
            **{f"input_{name}": value for name, value in values.items()},
        }

    def _table(self) -> list[str]:
        table = [_HEADS, *((name, *(f"{value:,}" for value in counts)) for name, *counts in self._counted())]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in table
        ]

    def _counted(self) -> list[tuple[Any, ...]]:
        """The name of each group, and its counts in the order of _HEADS."""
        return [
            (
                name,
                one.cases,
                one.fixed,
                one.still_failing,
                one.newly_failing,
                one.both_pass,
                one.errors_of_a,
                one.errors_of_b,
            )
            for name, one in self.groups.items()
        ]

    def _numbers(self) -> list[str]:
        of_a, of_b = self.failure_probabilities
        found, pool = self.difference, self.pool
        if found is None:
            return ["", "failure probability  not known: no random input was run on both policies"]
        return [
            "",
            f"failure probability  A {of_a}",
            f"                     B {of_b}",
            f"difference           B less A: {_points(found.value)} (95 %: {_points(found.low)} to"
            f" {_points(found.high)})",
            f"McNemar's exact test p = {self.p_value:.3g}: {pool.fixed:,} fail with A alone,"
            f" {pool.newly_failing:,} with B alone",
            f"verdict              {self._verdict_text()}",
        ]

    def _verdict_text(self) -> str:
        level = f"{SIGNIFICANCE:.0%} level"
        if self.verdict != NOT_SHOWN:
            how = "more often" if self.is_worse else "less often"
            return f"B is {self.verdict}: in the pool it fails significantly {how} (at the {level})"
        return f"no difference shown: the pool does not tell A and B apart (at the {level})"

    def _campaigns(self) -> list[str]:
        if not self.searched:
            return []
        lines = [
            f"campaign against {name}   {one.distinct_findings:,} distinct findings from {one.lineages:,}"
            f" lineages in {one.executions:,} episodes ({one.folder})"
            for name, one in zip("AB", self.searched, strict=True)
        ]
        if self.setting_differences:
            lines.append(f"                     their settings differ: {'; '.join(self.setting_differences)}")
        return ["", *lines]

    def _advice(self) -> list[str]:
        lines = [
            "",
            "Findings were searched for with one policy, and count against it: those of A show what B",
        ]
        lines.append("fixes, not that B is better. Only the pool compares the two.")
        if len(self.pairs) < self.planned:
            lines.append(f"Stopped early: {len(self.pairs):,} of {self.planned:,} cases were run.")
        lost = self.groups.get(FINDINGS_OF_A)
        if lost and lost.newly_failing + lost.both_pass:
            count = lost.newly_failing + lost.both_pass
            lines.append(
                f"{count:,} findings of A do not fail with A any more: the target is not what it was."
            )
        return lines


def _points(share: float) -> str:
    """A difference of probabilities, with its sign."""
    return f"{'-' if share < 0 else '+'}{percentage(abs(share))}"
