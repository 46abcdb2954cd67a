"""Which of two policies fails more often: every case that both ran, and what the counts of them mean."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from policyfuzz.core import extras, markup
from policyfuzz.report.tally import GROUPS, HEADS, Counts, Tally
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
class Comparison(Tally):
    """Two policies, A and B, on the same findings and on the same random inputs, case by case."""

    pairs: tuple[Pair, ...] = ()  #: that were run
    dimensions: tuple[str, ...] = ()  #: names of the inputs

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
        return Tally.summary(self) | {"newly_failing_cases": [self._row(one) for one in new[:_CASES_LISTED]]}

    def lines(self) -> list[str]:
        """What a reader should know, line by line."""
        return [
            self.target,
            f"  A  {self.a}",
            f"  B  {self.b}" + (", the same policy" if self.is_same_policy else ""),
            "",
            *_table(self),
            "",
            *_numbers(self),
            *(["", *self.campaigns] if self.campaigns else []),
            "",
            *_ADVICE,
            *self.warnings,
        ]

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        same = ", the same policy" if self.is_same_policy else ""
        about = {"target": self.target, "A": self.a, "B": f"{self.b}{same}"}
        text = "\n".join([*_numbers(self), *self.campaigns, *_ADVICE, *self.warnings])
        table = markup.table(HEADS, self.table)
        return markup.heading(self.verdict_text) + markup.facts(about) + table + markup.paragraph(text)

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


def counted(pairs: Sequence[Pair]) -> dict[str, Counts]:
    """Counts of every group that has cases among `pairs`."""
    groups = {name: [one for one in pairs if one.case.group == name] for name in GROUPS}
    return {name: _counts(some) for name, some in groups.items() if some}


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
