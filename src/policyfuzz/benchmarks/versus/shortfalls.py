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
    """Goals that are missed, where the default is not above random, where it is below anybody, and gaps."""
    lines = [f"{goal.target}: missed: {goal.what}: {goal.numbers}" for goal in goals if goal.is_met is False]
    for contest in _contests(results):
        lines += _of_contest(contest)
    if not lines and any(_is_comparison(contest) for contest in _contests(results)):
        measured = any(goal.is_met is not None for goal in goals)
        told = "no goal that was measured is missed" if measured else "no goal was measured"
        lines = [f"nothing that was measured: {told}, and where `default` was compared it is below nobody"]
    return lines + list(_gaps(results, goals))


def _gaps(results: Results, goals: Sequence[Goal]) -> Iterator[str]:
    """What was not measured, or not as it should have been."""
    for label in results.labels:
        contests = results.contests(label)
        if not any(_is_comparison(contest) for contest in contests):
            why = "was compared with nobody" if results.of(label, OURS) else "did not take part"
            yield f"{label}: `default` {why}"
        # the longest contest of each, which is the last to be put there
        broken = {group.contestant: group for contest in contests[::-1] for group in contest.groups}
        yield from (_broken_off(label, group) for group in broken.values() if group.broken_off)
    yield from (
        f"{label}: `{name}` could not run, and is not compared"
        for label, name in results.failures
        if not results.of(label, name)
    )
    open_goals = sum(goal.is_met is None for goal in goals)
    if open_goals:
        yield f"{open_goals} of {len(goals)} goals are not measured; why is said beside them"


def _broken_off(label: str, group: Group) -> str:
    """How early a contestant ended its trials by itself."""
    counts = ", ".join(f"{one.episodes_run:,}" for one in group.broken_off)
    of_all = f"{len(group.broken_off)} of {len(group.metrics)} trials"
    asked = f"{group.metrics[0].episodes:,}"
    return f"{label}: `{group.contestant}` broke off in {of_all}, after {counts} of {asked} episodes"


def _contests(results: Results) -> Iterator[Contest]:
    return (contest for label in results.labels for contest in results.contests(label))


def _is_comparison(contest: Contest) -> bool:
    """True where the default and somebody else took part."""
    return contest.find(OURS) is not None and len(contest.groups) > 1


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
