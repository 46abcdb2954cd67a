"""The parts that a scenario consists of, each with the code that decides its numbers and what runs it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.paper import campaigns, freshness_cost, looks, repaired
from benchmarks.paper.results import CAMPAIGN, Identity, code_digest
from benchmarks.paper.scenarios import STRATEGIES, Scenario
from benchmarks.versus.rules import Rules
from policyfuzz.analysis.inconsistent import replace_decisions
from policyfuzz.core.target import Runner, Target

#: What was found, and what it cost: plain data both.
Outcome = tuple[dict[str, Any], dict[str, Any]]
#: The label of what is measured once and for no scenario.
GENERAL = "general"


#: Kinds of parts of a scenario.
KINDS = ("campaign", "inconsistent", "coverage", "activations", "detector", "repair")
#: Folders of the package that decide the numbers of a part, by its name; of others, those of a campaign.
_CODE = {
    "freshness-cost": freshness_cost.CODE,
    "inconsistent": ("core",),
    "coverage": looks.CODE,
    "activations": looks.CODE,
    "detector": looks.CODE,
    "repair": repaired.CODE,
}


def code_of(part: str) -> str:
    """Digest of the code that decides the numbers of the part called `part`, as it is now."""
    return code_digest(_CODE.get(part, campaigns.CODE))


@dataclass(frozen=True, slots=True)
class Part:
    """One piece of work with one result file."""

    identity: Identity
    file: Path
    run: Callable[[], Outcome]
    needs: frozenset[Path] = frozenset()  #: files of parts that must be done before

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return "campaign" if self.is_campaign else self.identity.part

    @property
    def is_campaign(self) -> bool:
        """True if other parts may look at what it does."""
        return self.identity.part.startswith(CAMPAIGN)


def general_part(out: Path) -> Part:
    """The cost of freshness, which no scenario decides."""
    identity = Identity("freshness-cost", GENERAL, GENERAL, {}, 0, "", "", code_of("freshness-cost"))
    return Part(identity, out / GENERAL / GENERAL / "freshness-cost.json", freshness_cost.measure)


def parts_of(scenario: Scenario, target: Target, out: Path, seeds: int) -> Iterator[Part]:
    """Everything that is run for `scenario`; what reads campaigns comes after these.

    The repair takes longest, so it comes as soon as it can.
    """
    rules = Rules.of(target).sha256

    def file_of(name: str, seed: int) -> Path:
        return scenario.folder(out) / f"{name}-{seed}.json"

    def part(
        name: str, seed: int, run: Callable[[Identity], Outcome], strategies: Iterable[str] = ()
    ) -> Part:
        identity = Identity(
            name,
            scenario.label,
            scenario.budget,
            asdict(scenario.size),
            seed,
            target.policy_sha256,
            rules,
            code_of(name),
        )
        needs = frozenset(file_of(CAMPAIGN + one, 0) for one in strategies)
        return Part(identity, file_of(name, seed), lambda: run(identity), needs)

    def campaign(strategy: str, seed: int) -> Part:
        folder = campaigns.folder_of(scenario, out, strategy, seed)
        return part(
            CAMPAIGN + strategy,
            seed,
            lambda identity: campaigns.run_campaign(scenario, target, strategy, folder, identity),
        )

    needed = [one for one in STRATEGIES if one in repaired.NEEDED]
    yield from (campaign(one, 0) for one in needed)
    if scenario.name == repaired.REPAIRED and repaired.can_repair():
        yield part("repair", 0, partial(repaired.repair, scenario, target, out), repaired.NEEDED)
    for seed in range(seeds):
        yield from (campaign(one, seed) for one in STRATEGIES if seed or one not in needed)
    yield part("inconsistent", 0, lambda _identity: _inconsistent(scenario, target))
    for name, look in _LOOKS.items():
        yield part(name, 0, partial(_look, look, scenario, target, out), STRATEGIES)


#: What is looked at in finished campaigns, by the name of the part.
_LOOKS: Mapping[str, Callable[[Scenario, Target, Path], Outcome]] = {
    "coverage": looks.coverage,
    "activations": looks.activations,
    "detector": looks.detector,
}


def _look(
    look: Callable[[Scenario, Target, Path], Outcome],
    scenario: Scenario,
    target: Target,
    out: Path,
    _identity: Identity,
) -> Outcome:
    return look(scenario, target, out)


def _inconsistent(scenario: Scenario, target: Target) -> Outcome:
    """Crashes of normal episodes in which decisions are replaced (the paper's table 1)."""
    found = replace_decisions(target, Runner(target), scenario.size.replaced)
    return {"episodes": found.episodes, "shares": [asdict(one) for one in found.shares]}, {}
