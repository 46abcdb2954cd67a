"""The repair of ACAS Xu (RQ4): fine-tuned on what a campaign found, then fuzzed again as in the paper."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.paper import campaigns
from benchmarks.paper.results import Identity
from benchmarks.paper.scenarios import Scenario
from policyfuzz.api.repair import repair as repair_policy
from policyfuzz.core.target import Target
from policyfuzz.repairing.files import policy_file
from policyfuzz.store.reader import CampaignReader
from policyfuzz.targets.registry import load_target

#: Folders of the package that decide what a repair gives.
CODE = ("repairing", *campaigns.CODE)
#: The paper repairs this model alone.
REPAIRED = "acasxu"
#: The search whose crashes are learnt from, and the one by which both policies are fuzzed.
LEARNT_FROM, FUZZED_BY = "default", "mdpfuzz-published"
NEEDED = (LEARNT_FROM, FUZZED_BY)
#: Random cases that judge a repair, and episodes of each campaign that does, at most.
_MOST_CASES, _MOST_EPISODES = 20_000, 20_000
#: Episodes of all rounds of a repair, at least.
_FEWEST_EPISODES = 300


def can_repair() -> bool:
    """True if the extra is installed that a repair needs."""
    return find_spec("torch") is not None


def repair(
    scenario: Scenario, target: Target, out: Path, identity: Identity
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Repair the policy, and count crashes of the paper's method before and after."""
    file = policy_file(target)
    folder = scenario.folder(out) / "repair"
    campaigns.is_begun(folder, identity)  # a repair goes on by itself, but not with what was begun otherwise
    new = folder / f"policy{file.suffix}"
    episodes = min(scenario.size.episodes, _MOST_EPISODES)
    result = repair_policy(
        campaigns.folder_of(scenario, out, LEARNT_FROM, 0),
        new,
        budget=max(scenario.size.episodes, _FEWEST_EPISODES),
        pool=min(2 * scenario.size.episodes, _MOST_CASES),
        episodes=episodes,
        seeds=1,
    )
    found: dict[str, Any] = {"before": _crashes(campaigns.folder_of(scenario, out, FUZZED_BY, 0))}
    if result.verdict is None:
        return found | {"refused": "no candidate was better than the policy as it is"}, {}
    again = campaigns.folder_of(scenario, out, f"repaired-{FUZZED_BY}", 0)
    fuzzed, _ = campaigns.run_campaign(
        scenario, load_target(scenario.name, file.uri(new)), FUZZED_BY, again, identity
    )
    tests = [f"{'passed' if one.holds else 'failed'}: {one.text}" for one in result.verdict.all_lines]
    return found | {"after": fuzzed["crashes"], "holds": result.holds, "tests": tests}, {}


def _crashes(folder: Path) -> int:
    reader = CampaignReader(folder)
    try:
        return reader.progress().findings
    finally:
        reader.close()
