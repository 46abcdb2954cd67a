"""Strategies: named search algorithms.

A package adds one by an entry point of the group `policyfuzz.strategies`: the entry has the name of the
strategy, and its object is a `Strategy`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

from policyfuzz.core.errors import UsageError, blamed_on, unknown_name
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.settings import DISTINCT_RADIUS, SearchSettings
from policyfuzz.core.target import Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.algorithm import RandomSearch, SearchAlgorithm
from policyfuzz.search.fuzzer import Fuzzer
from policyfuzz.search.guides import FreshnessGuide, Guide, PublishedFreshnessGuide, ReturnGuide
from policyfuzz.search.mdpfuzz import EnergySearch
from policyfuzz.search.parent_pool import ParentPool
from policyfuzz.search.portfolio import SAMPLES, PortfolioSearch
from policyfuzz.search.published import published_settings


@dataclass(frozen=True, slots=True)
class Strategy:
    """A search algorithm by name."""

    summary: str
    algorithm: Callable[[SearchSettings, TimeSplit], SearchAlgorithm]  #: makes a new one for every fuzzer
    #: Default settings by the name of a target, from those of all strategies.
    defaults: Callable[[SearchSettings, str], SearchSettings] = lambda settings, _target: settings


def _portfolio(settings: SearchSettings, _clock: TimeSplit) -> SearchAlgorithm:
    return PortfolioSearch(min(settings.samples, SAMPLES))


def _mdpfuzz(settings: SearchSettings, clock: TimeSplit) -> SearchAlgorithm:
    guides = ReturnGuide(), FreshnessGuide(settings.density, settings.freshness, clock)
    return EnergySearch(guides, settings.samples, settings.sensitivity == "exact")


def _reward(settings: SearchSettings, _clock: TimeSplit) -> SearchAlgorithm:
    return EnergySearch((ReturnGuide(),), settings.samples, settings.sensitivity == "exact")


def _mdpfuzz_published(settings: SearchSettings, clock: TimeSplit) -> SearchAlgorithm:
    learnt_below, threshold = settings.published.learnt_below, settings.freshness.threshold
    kept_below = learnt_below if threshold is None else threshold
    freshness = PublishedFreshnessGuide(kept_below, learnt_below, settings.density, clock)
    return _published((ReturnGuide(), freshness), settings)


def _reward_published(settings: SearchSettings, _clock: TimeSplit) -> SearchAlgorithm:
    return _published((ReturnGuide(),), settings)


def _published(guides: tuple[Guide, ...], settings: SearchSettings) -> SearchAlgorithm:
    return EnergySearch(
        guides,
        settings.samples,
        settings.sensitivity == "exact",
        energy_per_distance=False,
        keeps_crashed_samples=settings.published.crashed_samples,
        pool=ParentPool(settings.published.children),
        refills=settings.published.when_empty == "refill",
    )


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
    "mdpfuzz-published": Strategy(
        "as the paper's code does it: seeds that run out, two mixtures, its constants for each target",
        _mdpfuzz_published,
        published_settings,
    ),
    "reward-published": Strategy(
        "as mdpfuzz-published, without freshness", _reward_published, published_settings
    ),
    "random": Strategy("samples only; nothing is learnt", lambda _settings, _clock: RandomSearch()),
}
GROUP = "policyfuzz.strategies"


def strategy_names() -> tuple[str, ...]:
    """The built-in strategies, then those of installed packages."""
    return tuple(dict.fromkeys([*STRATEGIES, *sorted(entry.name for entry in entry_points(group=GROUP))]))


def find_strategy(name: str) -> Strategy:
    """The strategy called `name`; a built-in one hides a packaged one of the same name."""
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
    radius: float = DISTINCT_RADIUS,
) -> Fuzzer:
    """A fuzzer with the named `strategy` for the inputs of `target`, or for an input space alone.

    Without `settings` it has the defaults of the strategy for the target. Findings within `radius` of each
    other are alike: a root mean square per dimension of the unit cube.
    """
    found, clock = find_strategy(strategy), clock or TimeSplit()
    name = "" if isinstance(target, InputSpace) else target.name
    algorithm = found.algorithm(settings or found.defaults(SearchSettings(), name), clock)
    if isinstance(target, InputSpace):
        return Fuzzer(target, None, algorithm, seed, clock, radius)
    return Fuzzer(target.inputs, target.solvable, algorithm, seed, clock, radius)
