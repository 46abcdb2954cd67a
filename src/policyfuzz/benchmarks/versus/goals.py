"""What must hold, checked from the numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from policyfuzz.benchmarks.versus.contestants import SLOW_PEERS
from policyfuzz.benchmarks.versus.results import OURS, Contest, Group, Results
from policyfuzz.benchmarks.versus.targets import ENTRIES

_AIRCRAFT = ("acasxu", "acasxu-public")
#: Share of crashes among random inputs below which the default must be above random beyond chance.
_RARE = 0.05
_MOST_OVERHEAD = 0.25
#: Target whose regions must all be found, and in which share of trials.
_REGIONS_TARGET, _REGIONS_SHARE = "ripple-10", 0.9


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing that must hold."""

    target: str
    what: str
    numbers: str  #: that tell
    is_met: bool | None  #: None where it was not measured


def check(results: Results) -> list[Goal]:
    """All goals that have to do with the targets in `results`."""
    goals: list[Goal] = []
    for label in results.labels:
        contest = results.contests(label)[0]
        if label in _AIRCRAFT:
            goals += _multiple_of_random(contest)
            goals += _overhead(contest)
        else:
            goals += _not_below_random(contest)
        goals += _above_slow_peers(label, results.slow_contest(label))
        goals += _regions(contest)
    return goals


def _multiple_of_random(contest: Contest) -> Iterator[Goal]:
    for metric, factor in (("distinct", 4), ("findings", 10)):
        what = f"default has at least {factor} times the {_NAMES[metric]} of random"
        yield _at_least(contest, "random", metric, factor, what, _usual(contest.label))


def _at_least(contest: Contest, other: str, metric: str, factor: float, what: str, episodes: int) -> Goal:
    ours, theirs = contest.find(OURS), contest.find(other)
    what = f"{what} at {episodes:,} episodes"
    if ours is None or theirs is None or contest.episodes != episodes:
        return Goal(contest.label, what, "", None)
    mine, its = ours.mean(metric).value, theirs.mean(metric).value
    is_met = mine > 0 and mine >= factor * its
    return Goal(contest.label, what, f"{mine:,.1f} against {its:,.1f}{_times(mine, its)}", is_met)


def _not_below_random(contest: Contest) -> Iterator[Goal]:
    ours, random = contest.find(OURS), contest.find("random")
    for metric in ("findings", "distinct"):
        what = f"default has no fewer {_NAMES[metric]} than random (A12 >= 0.5)"
        if ours is None or random is None:
            yield Goal(contest.label, what, "", None)
            continue
        is_rare = _crash_share(random) < _RARE
        if is_rare:
            what = f"default has more {_NAMES[metric]} than random (A12 > 0.5, p < 0.05)"
        compared = ours.versus(random, metric)
        is_met = compared.is_above if is_rare else compared.a12 >= 0.5
        yield Goal(contest.label, what, _means(ours, random, metric), is_met)


def _above_slow_peers(label: str, contest: Contest | None) -> Iterator[Goal]:
    if contest is None:
        return
    ours = contest.find(OURS)
    for theirs in (group for group in contest.groups if group.contestant in SLOW_PEERS):
        name = theirs.contestant
        if label in _AIRCRAFT:
            what = f"default has at least 10 times the distinct findings of {name}"
            yield _at_least(contest, name, "distinct", 10, what, ENTRIES[label].slow_peer_episodes)
            continue
        for metric in ("findings", "distinct"):
            what = f"default has more {_NAMES[metric]} than {name} (A12 > 0.5)"
            if ours is None:
                yield Goal(label, what, "", None)
            else:
                is_met = ours.versus(theirs, metric).a12 > 0.5
                yield Goal(label, what, _means(ours, theirs, metric), is_met)


def _regions(contest: Contest) -> Iterator[Goal]:
    if contest.label != _REGIONS_TARGET:
        return
    what = f"default finds all {contest.known_regions} regions in {_REGIONS_SHARE:.0%} of trials"
    ours = contest.find(OURS)
    if ours is None or contest.episodes != _usual(contest.label):
        yield Goal(contest.label, what, "", None)
        return
    complete = int((ours.values("regions") == contest.known_regions).sum())
    count = len(ours.metrics)
    yield Goal(contest.label, what, f"{complete} of {count}", complete >= _REGIONS_SHARE * count)


def _overhead(contest: Contest) -> Iterator[Goal]:
    what = f"default spends at most {_MOST_OVERHEAD:.0%} of wall time on the search and the store"
    ours = contest.find(OURS)
    if ours is None or contest.episodes != _usual(contest.label):
        yield Goal(contest.label, what, "", None)
        return
    # the first trial of a process compiles, which is no part of the search
    share = float(np.median(ours.values("overhead")))
    yield Goal(contest.label, what, f"{share:.1%}, the median of trials", share <= _MOST_OVERHEAD)


_NAMES = {"findings": "findings", "distinct": "distinct findings"}


def _crash_share(random: Group) -> float:
    """Share of random inputs that crash; each finding costs a second run, which is no new input."""
    findings = random.mean("findings").value
    return findings / max(random.metrics[0].episodes - findings, 1)


def _usual(label: str) -> int:
    """Episodes that a goal in absolute numbers is about."""
    return ENTRIES[label].episodes


def _means(ours: Group, theirs: Group, metric: str) -> str:
    mine, its, compared = ours.mean(metric).value, theirs.mean(metric).value, ours.versus(theirs, metric)
    return f"{mine:,.1f} against {its:,.1f}, A12 {compared.a12:.2f}, p {compared.p:.2g}"


def _times(mine: float, its: float) -> str:
    return f": {mine / its:,.1f} times" if its else ""
