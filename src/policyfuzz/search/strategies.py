"""Strategies: named recipes of the same parts.

A package adds one of its own by an entry point of the group `policyfuzz.strategies`: its name is that of the
strategy, and its object a `Strategy`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from policyfuzz.core.errors import UsageError, blamed_on, unknown_name
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.settings import SearchSettings
from policyfuzz.core.target import Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.algorithm import RandomTactic, Tactic
from policyfuzz.search.fuzzer import Fuzzer
from policyfuzz.search.mdpfuzz import EnergyTactic, FreshnessGuide, ReturnGuide
from policyfuzz.search.portfolio import SAMPLES, PortfolioTactic


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
