"""From a string to a target: built-in names with options, adapters, packages, or module:function."""

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from policyfuzz.core import forks, variables
from policyfuzz.core.code_files import absolute_name, code_digest, load_attribute
from policyfuzz.core.errors import (
    PolicyFuzzError,
    TargetCodeError,
    UsageError,
    blamed_on,
    forbid_copies,
    is_interrupt,
    unknown_name,
)
from policyfuzz.core.target import IN_MEMORY, MakeRunner, Runner, Target, check_options, joined, split_options

if TYPE_CHECKING:
    from policyfuzz.execution.executor import ExecutorChoice


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A target or an adapter that comes with the package; its module is imported only when it is used."""

    #: MODULE:FUNCTION, called with options and policy; of an adapter, with the name of the environment,
    #: options, policy, trust and make_runner.
    place: str
    summary: str
    options: Mapping[str, str]  #: option name to what it means
    extra: str = ""  #: of PolicyFuzz that it needs
    takes_any_policy: bool = False  #: then its function gets `trust` as well
    elsewhere: tuple[str, ...] = ()  #: options that name another machine

    def make(self, *arguments: Any) -> Target:
        """Call the function."""
        module, _, function = self.place.partition(":")
        target: Target = getattr(importlib.import_module(module), function)(*arguments)
        return target


BUILT_INS: Mapping[str, BuiltIn] = {
    "acasxu": BuiltIn(
        "policyfuzz.targets.acasxu.target:make_target",
        "aircraft collision avoidance by 45 supervised networks (ACAS Xu)",
        {
            "bucket": "time bucket of the networks, 1-9 (2)",
            "solvable": "a turn avoids the collision: lasting, or paper for within the episode (lasting)",
        },
    ),
    "coopnavi": BuiltIn(
        "policyfuzz.targets.coopnavi.target:make_target",
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
        "policyfuzz.targets.bipedal.target:make_target",
        "a two-legged robot on stumps, stairs and pits (BipedalWalkerHardcore, RL)",
        {"horizon": "steps of an episode, or full (300)"},
        extra="bipedal",
        takes_any_policy=True,
    ),
    "driving-rl": BuiltIn(
        "policyfuzz.targets.driving.target:make_rl_target",
        "a car in traffic, driven by a policy trained with PPO (MetaDrive, RL)",
        {"horizon": "steps of an episode (100)"},
        extra="metadrive",
    ),
    "driving-il": BuiltIn(
        "policyfuzz.targets.driving.target:make_il_target",
        "a car in traffic, driven by a cloned policy (MetaDrive, imitation)",
        {"horizon": "steps of an episode (200)"},
        extra="metadrive",
    ),
    "carla": BuiltIn(
        "policyfuzz.targets.carla.target:make_target",
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
        elsewhere=("host",),
    ),
    "ripple": BuiltIn(
        "policyfuzz.targets.ripple.target:make_target",
        "synthetic: flee from a wave; the crash region is known in closed form",
        {
            "dimensions": "of the input, 1 or more (4)",
            "regions": "disconnected crash regions (1)",
            "probability": "of each region under random sampling (0.001)",
        },
    ),
}


#: Whole kinds of environments, named KIND:ENVIRONMENT.
ADAPTERS: Mapping[str, BuiltIn] = {
    "gym": BuiltIn(
        "policyfuzz.environments.gymnasium:make_target",
        "gym:ENVIRONMENT, any Gymnasium environment, with --policy: gym:LunarLander-v3, gym:my_env.py:MyEnv",
        {
            "oracle": "what counts as a crash: terminated, return<100, info.collision (by environment)",
            "input": "bounds: theta=-0.1..0.1;x=0, seed, or a TOML or Python file (found out)",
            "bounds": "own, wide or a factor of what the environment's own reset draws (by environment)",
            "horizon": "steps of an episode (the environment's own limit)",
            "env.NAME": "arguments of the environment: env.enable_wind=true",
            "wrap": "wrappers, the innermost first: module:Class;module:Class",
            "fresh": "a new environment object for every episode: yes or no (no)",
            "infinite": "observations may be infinite: yes or no (no, such an episode is an error)",
            "render": "whether episodes can be filmed: yes or no (yes)",
            "patience": "seconds for one step of one environment (60)",
        },
    ),
    "pettingzoo": BuiltIn(
        "policyfuzz.environments.pettingzoo:make_target",
        "pettingzoo:MODULE, any PettingZoo parallel environment: pettingzoo:mpe2.simple_spread_v3",
        {
            "reward": "sum, mean or min over the agents, or the name of one (sum)",
            "oracle, input, bounds, horizon, env.NAME, wrap": "as for gym:",
            "fresh, infinite, render, patience": "as for gym:",
        },
        extra="pettingzoo",
    ),
}

#: Entry points of this group are targets of other packages: functions make_target(options, policy).
GROUP = "policyfuzz.targets"


def load_target(
    name: str, policy: Any = None, trust: bool = False, make_runner: MakeRunner = Runner
) -> Target:
    """The target called `name`, with the policy of this URI or with its own.

    A name is NAME or NAME:option=value,option=value for a target that comes with PolicyFuzz or another
    package, gym:ENVIRONMENT, pettingzoo:MODULE, module:function or FILE.py:function. In gym: and pettingzoo:
    a model or function of this process can act instead of a URI. `trust` allows a policy file that
    can run code while it is loaded. `make_runner` runs the few episodes that a default oracle is chosen from.
    """
    trust = is_trusted(trust)
    if isinstance(policy, str) and not policy.strip():
        raise UsageError(f"policy is {policy!r}", "name one, or give none to use the target's own")
    whole, options = split_options(name)
    base, _, rest = whole.partition(":")
    if base == IN_MEMORY and rest:
        raise UsageError(
            f"target {name} was made by a Python program, and exists only there",
            "replay its findings there with result.replay(1); to keep a target, put it into FILE.py:function",
        )
    if base in ADAPTERS and not rest:
        raise UsageError(f"target {name!r} names no environment", ADAPTERS[base].summary)
    if base in ADAPTERS:
        return ADAPTERS[base].make(rest, options, policy, trust, make_runner)
    if base in BUILT_INS:
        built_in = BUILT_INS[base]
        if rest:
            raise UsageError(f"cannot read {rest!r} in target {name}", f"write {base}:option=value")
        check_options(base, options, built_in.options)
        arguments = (options, policy, trust) if built_in.takes_any_policy else (options, policy)
        return built_in.make(*arguments)
    if rest:
        return _from_code(whole, options, policy)
    return _from_package(base, options, policy)


def is_trusted(trust: bool) -> bool:
    """True if the user trusts code that he did not name: by `trust`, or by `variables.TRUST`."""
    return trust or os.environ.get(variables.TRUST) == "1"


def load_for(
    executor: "ExecutorChoice",
    name: str,
    policy: str | None = None,
    trust: bool = False,
    *,
    will_check: bool = True,
) -> Target:
    """The target called `name`, as `load_target` gives it, to be run by `executor`.

    With workers, this process builds neither its simulator nor its policy. `will_check` says that its further
    checks will be asked for.
    """
    built_in = BUILT_INS.get(split_options(name)[0])
    is_ours = built_in is not None and not built_in.extra and policy is None
    if executor.is_inline or is_ours:
        return load_target(name, policy, trust, executor.make_runner)
    from policyfuzz.targets.isolated import load_isolated

    return load_isolated(executor, name, policy, trust, will_check=will_check)


def packaged() -> dict[str, EntryPoint]:
    """Targets that other packages bring, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _is_registered(name: str) -> bool:
    """True where gymnasium has an environment of this name."""
    import gymnasium

    return name in gymnasium.registry


def _from_package(base: str, options: dict[str, str], policy: str | None) -> Target:
    found = packaged()
    if base not in found and _is_registered(base):
        raise UsageError(f"unknown target {base!r}", hint=f"did you mean gym:{base}?")
    if base not in found:
        raise unknown_name("target", base, {*BUILT_INS, *(f"{name}:" for name in ADAPTERS), *found})
    with blamed_on(f"target {base}"):
        target = found[base].load()(options, policy)
    return _checked(base, target, joined(base, options))


def _from_code(place: str, options: dict[str, str], policy: str | None) -> Target:
    """The target that the user's own function makes; options are its keyword arguments, as text."""
    make = load_attribute(place, "target")
    if not callable(make):
        raise UsageError(f"{place} is a {type(make).__name__}, expected a function that returns a target")
    arguments = options if policy is None else {**options, "policy": policy}
    process = forks.this_process()
    try:
        target = make(**arguments)
    except PolicyFuzzError:
        raise
    except BaseException as error:  # whatever the user's own code raises
        forks.end_copy_of(process)
        if is_interrupt(error):
            raise
        hint = (
            f"a target is a function with a parameter for each of: {', '.join(arguments)}"
            if arguments
            else ""
        )
        raise TargetCodeError.of(f"target {place}", error, hint) from error
    forbid_copies(process, f"target {place}")
    made = _checked(place, target, joined(absolute_name(place), options))
    return replace(made, code_sha256=made.code_sha256 or code_digest([absolute_name(place)]))


def _checked(name: str, target: object, rebuilt_by: str) -> Target:
    if not isinstance(target, Target):
        raise UsageError(f"{name} returned {type(target).__name__}, expected policyfuzz.Target")
    return replace(target, name=rebuilt_by)
