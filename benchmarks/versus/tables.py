"""Tables of results, for a terminal and for a page: who found what, and whether freshness helps."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.versus.results import OURS, Comparison, Contest, Group, Mean, Results

#: Heading to metric: what was found, and at what cost.
COUNTS = {
    "findings": "findings",
    "distinct": "distinct",
    "far apart": "apart",
    "behaviours": "behaviours",
}
COSTS = {
    "first at": "first_or_end",
    "area": "area",
    "regions": "regions",
    "refused": "refused",
    "seconds": "seconds",
    "CPU": "cpu_seconds",
}
#: Metrics in which the default is compared with everybody.
_COMPARED = ("findings", "distinct")
#: With freshness, and without.
PAIR = ("mdpfuzz", "reward")
#: Metric to its name, and what it is called where there is more of it and where there is less.
_FRESHNESS_METRICS = {
    "findings": ("findings", "more", "fewer"),
    "distinct": ("distinct findings", "more", "fewer"),
    "behaviours": ("behaviours", "more", "fewer"),
    "area": ("area under the curve", "more", "less"),
    "cpu_seconds": ("CPU seconds", "dearer", "cheaper"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A number for a reader, and what there is to say about it."""

    main: str
    detail: str = ""


def table(
    contest: Contest, metrics: Mapping[str, str], is_compared: bool
) -> tuple[list[str], list[list[Cell]]]:
    """Headings, and a row for each contestant, with the `metrics` that `contest` has."""
    shown = _shown(contest, metrics)
    ours = contest.find(OURS) if is_compared else None
    heads = ["contestant", "trials", *shown, *(f"default: {metric}" for metric in _COMPARED if ours)]
    return heads, [_row(group, list(shown.values()), ours) for group in contest.groups]


def number(value: float) -> str:
    """A mean for a reader: 1,603, 43.2, 0.31."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 1 else f"{value:.2g}"


def probability(value: float) -> str:
    """A p value for a reader."""
    return "<0.001" if value < 0.001 else f"{value:.2g}"


def _row(group: Group, metrics: list[str], ours: Group | None) -> list[Cell]:
    broken = len(group.broken_off)
    cells = [Cell(group.contestant), Cell(str(len(group.metrics)), f"{broken} broke off" if broken else "")]
    for metric in metrics:
        is_open = metric == "first_or_end" and any(one.first is None for one in group.metrics)
        cells.append(_mean(group.mean(metric), is_open))
    if ours is not None:
        is_self = group.contestant == OURS
        cells += [Cell("") if is_self else _compared(ours.versus(group, metric)) for metric in _COMPARED]
    return cells


def _shown(contest: Contest, metrics: Mapping[str, str]) -> dict[str, str]:
    """Those of `metrics` that `contest` has."""
    hidden = set() if contest.known_regions else {"regions"}
    if all(math.isnan(one.seconds) for group in contest.groups for one in group.metrics):
        hidden |= {"seconds", "cpu_seconds"}
    return {head: metric for head, metric in metrics.items() if metric not in hidden}


def _mean(mean: Mean, is_open: bool) -> Cell:
    if math.isnan(mean.value):
        return Cell("-")
    bound = "> " if is_open else ""
    interval = f"{number(mean.low)}-{number(mean.high)}" if mean.low < mean.high else ""
    return Cell(bound + number(mean.value), interval)


def _compared(compared: Comparison) -> Cell:
    ratio = compared.ratio
    times = "both none" if math.isnan(ratio) else "none there" if math.isinf(ratio) else f"{ratio:,.2f} x"
    return Cell(times, f"A12 {compared.a12:.2f} p {probability(compared.p)}")


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
                yield from (_measured(label, metric, first, second) for metric in _FRESHNESS_METRICS)

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
