"""The paper's table of results beside ours: the same five models, a budget in episodes instead of hours."""

from collections.abc import Sequence
from dataclasses import dataclass

from policyfuzz.benchmarks.campaigns import run_campaign
from policyfuzz.benchmarks.measurement import Track
from policyfuzz.core.errors import MissingExtra, UsageError, unknown_name
from policyfuzz.core.settings import SearchSettings
from policyfuzz.targets.registry import load_target


@dataclass(frozen=True, slots=True)
class Published:
    """What twelve hours gave in the paper, the mean of its runs."""

    model: str
    mutations: int
    crashes: float
    fuzzer_share: float  #: of the time


PUBLISHED = {
    "acasxu": Published("ACAS Xu, 45 networks", 161_543, 135.7, 0.76),
    "coopnavi": Published("Coop Navi, MADDPG", 531_200, 80.7, 0.82),
    "bipedal": Published("BipedalWalker, TQC", 6_602, 124.0, 0.32),
    "driving-rl": Published("CARLA, RL", 3_477, 161.7, 0.05),
    "driving-il": Published("CARLA, imitation", 3_167, 88.0, 0.07),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One target: the paper's numbers and ours."""

    target: str
    published: Published
    mutations: int = 0  #: changed inputs that were run, probes included
    crashes: int = 0  #: confirmed
    distinct: int = 0
    seconds: float = 0.0
    fuzzer_share: float = 0.0  #: of the time
    missing: str = ""  #: what to install, where the target cannot run


def run(track: Track, episodes: int, strategy: str, targets: Sequence[str] = ()) -> list[Row]:
    """One campaign of `episodes` on each of `targets`, all of the paper's by default."""
    for name in targets:
        if name not in PUBLISHED:
            raise unknown_name("target of the table", name, PUBLISHED)
    if episodes < 10:
        raise UsageError(f"episodes is {episodes}, expected 10 or more")
    return [_row(name, episodes, strategy) for name in track(list(targets or PUBLISHED), "targets")]


def _row(name: str, episodes: int, strategy: str) -> Row:
    try:
        target = load_target(name)
        # at most a fifth of the budget goes into seeds
        search = SearchSettings(samples=min(target.samples, episodes // 5))
        progress = run_campaign(target, episodes, strategy, search)
    except MissingExtra as error:
        return Row(name, PUBLISHED[name], missing=error.hint)
    return Row(
        name,
        PUBLISHED[name],
        mutations=progress.mutants,
        crashes=progress.findings,
        distinct=progress.distinct_findings,
        seconds=progress.seconds,
        fuzzer_share=1 - progress.simulate_seconds / progress.seconds,
    )
