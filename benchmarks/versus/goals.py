"""What must hold, checked from the numbers."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.versus.contestants import SLOW_PEERS, contestant_names, episodes_of
from benchmarks.versus.results import OURS, Contest, Group, Results
from benchmarks.versus.targets import ENTRIES

_AIRCRAFT = ("acasxu", "acasxu-public")
#: Trials that it takes to tell.
_SEEDS, _SLOW_PEER_SEEDS = 10, 3
#: Share of crashes among random inputs below which the default must be above random beyond chance.
_RARE = 0.05
_MOST_OVERHEAD = 0.25
#: Target whose regions must all be found, and in which share of trials.
_REGIONS_TARGET, _REGIONS_SHARE = "ripple-10", 0.9
_NAMES = {"findings": "findings", "distinct": "distinct findings"}


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing that must hold."""

    target: str
    what: str
    numbers: str  #: that tell, or why it was not measured
    is_met: bool | None  #: None where it was not measured


def check(results: Results, targets: Collection[str] = (), contestants: Collection[str] = ()) -> list[Goal]:
    """All goals that have to do with what is in `results`, or with these `targets` and `contestants`.

    A goal is measured only by as many trials as it takes to tell, with the episodes that it is about.
    """
    goals: list[Goal] = []
    wanted = {*results.labels, *targets}
    for label in dict.fromkeys([*(one for one in ENTRIES if one in wanted), *results.labels]):
        if label not in results.labels:
            goals.append(Goal(label, "all goals of this target", "did not run", None))
            continue
        goals += _beside_random(_Case.of(results, label, "random"))
        for name in contestant_names():
            is_wanted = name in {*results.contestants, *contestants} or (label, name) in results.failures
            if name in SLOW_PEERS and is_wanted:
                goals += _above_slow_peer(_Case.of(results, label, name), name)
        goals += _regions(results, label)
        goals += _overhead(results, label)
    return goals


@dataclass(frozen=True, slots=True)
class _Case:
    """One contest, and whether it tells anything."""

    results: Results
    contest: Contest

    @classmethod
    def of(cls, results: Results, label: str, contestant: str) -> "_Case":
        """The contest over as many episodes as `contestant` should have; as it had, where nothing is said."""
        if label in ENTRIES:
            return cls(results, results.contest(label, episodes_of(contestant, ENTRIES[label])))
        episodes = results.length(label, contestant) or results.contests(label)[0].episodes
        return cls(results, results.contest(label, episodes))

    def goal(self, what: str, names: tuple[str, ...], measure: Callable[..., tuple[str, bool]]) -> Goal:
        """The goal that `measure` decides from the groups of the contestants called `names`."""
        label = self.contest.label
        reasons = list(filter(None, (self._reason(name) for name in names)))
        if reasons:
            return Goal(label, what, "; ".join(reasons), None)
        return Goal(label, what, *measure(*(self.contest.find(name) for name in names)))

    def _reason(self, name: str) -> str:
        """Why a contestant cannot be measured; empty if it can."""
        label, episodes = self.contest.label, self.contest.episodes
        length, group = self.results.length(label, name), self.contest.find(name)
        needed = _SLOW_PEER_SEEDS if name in SLOW_PEERS else _SEEDS
        if not length:
            return f"{name} {'could' if (label, name) in self.results.failures else 'did'} not run"
        if group is None:
            return f"{name}: {length:,} of {episodes:,} episodes"
        if len(group.metrics) < needed:
            return f"{name}: {len(group.metrics)} of {needed} seeds"
        if group.broken_off:
            return f"{name} broke off in {len(group.broken_off)} of {len(group.metrics)} trials"
        return ""


def _beside_random(case: _Case) -> Iterator[Goal]:
    if case.contest.label in _AIRCRAFT:
        yield _at_least(case, "random", "distinct", 4)
        yield _at_least(case, "random", "findings", 10)
        return
    random = case.contest.find("random")
    is_rare = random is not None and _crash_share(random) < _RARE
    for metric, name in _NAMES.items():
        if is_rare:
            what = f"default has more {name} than random (A12 > 0.5, p < 0.05)"
        else:
            what = f"default has no fewer {name} than random (A12 >= 0.5)"

        def measure(ours: Group, theirs: Group, metric: str = metric) -> tuple[str, bool]:
            compared = ours.versus(theirs, metric)
            return _means(ours, theirs, metric), compared.is_above if is_rare else compared.a12 >= 0.5

        yield case.goal(what, (OURS, "random"), measure)


def _above_slow_peer(case: _Case, peer: str) -> Iterator[Goal]:
    if case.contest.label in _AIRCRAFT:
        yield _at_least(case, peer, "distinct", 10)
        return
    for metric, name in _NAMES.items():

        def measure(ours: Group, theirs: Group, metric: str = metric) -> tuple[str, bool]:
            return _means(ours, theirs, metric), ours.versus(theirs, metric).a12 > 0.5

        yield case.goal(f"default has more {name} than {peer} (A12 > 0.5)", (OURS, peer), measure)


def _at_least(case: _Case, other: str, metric: str, factor: float) -> Goal:
    def measure(ours: Group, theirs: Group) -> tuple[str, bool]:
        mine, its = ours.mean(metric).value, theirs.mean(metric).value
        times = f": {mine / its:,.1f} times" if its else ""
        return f"{mine:,.1f} against {its:,.1f}{times}", mine > 0 and mine >= factor * its

    what = f"default has at least {factor} times the {_NAMES[metric]} of {other}"
    return case.goal(f"{what} at {case.contest.episodes:,} episodes", (OURS, other), measure)


def _regions(results: Results, label: str) -> Iterator[Goal]:
    if label != _REGIONS_TARGET:
        return
    case = _Case.of(results, label, OURS)
    known = case.contest.known_regions

    def measure(ours: Group) -> tuple[str, bool]:
        complete, count = int((ours.values("regions") == known).sum()), len(ours.metrics)
        return f"{complete} of {count}", complete >= _REGIONS_SHARE * count

    yield case.goal(f"default finds all {known} regions in {_REGIONS_SHARE:.0%} of trials", (OURS,), measure)


def _overhead(results: Results, label: str) -> Iterator[Goal]:
    if label not in _AIRCRAFT:
        return
    # longer trials count as a whole: the time of a part was not measured
    episodes = max(ENTRIES[label].episodes, results.length(label, OURS))

    def measure(ours: Group) -> tuple[str, bool]:
        # the first trial of a process compiles, which is no part of the search
        share = float(np.median(ours.values("overhead")))
        return f"{share:.1%}, the median of trials", share <= _MOST_OVERHEAD

    what = f"default spends at most {_MOST_OVERHEAD:.0%} of wall time on the search and the store"
    yield _Case(results, results.contest(label, episodes)).goal(what, (OURS,), measure)


def _crash_share(random: Group) -> float:
    """Share of random inputs that crash; each finding costs a second run, which is no new input."""
    findings = random.mean("findings").value
    return findings / max(random.metrics[0].episodes - findings, 1)


def _means(ours: Group, theirs: Group, metric: str) -> str:
    mine, its, compared = ours.mean(metric).value, theirs.mean(metric).value, ours.versus(theirs, metric)
    return f"{mine:,.1f} against {its:,.1f}, A12 {compared.a12:.2f}, p {compared.p:.2g}"
