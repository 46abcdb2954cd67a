"""The paper's own comparison (RQ2): guidance by freshness against the same without it."""

from collections.abc import Iterator
from dataclasses import dataclass

from policyfuzz.benchmarks.versus.cells import number, probability
from policyfuzz.benchmarks.versus.results import Group, Results
from policyfuzz.benchmarks.versus.statistics import Comparison

#: With freshness, and without.
PAIR = ("mdpfuzz", "reward")
#: Metric to its name, and what it is called where there is more of it and where there is less.
_METRICS = {
    "findings": ("findings", "more", "fewer"),
    "distinct": ("distinct findings", "more", "fewer"),
    "behaviours": ("behaviours", "more", "fewer"),
    "area": ("area under the curve", "more", "less"),
    "cpu_seconds": ("CPU seconds", "dearer", "cheaper"),
}


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
                yield from (_measured(label, metric, first, second) for metric in _METRICS)

    @property
    def row(self) -> list[str]:
        """For a table."""
        name, above, below = _METRICS[self.metric]
        compared = self.compared
        word = above if compared.is_above else below if compared.is_below else "no difference"
        means = [number(self.with_it), number(self.without)]
        return [self.label, name, *means, f"{compared.a12:.2f}", probability(compared.p), word]


def _measured(label: str, metric: str, first: Group, second: Group) -> Freshness:
    means = first.mean(metric).value, second.mean(metric).value
    return Freshness(label, metric, *means, first.versus(second, metric))
