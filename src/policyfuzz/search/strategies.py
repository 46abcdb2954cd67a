"""Strategies: named recipes of the same parts.

A package adds one of its own by an entry point of the group `policyfuzz.strategies`: its name is that of the
strategy, and its object a `Strategy`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points

from policyfuzz.density.sequence import DensitySettings
from policyfuzz.errors import UsageError, blamed_on, unknown_name
from policyfuzz.inputs import InputSpace
from policyfuzz.search.energy import EnergyTactic
from policyfuzz.search.fuzzer import Fuzzer
from policyfuzz.search.guides import FreshnessGuide, FreshnessSettings, ReturnGuide
from policyfuzz.search.portfolio import SAMPLES, PortfolioTactic
from policyfuzz.search.tactic import RandomTactic, Tactic
from policyfuzz.target import Target
from policyfuzz.timing import TimeSplit


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """What a user may choose about the search; a strategy uses what it has parts for."""

    samples: int = 1000  #: inputs sampled before the first is changed
    sensitivity: str = "lineage"  #: energy of kept mutants: "exact" (an extra episode) or "lineage"
    density: DensitySettings = field(default_factory=DensitySettings)
    freshness: FreshnessSettings = field(default_factory=FreshnessSettings)

    def __post_init__(self) -> None:
        if self.sensitivity not in ("exact", "lineage"):
            raise unknown_name("sensitivity", self.sensitivity, ("exact", "lineage"))
        if self.samples < 1:
            raise UsageError(f"samples is {self.samples}, expected 1 or more")
        if not 0 < self.freshness.quantile < 1:
            raise UsageError(f"quantile is {self.freshness.quantile:g}, expected between 0 and 1")
        threshold = self.freshness.threshold
        if threshold is not None and not math.isfinite(threshold):
            raise UsageError(f"tau is {threshold:g}, expected a number")
        if not 0 <= self.density.forgetting < 1:
            raise UsageError(f"gamma is {self.density.forgetting:g}, expected 0 or more and below 1")
        if self.density.components < 1:
            raise UsageError(f"components is {self.density.components}, expected 1 or more")


@dataclass(frozen=True, slots=True)
class Strategy:
    """A recipe: the tactic, made afresh for every fuzzer."""

    summary: str
    tactic: Callable[[SearchSettings, TimeSplit], Tactic]


def _portfolio(settings: SearchSettings, _clock: TimeSplit) -> Tactic:
    return PortfolioTactic(min(settings.samples, SAMPLES))


def _mdpfuzz(settings: SearchSettings, clock: TimeSplit) -> Tactic:
    guides = ReturnGuide(), FreshnessGuide(settings.density, settings.freshness, clock)
    return EnergyTactic(guides, settings.samples, settings.sensitivity == "exact")


def _reward(settings: SearchSettings, _clock: TimeSplit) -> Tactic:
    return EnergyTactic((ReturnGuide(),), settings.samples, settings.sensitivity == "exact")


STRATEGIES: Mapping[str, Strategy] = {
    "portfolio": Strategy(
        "climbs to new crash regions and walks through known ones; a bandit shares out the episodes",
        _portfolio,
    ),
    "mdpfuzz": Strategy(
        "the paper's: small noise by energy; keeps what earns less or shows a fresh state sequence",
        _mdpfuzz,
    ),
    "reward": Strategy("as mdpfuzz, without freshness", _reward),
    "random": Strategy("samples only; nothing is learnt", lambda _settings, _clock: RandomTactic()),
}
DEFAULT_STRATEGY = "portfolio"
GROUP = "policyfuzz.strategies"


def strategy_names() -> tuple[str, ...]:
    """All strategies that can be used here: the built-in ones, then those of installed packages."""
    return tuple(dict.fromkeys([*STRATEGIES, *sorted(entry.name for entry in entry_points(group=GROUP))]))


def find_strategy(name: str) -> Strategy:
    """The strategy called `name`; a built-in one goes before one of a package."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    found = entry_points(group=GROUP, name=name)
    if not found:
        raise unknown_name("strategy", name, strategy_names())
    entry = next(iter(found))
    with blamed_on(f"strategy {name} ({entry.value})"):
        strategy = entry.load()
    if not isinstance(strategy, Strategy):
        raise UsageError(
            f"strategy {name} ({entry.value}) is a {type(strategy).__name__}",
            "expected a policyfuzz.search.strategies.Strategy",
        )
    return strategy


def make_fuzzer(
    strategy: str,
    target: Target | InputSpace,
    settings: SearchSettings | None = None,
    seed: int = 0,
    clock: TimeSplit | None = None,
) -> Fuzzer:
    """The fuzzer of the named `strategy` for the inputs of `target`, or for an input space alone."""
    recipe = find_strategy(strategy)
    settings, clock = settings or SearchSettings(), clock or TimeSplit()
    tactic = recipe.tactic(settings, clock)
    if isinstance(target, InputSpace):
        return Fuzzer(target, None, tactic, seed, clock)
    return Fuzzer(target.inputs, target.solvable, tactic, seed, clock)
