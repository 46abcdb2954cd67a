"""The findings that a page lists: filtered, sorted and cut here, so that a browser gets one page."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlencode

from policyfuzz.report.ranking import ranked
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, FLAKY, NEW, UNSOLVED, Finding
from policyfuzz.store.triage_file import Triage

#: Findings on a page.
PAGE_SIZE = 50
#: Kinds of crash that can be chosen.
_MOST_KINDS = 50
#: Findings that are compared for the order `different`, as `show --sort distance` does.
_MOST_COMPARED = 5000
#: A page beyond this is the last one.
_LARGEST_PAGE = 10**9


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several things to choose in a form."""

    value: str
    label: str


#: Name to label and SQL condition of the findings that are shown.
_SHOWN: Mapping[str, tuple[str, str, tuple[object, ...]]] = {
    "distinct": ("distinct", "is_distinct", ()),
    "confirmed": ("all confirmed", "status = ?", (CONFIRMED,)),
    "luck": ("needs a lucky case seed", "status = ? AND reseeded > 0 AND NOT is_distinct", (CONFIRMED,)),
    "flaky": ("flaky", "status = ?", (FLAKY,)),
    "unsolved": ("no reference survives", "status = ?", (UNSOLVED,)),
    "new": ("not confirmed yet", "status = ?", (NEW,)),
    "imported": ("from other instances", "origin IS NOT NULL", ()),
    "all": ("everything", "1", ()),
}
#: Name to label and columns to sort by; a minus sorts the largest first.
_ORDERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "found": ("as found", ("id",)),
    "newest": ("newest first", ("-id",)),
    "severity": ("worst first", ("margin", "return", "crash_step")),
    "return": ("lowest return first", ("return", "crash_step")),
    "time": ("earliest crash first", ("crash_step", "return")),
    "late": ("latest crash first", ("-crash_step", "return")),
    "repeats": ("most repeats first", ("-repeats", "id")),
    "different": ("most different first", ()),
}


@dataclass(frozen=True, slots=True)
class Query:
    """What an address asks for; whatever makes no sense is left out."""

    show: str = "distinct"
    sort: str = "found"
    kind: str = ""
    mode: int = 0  #: 0: any
    page: int = 1

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "Query":
        """From the parameters of an address."""
        show, sort = given.get("show", ""), given.get("sort", "")
        return cls(
            show if show in _SHOWN else cls().show,
            sort if sort in _ORDERS else cls().sort,
            given.get("kind", "")[:200],
            _number(given.get("mode", "").removeprefix("M"), 0),
            max(_number(given.get("page", ""), 1), 1),
        )

    def address(self, **changes: Any) -> str:
        """The query of an address that asks for the same but for `changes`."""
        other, usual = replace(self, **changes), Query()
        values = {name: value for name, value in asdict(other).items() if value != getattr(usual, name)}
        return f"?{urlencode(values)}" if values else "?"

    def at_page(self, page: int) -> str:
        """The query of the address of another page."""
        return self.address(page=page)

    @property
    def condition(self) -> tuple[str, tuple[object, ...]]:
        """SQL condition and its parameters, without the mode."""
        _, where, parameters = _SHOWN[self.show]
        return (f"{where} AND kind = ?", (*parameters, self.kind)) if self.kind else (where, parameters)


@dataclass(frozen=True, slots=True)
class FindingPage:
    """One page of findings."""

    query: Query
    findings: list[Finding]
    total: int  #: that the query asks for
    pages: int
    kinds: list[str]  #: that can be chosen
    note: str = ""  #: what a reader should know

    @property
    def first(self) -> int:
        """Place of the first finding on the page, from 1."""
        return (self.query.page - 1) * PAGE_SIZE + 1

    @property
    def shows(self) -> list[Choice]:
        """Which findings can be shown."""
        return [Choice(name, label) for name, (label, _, _) in _SHOWN.items()]

    @property
    def orders(self) -> list[Choice]:
        """How they can be sorted."""
        return [Choice(name, label) for name, (label, _) in _ORDERS.items()]


def finding_page(campaign: CampaignReader, triage: Triage, query: Query) -> FindingPage:
    """The findings that `query` asks for; a page beyond the last is the last."""
    kinds = campaign.kinds(_MOST_KINDS)
    members = _members(triage, query.mode)
    if query.sort == "different" and not query.kind and members is None:
        return _most_different(campaign, query, kinds)
    where, parameters = query.condition
    columns = _ORDERS[query.sort][1] or _ORDERS["severity"][1]
    note = "" if _ORDERS[query.sort][1] else "with a filter, the order is: worst first"
    if members is not None:
        # a mode may have more members than a statement can name
        known = set(members)
        every = campaign.ordered(where, columns, parameters)
        numbers = [number for number in every if number in known]
        total = len(numbers)
        query = _within(query, total)
        numbers = numbers[(query.page - 1) * PAGE_SIZE :][:PAGE_SIZE]
    else:
        total = _total(campaign, query, where, parameters)
        query = _within(query, total)
        numbers = campaign.ordered(where, columns, parameters, PAGE_SIZE, (query.page - 1) * PAGE_SIZE)
    return FindingPage(query, findings_at(campaign, numbers), total, _pages(total), kinds, note)


def findings_at(campaign: CampaignReader, numbers: Sequence[int]) -> list[Finding]:
    """The findings of these `numbers`, in this order; a page of them at most."""
    marks = ", ".join("?" * len(numbers))
    found = {one.id: one for one in campaign.records(Finding, "findings", f"id IN ({marks})", numbers)}
    return [found[number] for number in numbers if number in found]


def _members(triage: Triage, number: int) -> tuple[int, ...] | None:
    """Findings of mode `number`; None if any will do."""
    modes = () if triage.modes is None else triage.modes.modes
    return next((mode.members for mode in modes if mode.number == number), None)


def _most_different(campaign: CampaignReader, query: Query, kinds: list[str]) -> FindingPage:
    distinct_only = query.show == "distinct"
    count = campaign.progress().distinct_findings if distinct_only else campaign.last_number("findings") or 0
    total = min(count, _MOST_COMPARED)
    query = _within(replace(query, show="distinct" if distinct_only else "all"), total)
    found = list(ranked(campaign, "distance", distinct_only, PAGE_SIZE, (query.page - 1) * PAGE_SIZE))
    note = f"of the {_MOST_COMPARED:,} worst of {count:,} findings" if count > total else ""
    return FindingPage(query, found, total, _pages(total), kinds, note)


def _total(campaign: CampaignReader, query: Query, where: str, parameters: tuple[object, ...]) -> int:
    """How many findings there are; where the campaign's totals say it, nothing is counted."""
    if query == replace(Query(), sort=query.sort, page=query.page):
        return campaign.progress().distinct_findings
    if where == "1":
        return campaign.last_number("findings") or 0
    return campaign.count("findings", where, parameters)


def _within(query: Query, total: int) -> Query:
    return replace(query, page=min(query.page, _pages(total)))


def _pages(total: int) -> int:
    return max(1, math.ceil(total / PAGE_SIZE))


def _number(text: str, otherwise: int) -> int:
    return (
        min(int(text), _LARGEST_PAGE) if text.isascii() and text.isdecimal() and len(text) < 12 else otherwise
    )
