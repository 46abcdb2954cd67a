"""Strategies: named recipes of the same parts."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from policyfuzz.density.sequence import DensitySettings
from policyfuzz.errors import UsageError, unknown_name
from policyfuzz.inputs import InputSpace
from policyfuzz.search.fuzzer import Fuzzer, Parts
from policyfuzz.search.guides import FreshnessGuide, FreshnessSettings, Guide, ReturnGuide
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
    """A recipe: which guides it has, made afresh for every fuzzer."""

    summary: str
    guides: Callable[[SearchSettings, TimeSplit], tuple[Guide, ...]]
    explored_share: float = 0.0  #: of every batch after the first samples that is sampled, not changed


def _return_and_freshness(settings: SearchSettings, clock: TimeSplit) -> tuple[Guide, ...]:
    return ReturnGuide(), FreshnessGuide(settings.density, settings.freshness, clock)


STRATEGIES: Mapping[str, Strategy] = {
    "mixed": Strategy("half mdpfuzz, half random", _return_and_freshness, explored_share=0.5),
    "mdpfuzz": Strategy(
        "the paper's: small noise by energy; keeps what earns less or shows a fresh state sequence",
        _return_and_freshness,
    ),
    "reward": Strategy("as mdpfuzz, without freshness", lambda _settings, _clock: (ReturnGuide(),)),
    "random": Strategy("samples only; nothing is learnt", lambda _settings, _clock: ()),
}
DEFAULT_STRATEGY = "mixed"


def make_fuzzer(
    strategy: str,
    target: Target,
    settings: SearchSettings | None = None,
    seed: int = 0,
    clock: TimeSplit | None = None,
) -> Fuzzer:
    """The fuzzer of the named `strategy` for the inputs of `target`."""
    if strategy not in STRATEGIES:
        raise unknown_name("strategy", strategy, STRATEGIES)
    settings, clock = settings or SearchSettings(), clock or TimeSplit()
    parts = Parts(
        guides=STRATEGIES[strategy].guides(settings, clock),
        samples=settings.samples,
        probes_mutants=settings.sensitivity == "exact",
        explored_share=STRATEGIES[strategy].explored_share,
    )
    space: InputSpace = target.inputs
    return Fuzzer(space, target.solvable, parts, seed, clock)
