"""Which of two policies fails more often: every case that both ran, and what the counts of them mean."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from policyfuzz.core import extras, markup
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.report.tally import GROUPS, HEADS, Counts, Difference, Searched, Tally
from policyfuzz.store.comparisons import ERROR, POOL, Ending
from policyfuzz.triage.compare import Case

#: Newly failing cases of the pool that a summary lists.
_CASES_LISTED = 100
#: What a reader must not take from findings.
_ADVICE = (
    "Findings were searched for with one policy, and count against it: those of A show what B",
    "fixes, not that B is better. Only the pool compares the two.",
)


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
    policy_sha256: tuple[str, ...] = ("", "")  #: of what A and B are made of

    @property
    def tally(self) -> Tally:
        """The counts, from which all but the single cases follows."""
        return Tally(
            target=self.target,
            a=self.a,
            b=self.b,
            groups=self.groups,
            planned=self.planned,
            of_solvable=self.of_solvable,
            is_same_policy=self.is_same_policy,
            searched=self.searched,
            setting_differences=self.setting_differences,
            policy_sha256=self.policy_sha256,
        )

    def counts(self, group: str) -> Counts:
        """Of the cases of one group: "findings of A", "findings of B" or "pool"."""
        return _counts([one for one in self.pairs if one.case.group == group])

    @property
    def groups(self) -> dict[str, Counts]:
        """Counts of every group that has cases."""
        found = {name: self.counts(name) for name in GROUPS}
        return {name: counts for name, counts in found.items() if counts.cases}

    @property
    def pool(self) -> Counts:
        """Counts of the random pool, the only group that says which policy is better."""
        return self.counts(POOL)

    @property
    def p_value(self) -> float:
        """Of McNemar's exact two-sided test on the pool; 1 where no pair tells the policies apart."""
        return self.tally.p_value

    @property
    def failure_probabilities(self) -> tuple[FailureProbability, FailureProbability]:
        """Of A and of B, from the pool, with exact 95 % intervals."""
        return self.tally.failure_probabilities

    @property
    def difference(self) -> Difference | None:
        """Failure probability of B less that of A, with an interval of 95 % or more; None without a pool."""
        return self.tally.difference

    @property
    def verdict(self) -> str:
        """B is "worse" or "better" if the pool shows so at the 5 % level, else "no difference shown"."""
        return self.tally.verdict

    @property
    def is_worse(self) -> bool:
        """True if B fails significantly more often in the pool."""
        return self.tally.is_worse

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each case, with inputs by name."""
        return [self._row(pair) for pair in self.pairs]

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each case."""
        return extras.load("pandas", "pandas").DataFrame.from_records(self.rows())

    def summary(self) -> dict[str, Any]:
        """All numbers, for programs; `newly_failing_cases` are the first of the pool."""
        pool = [one for one in self.pairs if one.is_counted and one.case.group == POOL]
        new = [one for one in pool if one.b.fails and not one.a.fails]
        return self.tally.summary() | {"newly_failing_cases": [self._row(one) for one in new[:_CASES_LISTED]]}

    def lines(self) -> list[str]:
        """What a reader should know, line by line."""
        tally = self.tally
        return [
            f"{self.target}",
            f"  A  {self.a}",
            f"  B  {self.b}" + (", the same policy" if self.is_same_policy else ""),
            "",
            *_table(tally),
            "",
            *_numbers(tally),
            *(["", *tally.campaigns] if tally.campaigns else []),
            "",
            *_ADVICE,
            *tally.warnings,
        ]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        tally = self.tally
        same = ", the same policy" if self.is_same_policy else ""
        about = {"target": self.target, "A": self.a, "B": f"{self.b}{same}"}
        text = "\n".join([*_numbers(tally), *tally.campaigns, *_ADVICE, *tally.warnings])
        table = markup.table(HEADS, tally.table)
        return markup.heading(tally.verdict_text) + markup.facts(about) + table + markup.paragraph(text)

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


def _counts(pairs: list[Pair]) -> Counts:
    ends = Counter((one.a.fails, one.b.fails) for one in pairs if one.is_counted)
    return Counts(
        cases=len(pairs),
        fixed=ends[True, False],
        still_failing=ends[True, True],
        newly_failing=ends[False, True],
        both_pass=ends[False, False],
        errors_of_a=sum(one.a.what == ERROR for one in pairs),
        errors_of_b=sum(one.b.what == ERROR for one in pairs),
    )


def _table(tally: Tally) -> list[str]:
    table = [HEADS, *((name, *(f"{value:,}" for value in counts)) for name, *counts in tally.table)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in table
    ]


def _numbers(tally: Tally) -> list[str]:
    if not tally.numbers:
        return ["failure probability  not known: no random input was run on both policies"]
    numbers = tally.numbers | {"verdict": tally.verdict_text}
    heads = {"failure probability A": "failure probability  A", "failure probability B": " " * 21 + "B"}
    return [f"{heads.get(name, f'{name:<20}')} {text}" for name, text in numbers.items()]
