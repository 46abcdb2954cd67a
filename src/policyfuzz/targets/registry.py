"""From a string to a target: built-in names with options, or module:function."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from policyfuzz.errors import PolicyFuzzError, TargetCodeError, UsageError, unknown_name
from policyfuzz.target import Target


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A target that comes with the package; its module is imported only when it is used."""

    module: str  #: holds make_target(options, policy)
    summary: str
    options: Mapping[str, str]  #: option name to what it means
    extra: str = ""  #: of PolicyFuzz that it needs


BUILT_INS: Mapping[str, BuiltIn] = {
    "acasxu": BuiltIn(
        "policyfuzz.targets.acasxu.target",
        "aircraft collision avoidance by 45 supervised networks (ACAS Xu)",
        {"bucket": "time bucket of the networks, 1-9 (2)"},
    ),
    "coopnavi": BuiltIn(
        "policyfuzz.targets.coopnavi.target",
        "three agents cover three landmarks without colliding (MADDPG, multi-agent RL)",
        {
            "collisions": "colliding pair-steps that are still no crash, 0 or more (5)",
            "finish": "what a finished team gets for its collisions: excuses, ends or ignored (excuses)",
            "horizon": "steps of an episode, 25 or more (100)",
            "landmarks": "are changed by mutation: yes, or fixed as in the paper (yes)",
            "starts": "that are run: solvable, or all that are valid (solvable)",
        },
    ),
    "bipedal": BuiltIn(
        "policyfuzz.targets.bipedal.target",
        "a two-legged robot on stumps, stairs and pits (BipedalWalkerHardcore, RL)",
        {"horizon": "steps of an episode, or full (300)"},
        extra="bipedal",
    ),
    "driving-rl": BuiltIn(
        "policyfuzz.targets.driving.target_rl",
        "a car in traffic, driven by a policy trained with PPO (MetaDrive, RL)",
        {"horizon": "steps of an episode (100)"},
        extra="metadrive",
    ),
    "driving-il": BuiltIn(
        "policyfuzz.targets.driving.target_il",
        "a car in traffic, driven by a cloned policy (MetaDrive, imitation)",
        {"horizon": "steps of an episode (200)"},
        extra="metadrive",
    ),
    "carla": BuiltIn(
        "policyfuzz.targets.carla.target",
        "a car in traffic on a CARLA server of yours, driven by your policy",
        {
            "host": "of the server (localhost)",
            "port": "of the server (2000)",
            "town": "is loaded if another one is open (Town02)",
            "map": "OpenDRIVE file of the town; without it the server is asked",
            "vehicles": "beside the ego vehicle, 0-300 (20)",
            "horizon": "steps of an episode (100)",
            "timeout": "seconds for an answer of the server (10)",
            "camera": "WIDTHxHEIGHT of a camera for the policy and for films (none)",
            "reload": "the town before every episode: yes or no (yes)",
            "traffic_port": "of the traffic manager (8000)",
        },
        extra="carla",
    ),
    "ripple": BuiltIn(
        "policyfuzz.targets.ripple.target",
        "synthetic: flee from a wave; the crash region is known in closed form",
        {
            "dimensions": "of the input, 1 or more (4)",
            "regions": "disconnected crash regions (1)",
            "probability": "of each region under random sampling (0.001)",
        },
    ),
}


def load_target(name: str, policy: str | None = None) -> Target:
    """The target called `name`: NAME, NAME:option=value,option=value, or module:function."""
    base, _, rest = name.partition(":")
    if base in BUILT_INS:
        built_in = BUILT_INS[base]
        options = _parse_options(base, rest, built_in.options)
        target: Target = importlib.import_module(built_in.module).make_target(options, policy)
        return target
    if rest.isidentifier():
        return _from_module(name, base, rest, policy)
    raise unknown_name("target", name, BUILT_INS)


def _from_module(name: str, module: str, function: str, policy: str | None) -> Target:
    """The target that the user's own `function` in `module` makes."""
    make = _attribute(name, module, function)
    try:
        target = make() if policy is None else make(policy=policy)
    except PolicyFuzzError:
        raise
    except Exception as error:  # whatever the user's own code raises
        hint = "a target that takes --policy is a function with a parameter called policy" if policy else ""
        raise TargetCodeError.of(f"target {name}", error, hint) from error
    if not isinstance(target, Target):
        raise UsageError(f"{name} returned {type(target).__name__}, expected policyfuzz.Target")
    return replace(target, name=name)  # the name must rebuild it


def _attribute(name: str, module: str, function: str) -> Callable[..., object]:
    """The `function` in `module`, both the user's own."""
    try:
        found = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.split(".")[0]):
            raise TargetCodeError.of(f"target {name}", error) from error
        hint = unknown_name("target", module, BUILT_INS).hint
        raise UsageError(
            f"no module {module!r} for target {name!r}",
            f"is it in this folder or on PYTHONPATH? Built in: {hint}",
        ) from error
    except AttributeError as error:
        raise UsageError(f"module {module!r} has no {function!r}, asked for by target {name!r}") from error
    except Exception as error:  # whatever the user's own module raises
        raise TargetCodeError.of(f"target {name}", error) from error
    if not callable(found):
        raise UsageError(f"{name} is a {type(found).__name__}, expected a function that returns a target")
    return found  # type: ignore[no-any-return]


def _parse_options(base: str, text: str, known: Mapping[str, str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"cannot read {item!r} in target {base}:{text}", f"write {base}:option=value")
        if key not in known:
            raise unknown_name(f"option of target {base}", key, known)
        options[key] = value
    return options
