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
    from policyfuzz.campaign.engine import Campaign
    from policyfuzz.campaign.events import BatchDone, Examined, Exchanged, Started, Stopped, Waiting
    from policyfuzz.core.errors import PolicyFuzzError, UnhealthyTarget
    from policyfuzz.core.executions import Executions
    from policyfuzz.core.inputs import Angle, Choice, InputSpace, Integer, Real, Seed
    from policyfuzz.core.interfaces import Frame
    from policyfuzz.core.rollout import rollout
    from policyfuzz.core.settings import CampaignConfig, SearchSettings
    from policyfuzz.core.target import Diagnosis, Runner, Target
    from policyfuzz.environments.one_at_a_time import OneAtATime
    from policyfuzz.oracles import Below
    from policyfuzz.policies.loaded import Spaces
    from policyfuzz.policies.python_calls import EachAlone, FunctionPolicy
    from policyfuzz.policies.uri import load_policy
    from policyfuzz.search.fuzzer import Fuzzer
    from policyfuzz.search.strategies import Strategy, make_fuzzer
    from policyfuzz.store.reader import CampaignReader
    from policyfuzz.store.writer import CampaignWriter
    from policyfuzz.targets.registry import load_target

_HOME = {
    "Angle": "core.inputs",
    "BatchDone": "campaign.events",
    "Below": "oracles",
    "Budget": "campaign.budget",
    "Campaign": "campaign.engine",
    "CampaignConfig": "core.settings",
    "CampaignReader": "store.reader",
    "CampaignWriter": "store.writer",
    "Choice": "core.inputs",
    "Diagnosis": "core.target",
    "EachAlone": "policies.python_calls",
    "Examined": "campaign.events",
    "Exchanged": "campaign.events",
    "Executions": "core.executions",
    "Frame": "core.interfaces",
    "FunctionPolicy": "policies.python_calls",
    "Fuzzer": "search.fuzzer",
    "InputSpace": "core.inputs",
    "Integer": "core.inputs",
    "OneAtATime": "environments.one_at_a_time",
    "PolicyFuzzError": "core.errors",
    "Real": "core.inputs",
    "Result": "api.results",
    "Runner": "core.target",
    "SearchSettings": "core.settings",
    "Seed": "core.inputs",
    "Spaces": "policies.loaded",
    "Started": "campaign.events",
    "Stop": "api.listening",
    "Stopped": "campaign.events",
    "Strategy": "search.strategies",
    "Target": "core.target",
    "UnhealthyTarget": "core.errors",
    "Waiting": "campaign.events",
    "as_target": "api.subjects",
    "check": "api.checking",
    "fuzz": "api.fuzzing",
    "load_policy": "policies.uri",
    "load_target": "targets.registry",
    "make_fuzzer": "search.strategies",
    "open_result": "api.results",
    "rollout": "core.rollout",
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
