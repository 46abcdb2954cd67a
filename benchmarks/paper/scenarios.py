"""The five scenarios of the paper, and how much of each is run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.table import PUBLISHED
from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.target import Target
from policyfuzz.targets.registry import load_target

#: Strategies that take part: the paper's method with and without freshness, as its code has it; then by its
#: pseudocode with sound numbers, the default of PolicyFuzz, and plain sampling.
STRATEGIES = ("mdpfuzz-published", "reward-published", "mdpfuzz", "default", "random")
#: Behind the name of a scenario that is run with the networks of the paper.
PUBLIC = "-public"


@dataclass(frozen=True, slots=True)
class Size:
    """How much of one scenario is run."""

    episodes: int  #: of each campaign
    replaced: int  #: normal episodes in which decisions are replaced

    @property
    def looked_at(self) -> int:
        """Episodes of each class whose activations are read, for pictures and detectors."""
        return min(max(self.episodes // 10, 20), 400)

    def at_most(self, episodes: int) -> "Size":
        """The same with campaigns of so many `episodes`, and nothing else larger than that."""
        return Size(episodes, min(self.replaced, episodes))


#: By the name of a scenario. The full ones have as many episodes as twelve hours had mutations in the paper.
SMALL: Mapping[str, Size] = {
    "acasxu": Size(10_000, 500),
    "coopnavi": Size(10_000, 500),
    "bipedal": Size(640, 100),
    "driving-rl": Size(32, 10),
    "driving-il": Size(32, 10),
}
FULL: Mapping[str, Size] = {
    name: Size(PUBLISHED[name].mutations, replaced)
    for name, replaced in {
        "acasxu": 1000,
        "coopnavi": 1000,
        "bipedal": 300,
        "driving-rl": 200,
        "driving-il": 200,
    }.items()
}
BUDGETS: Mapping[str, Mapping[str, Size]] = {"small": SMALL, "full": FULL}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One model of the paper, as it is run here."""

    name: str  #: of the target
    budget: str  #: small, full, or episodes-N
    size: Size
    policy: str | None = None  #: URI, None for our own model

    @property
    def label(self) -> str:
        """Name for readers and folders."""
        return self.name if self.policy is None else self.name + PUBLIC

    def folder(self, out: Path) -> Path:
        """Where its results lie."""
        return out / self.budget / self.label

    def load(self) -> Target:
        """The target with its model; MissingExtra where it cannot run."""
        return load_target(self.name, self.policy)


def choose(
    names: tuple[str, ...], budget: str, episodes: int | None, public_networks: Path | None
) -> list[Scenario]:
    """The scenarios called `names`, all by default, with the sizes of `budget` or so many `episodes`."""
    for name in names:
        if name not in PUBLISHED:
            raise unknown_name("scenario of the paper", name, PUBLISHED)
    if episodes is not None and episodes < 10:
        raise UsageError(f"episodes is {episodes}, expected 10 or more")
    chosen = []
    for name in names or PUBLISHED:
        scenario = Scenario(name, budget, BUDGETS[budget][name])
        if episodes is not None:
            scenario = replace(scenario, budget=f"episodes-{episodes}", size=scenario.size.at_most(episodes))
        if name == "acasxu" and public_networks is not None:
            scenario = replace(scenario, policy=f"acasxu:{public_networks.expanduser().resolve()}")
        chosen.append(scenario)
    return chosen


def base_name(label: str) -> str:
    """The scenario of the paper that `label` is one of."""
    return label.removesuffix(PUBLIC)
