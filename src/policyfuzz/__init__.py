"""PolicyFuzz: blackbox fuzz testing for trained policies.

What is listed in `__all__` is the public interface; each name is imported when it is first used, so
that `import policyfuzz` stays cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policyfuzz.api.checking import check
    from policyfuzz.api.fuzzing import fuzz
    from policyfuzz.api.listening import Stop
    from policyfuzz.api.results import Result, open_result
    from policyfuzz.api.subjects import as_target
    from policyfuzz.campaign.budget import Budget
    from policyfuzz.campaign.config import CampaignConfig
    from policyfuzz.campaign.engine import Campaign
    from policyfuzz.campaign.events import BatchDone, Examined, Exchanged, Started, Stopped, Waiting
    from policyfuzz.campaign.reader import CampaignReader
    from policyfuzz.campaign.writer import CampaignWriter
    from policyfuzz.diagnosis import Diagnosis
    from policyfuzz.errors import PolicyFuzzError, UnhealthyTarget
    from policyfuzz.executions import Executions
    from policyfuzz.inputs import Angle, Choice, InputSpace, Integer, Real, Seed
    from policyfuzz.oracles import Below
    from policyfuzz.policies.loaded import Spaces
    from policyfuzz.policies.plain_function import EachAlone, FunctionPolicy
    from policyfuzz.policies.uri import load_policy
    from policyfuzz.rollout import rollout
    from policyfuzz.search.fuzzer import Fuzzer
    from policyfuzz.search.strategies import SearchSettings, Strategy, make_fuzzer
    from policyfuzz.simulators.one_at_a_time import OneAtATime
    from policyfuzz.simulators.protocol import Frame
    from policyfuzz.target import Runner, Target
    from policyfuzz.targets.registry import load_target

_HOME = {
    "Angle": "inputs",
    "BatchDone": "campaign.events",
    "Below": "oracles",
    "Budget": "campaign.budget",
    "Campaign": "campaign.engine",
    "CampaignConfig": "campaign.config",
    "CampaignReader": "campaign.reader",
    "CampaignWriter": "campaign.writer",
    "Choice": "inputs",
    "Diagnosis": "diagnosis",
    "EachAlone": "policies.plain_function",
    "Examined": "campaign.events",
    "Exchanged": "campaign.events",
    "Executions": "executions",
    "Frame": "simulators.protocol",
    "FunctionPolicy": "policies.plain_function",
    "Fuzzer": "search.fuzzer",
    "InputSpace": "inputs",
    "Integer": "inputs",
    "OneAtATime": "simulators.one_at_a_time",
    "PolicyFuzzError": "errors",
    "Real": "inputs",
    "Result": "api.results",
    "Runner": "target",
    "SearchSettings": "search.strategies",
    "Seed": "inputs",
    "Spaces": "policies.loaded",
    "Started": "campaign.events",
    "Stop": "api.listening",
    "Stopped": "campaign.events",
    "Strategy": "search.strategies",
    "Target": "target",
    "UnhealthyTarget": "errors",
    "Waiting": "campaign.events",
    "as_target": "api.subjects",
    "check": "api.checking",
    "fuzz": "api.fuzzing",
    "load_policy": "policies.uri",
    "load_target": "targets.registry",
    "make_fuzzer": "search.strategies",
    "open_result": "api.results",
    "rollout": "rollout",
}

__all__ = [
    "Angle",
    "BatchDone",
    "Below",
    "Budget",
    "Campaign",
    "CampaignConfig",
    "CampaignReader",
    "CampaignWriter",
    "Choice",
    "Diagnosis",
    "EachAlone",
    "Examined",
    "Exchanged",
    "Executions",
    "Frame",
    "FunctionPolicy",
    "Fuzzer",
    "InputSpace",
    "Integer",
    "OneAtATime",
    "PolicyFuzzError",
    "Real",
    "Result",
    "Runner",
    "SearchSettings",
    "Seed",
    "Spaces",
    "Started",
    "Stop",
    "Stopped",
    "Strategy",
    "Target",
    "UnhealthyTarget",
    "Waiting",
    "as_target",
    "check",
    "fuzz",
    "load_policy",
    "load_target",
    "make_fuzzer",
    "open_result",
    "rollout",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'policyfuzz' has no attribute {name!r}")
    return getattr(import_module(f"policyfuzz.{_HOME[name]}"), name)
