"""Tables of results, for a terminal and for a page: who found what, and whether freshness helps."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.versus.columns import COLUMNS
from benchmarks.versus.contestants import OURS
from benchmarks.versus.results import Comparison, Contest, Group, Mean, Results

#: Metrics in which the default is compared with everybody, as far as they are known.
_COMPARED = ("mass_near", "behaviours", "packed_near")
#: With freshness, and without.
PAIR = ("mdpfuzz", "reward")
#: Metric to its name, and what it is called where there is more of it and where there is less.
_FRESHNESS_METRICS = {
    "mass_near": ("failure mass", "more", "less"),
    "behaviours": ("behaviours", "more", "fewer"),
    "packed_near": ("packing", "more", "fewer"),
    "distinct": ("distinct findings", "more", "fewer"),
    "findings": ("findings", "more", "fewer"),
    "cpu_seconds": ("CPU seconds", "dearer", "cheaper"),
}
#: Against whom the lead is told by what is counted, and in which order: the easiest to raise first.
_LED = ("random", "half-noise")
LEAD_METRICS = (
    "findings",
    "distinct",
    "packed_close",
    "packed_near",
    "packed_far",
    "behaviours",
    "lineages",
    "courses",
    "mass_near",
    "mass_far",
)


@dataclass(frozen=True, slots=True)
class Cell:
    """A number for a reader, and what there is to say about it."""

    main: str
    detail: str = ""


def table(
    contest: Contest, metrics: Mapping[str, str], is_compared: bool
) -> tuple[list[str], list[list[Cell]]]:
    """Headings, and a row for each contestant, with those `metrics` (by heading) that somebody knows."""
    shown = {head: metric for head, metric in metrics.items() if _is_known(contest, metric)}
    ours = contest.find(OURS) if is_compared else None
    compared = [metric for metric in _COMPARED if ours is not None and _is_known(contest, metric)]
    heads = ["contestant", "trials", *shown, *(f"default: {COLUMNS[metric].head}" for metric in compared)]
    return heads, [_row(group, list(shown.values()), ours, compared) for group in contest.groups]


def lead(results: Results) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: how many times as much as others the default has, by what is counted."""
    rows = []
    for label in results.labels:
        contest = results.contests(label)[0]
        ours = contest.find(OURS)
        for name in _LED:
            other = contest.find(name)
            if ours is not None and other is not None:
                rows.append([label, name, *(_times(ours, other, metric) for metric in LEAD_METRICS)])
    return ["target", "against", *(COLUMNS[metric].head for metric in LEAD_METRICS)], rows


def masses(results: Results) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: covered failure mass of all contestants on all targets that have a reference set."""
    labels = [label for label in results.labels if label in results.references]
    pairs = [(label, metric) for label in labels for metric in ("mass_near", "mass_far")]
    contests = {label: results.contests(label)[0] for label in labels}
    rows = []
    for name in results.contestants:
        groups = [contests[label].find(name) for label, _ in pairs]
        if any(groups):
            cells = (
                _mean(group.mean(metric), False) if group else Cell("-")
                for group, (_, metric) in zip(groups, pairs, strict=True)
            )
            rows.append([name, *(shown(cell) for cell in cells)])
    return ["contestant", *(f"{label}, {COLUMNS[metric].head[5:]}" for label, metric in pairs)], rows


def shown(cell: Cell) -> str:
    """A cell in one line."""
    return f"{cell.main} ({cell.detail})" if cell.detail else cell.main


def number(value: float) -> str:
    """A mean for a reader: 1,603, 43.2, 0.314."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 1 else f"{value:.3g}"


def probability(value: float) -> str:
    """A p value for a reader."""
    return "<0.001" if value < 0.001 else f"{value:.2g}"


def _row(group: Group, metrics: list[str], ours: Group | None, compared: Sequence[str]) -> list[Cell]:
    broken = len(group.broken_off)
    cells = [Cell(group.contestant), Cell(str(len(group.metrics)), f"{broken} broke off" if broken else "")]
    for metric in metrics:
        is_open = metric == "first_or_end" and any(one.first is None for one in group.metrics)
        cells.append(_mean(group.mean(metric), is_open))
    for metric in compared:
        is_comparable = ours is not None and group.contestant != OURS and group.knows(metric)
        cells.append(_compared(ours.versus(group, metric)) if ours and is_comparable else Cell(""))
    return cells


def _is_known(contest: Contest, metric: str) -> bool:
    """True if somebody knows it."""
    return any(group.knows(metric) for group in contest.groups)


def _times(ours: Group, other: Group, metric: str) -> str:
    if not (ours.knows(metric) and other.knows(metric)):
        return "-"
    return _ratio(ours.versus(other, metric).ratio)


def _mean(mean: Mean, is_open: bool) -> Cell:
    if math.isnan(mean.value):
        return Cell("-")
    bound = "> " if is_open else ""
    low, high = number(mean.low), number(mean.high)
    interval = f"{low}-{high}" if low != high else ""
    return Cell(bound + number(mean.value), interval)


def _compared(compared: Comparison) -> Cell:
    return Cell(_ratio(compared.ratio), f"A12 {compared.a12:.2f} p {probability(compared.p)}")


def _ratio(ratio: float) -> str:
    return "both none" if math.isnan(ratio) else "none there" if math.isinf(ratio) else f"{ratio:,.2f} x"


@dataclass(frozen=True, slots=True)
class Freshness:
    """One metric on one target."""

    label: str
    metric: str
    with_it: float  #: mean
    without: float  #: mean
    compared: Comparison

    @staticmethod
    def of(results: Results) -> "Iterator[Freshness]":
        """All metrics on all targets on which both strategies were run."""
        for label in results.labels:
            contest = results.contests(label)[0]
            first, second = (contest.find(name) for name in PAIR)
            if first is not None and second is not None:
                known = [name for name in _FRESHNESS_METRICS if first.knows(name) and second.knows(name)]
                yield from (_measured(label, metric, first, second) for metric in known)

    @property
    def row(self) -> list[str]:
        """For a table."""
        name, above, below = _FRESHNESS_METRICS[self.metric]
        compared = self.compared
        word = above if compared.is_above else below if compared.is_below else "no difference"
        means = [number(self.with_it), number(self.without)]
        return [self.label, name, *means, f"{compared.a12:.2f}", probability(compared.p), word]


def _measured(label: str, metric: str, first: Group, second: Group) -> Freshness:
    means = first.mean(metric).value, second.mean(metric).value
    return Freshness(label, metric, *means, first.versus(second, metric))
