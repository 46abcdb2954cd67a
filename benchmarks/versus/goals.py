"""What must hold, checked from the numbers."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from benchmarks.versus import peers
from benchmarks.versus.columns import COLUMNS
from benchmarks.versus.contestants import OURS, SLOW_PEERS, contestant_names, episodes_of
from benchmarks.versus.results import Comparison, Contest, Group, Results
from benchmarks.versus.targets import ENTRIES

#: Trials that it takes to tell.
_SEEDS, _SLOW_PEER_SEEDS = 10, 3
#: The goal that every target has.
BELOW_NOBODY = "default is significantly below nobody in any column"
#: Stands for every fuzzer that is not ours.
_EVERY_PEER = "every peer"


@dataclass(frozen=True, slots=True)
class Goal:
    """One thing that must hold."""

    target: str
    what: str
    numbers: str  #: that tell, or why it was not measured
    is_met: bool | None  #: None where it was not measured


@dataclass(frozen=True, slots=True)
class Level:
    """The mean of a metric must reach a number, or stay at or below it where lower is better."""

    metric: str
    number: float


@dataclass(frozen=True, slots=True)
class Multiple:
    """The mean of a metric must be so many times that of others."""

    metric: str
    factor: float
    others: tuple[str, ...]
    is_significant: bool = False  #: p < 0.05 as well


WANTED: dict[str, tuple[Level | Multiple, ...]] = {
    "acasxu": (
        Level("mass_near", 0.75),
        Level("mass_far", 0.92),
        Multiple("findings", 10, ("random",)),
    ),
    "acasxu-public": (Level("mass_near", 0.97),),
    "coopnavi": (
        Level("lineages", 10),
        Multiple("behaviours", 3, (_EVERY_PEER,)),
        Level("first_or_end", 2_500),
    ),
    "bipedal": (Multiple("courses", 3, ("random", _EVERY_PEER), is_significant=True),),
    "lunarlander": (Multiple("behaviours", 5, ("random",)),),
    "cartpole": (Multiple("behaviours", 5, ("random",)),),
}


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A column in which the default is below a contestant beyond chance."""

    label: str
    episodes: int
    contestant: str
    metric: str
    ours: float  #: mean
    theirs: float  #: mean
    compared: Comparison

    @property
    def numbers(self) -> str:
        """For a reader."""
        means = f"{_number(self.ours)} against {_number(self.theirs)}"
        return f"{means}, A12 {self.compared.a12:.2f}, p {self.compared.p:.2g}"


def shortfalls(results: Results, label: str) -> list[Shortfall]:
    """All columns of a target in which the default is worse than a contestant, p < 0.05.

    Each contestant is compared once, over the episodes that it had. Nothing is corrected for the number of
    comparisons: that would speak for the default.
    """
    found = []
    for name in results.contestants:
        episodes = results.length(label, name)
        contest = results.contest(label, episodes)
        ours, theirs = contest.find(OURS), contest.find(name)
        if name == OURS or ours is None or theirs is None:
            continue
        for metric, column in COLUMNS.items():
            if ours.knows(metric) and theirs.knows(metric):
                compared = ours.versus(theirs, metric)
                if compared.is_above if column.is_lower_better else compared.is_below:
                    means = ours.mean(metric).value, theirs.mean(metric).value
                    found.append(Shortfall(label, episodes, name, metric, *means, compared))
    return found


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
        names = _contestants(results, label, contestants)
        for one in WANTED.get(label, ()):
            goals += (
                [_level(results, label, one)]
                if isinstance(one, Level)
                else _multiple(results, label, one, names)
            )
        goals.append(_below_nobody(results, label, names))
    return goals


def _contestants(results: Results, label: str, asked: Collection[str]) -> list[str]:
    """All that took part, should have, or could not, without the default."""
    failed = {name for where, name in results.failures if where == label}
    wanted = {*results.contestants, *asked, *failed}
    known = [name for name in contestant_names() if name in wanted]
    return [name for name in dict.fromkeys([*known, *sorted(wanted)]) if name != OURS]


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

    def goal(
        self, what: str, metric: str, names: tuple[str, ...], measure: Callable[..., tuple[str, bool]]
    ) -> Goal:
        """The goal that `measure` decides from the groups of the contestants called `names`."""
        label = self.contest.label
        reasons = list(filter(None, (self.reason(name, metric) for name in names)))
        if reasons:
            return Goal(label, what, "; ".join(reasons), None)
        return Goal(label, what, *measure(*(self.contest.find(name) for name in names)))

    def reason(self, name: str, metric: str = "findings") -> str:
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
        if not group.knows(metric):
            return f"{name}: {COLUMNS[metric].head} not known"
        return ""


def _level(results: Results, label: str, wanted: Level) -> Goal:
    case, column = _Case.of(results, label, OURS), COLUMNS[wanted.metric]

    def measure(ours: Group) -> tuple[str, bool]:
        mean = ours.mean(wanted.metric)
        is_met = mean.value <= wanted.number if column.is_lower_better else mean.value >= wanted.number
        return f"{_number(mean.value)} ({_number(mean.low)}-{_number(mean.high)})", is_met

    bound = "at most" if column.is_lower_better else "at least"
    what = f"default: {column.name} {bound} {_number(wanted.number)} at {case.contest.episodes:,} episodes"
    return case.goal(what, wanted.metric, (OURS,), measure)


def _multiple(results: Results, label: str, wanted: Multiple, names: list[str]) -> Iterator[Goal]:
    every = [name for name in names if name in peers.PEERS]
    others = [name for one in wanted.others for name in (every if one == _EVERY_PEER else [one])]
    for other in others:

        def measure(ours: Group, theirs: Group) -> tuple[str, bool]:
            mine, its = (group.mean(wanted.metric).value for group in (ours, theirs))
            compared = ours.versus(theirs, wanted.metric)
            times = f": {mine / its:,.1f} times" if its else ""
            is_met = mine > 0 and mine >= wanted.factor * its
            if wanted.is_significant:
                return (
                    f"{_number(mine)} against {_number(its)}{times}, p {compared.p:.2g}",
                    is_met and compared.is_above,
                )
            return f"{_number(mine)} against {_number(its)}{times}", is_met

        case = _Case.of(results, label, other)
        what = f"default has at least {wanted.factor:g} times the {COLUMNS[wanted.metric].name} of {other}"
        tail = ", p < 0.05" if wanted.is_significant else ""
        yield case.goal(
            f"{what} at {case.contest.episodes:,} episodes{tail}", wanted.metric, (OURS, other), measure
        )


def _below_nobody(results: Results, label: str, names: list[str]) -> Goal:
    what, found = BELOW_NOBODY, shortfalls(results, label)
    if found:
        columns = [f"{COLUMNS[one.metric].head} of {one.contestant} ({one.numbers})" for one in found]
        return Goal(label, what, f"below in {len(found)}: {'; '.join(columns)}", False)
    reasons = _reasons(results, label, names)
    if reasons or not names:
        return Goal(label, what, "; ".join(reasons) or "nobody else did run", None)
    return Goal(label, what, f"{len(names)} contestants in up to {len(COLUMNS)} columns", True)


def _reasons(results: Results, label: str, names: list[str]) -> list[str]:
    """Why the default cannot be compared with all contestants called `names`; empty if it can."""
    absent = [name for name in names if not results.length(label, name)]
    reasons = [f"not run: {', '.join(absent)}"] if absent else []
    for name in (one for one in names if one not in absent):
        case = _Case.of(results, label, name)
        reasons += filter(None, (case.reason(OURS), case.reason(name)))
    return list(dict.fromkeys(reasons))


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
