"""What did not work, found out from the numbers."""

from collections.abc import Iterator, Sequence

from policyfuzz.benchmarks.versus.cells import number, probability
from policyfuzz.benchmarks.versus.goals import Goal
from policyfuzz.benchmarks.versus.results import OURS, Contest, Group, Results

_METRICS = {
    "findings": "findings",
    "distinct": "distinct findings",
    "apart": "findings far apart",
    "behaviours": "behaviours",
    "area": "area under the curve",
}


def shortfalls(results: Results, goals: Sequence[Goal]) -> list[str]:
    """Goals that are missed, where the default is not above random, and where it is below anybody."""
    lines = [f"{goal.target}: missed: {goal.what}: {goal.numbers}" for goal in goals if goal.is_met is False]
    for label in results.labels:
        for contest in results.contests(label):
            lines += _of_contest(contest)
    lines += [
        f"{label}: `{name}` could not run, and is not compared"
        for label, name in results.failures
        if not results.of(label, name)
    ]
    return lines or ["nothing that was measured: no goal is missed, and `default` is below nobody"]


def _of_contest(contest: Contest) -> Iterator[str]:
    ours = contest.find(OURS)
    if ours is None:
        return
    for theirs in contest.groups:
        below = list(_below(ours, theirs)) if theirs.contestant != OURS else []
        if below:
            where = f"{contest.label}, {contest.episodes:,} episodes, `default` against `{theirs.contestant}`"
            yield f"{where}: {'; '.join(below)}"


def _below(ours: Group, theirs: Group) -> Iterator[str]:
    """In what `ours` is below `theirs`; against random, also where it is not above beyond chance."""
    for metric, name in _METRICS.items():
        compared = ours.versus(theirs, metric)
        if compared.is_below:
            word = "below in"
        elif compared.a12 < 0.5:
            word = "below, but not beyond chance, in"
        elif theirs.contestant == "random" and not compared.is_above:
            word = "not above beyond chance in"
        else:
            continue
        means = f"{number(ours.mean(metric).value)} against {number(theirs.mean(metric).value)}"
        yield f"{word} {name} ({means}, A12 {compared.a12:.2f}, p {probability(compared.p)})"
