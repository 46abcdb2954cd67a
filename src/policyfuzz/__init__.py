"""PolicyFuzz: blackbox fuzz testing for trained policies.

What is listed in `__all__` is the public interface; each name is imported when it is first used, so
that `import policyfuzz` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policyfuzz.campaign.budget import Budget
    from policyfuzz.campaign.config import CampaignConfig
    from policyfuzz.campaign.engine import Campaign
    from policyfuzz.campaign.reader import CampaignReader
    from policyfuzz.campaign.writer import CampaignWriter
    from policyfuzz.errors import PolicyFuzzError
    from policyfuzz.inputs import Angle, Choice, InputSpace, Integer, Real
    from policyfuzz.oracles import Below
    from policyfuzz.rollout import Executions, rollout
    from policyfuzz.search.fuzzer import Fuzzer
    from policyfuzz.search.strategies import SearchSettings, make_fuzzer
    from policyfuzz.simulators.protocol import Frame
    from policyfuzz.target import Runner, Target
    from policyfuzz.targets.registry import load_target

_HOME = {
    "Angle": "inputs",
    "Below": "oracles",
    "Budget": "campaign.budget",
    "Campaign": "campaign.engine",
    "CampaignConfig": "campaign.config",
    "CampaignReader": "campaign.reader",
    "CampaignWriter": "campaign.writer",
    "Choice": "inputs",
    "Executions": "rollout",
    "Frame": "simulators.protocol",
    "Fuzzer": "search.fuzzer",
    "InputSpace": "inputs",
    "Integer": "inputs",
    "PolicyFuzzError": "errors",
    "Real": "inputs",
    "Runner": "target",
    "SearchSettings": "search.strategies",
    "Target": "target",
    "load_target": "targets.registry",
    "make_fuzzer": "search.strategies",
    "rollout": "rollout",
}

__all__ = [
    "Angle",
    "Below",
    "Budget",
    "Campaign",
    "CampaignConfig",
    "CampaignReader",
    "CampaignWriter",
    "Choice",
    "Executions",
    "Frame",
    "Fuzzer",
    "InputSpace",
    "Integer",
    "PolicyFuzzError",
    "Real",
    "Runner",
    "SearchSettings",
    "Target",
    "load_target",
    "make_fuzzer",
    "rollout",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'policyfuzz' has no attribute {name!r}")
    return getattr(import_module(f"policyfuzz.{_HOME[name]}"), name)
