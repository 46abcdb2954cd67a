"""Which code a recorded name runs, and the refusal to run it unasked.

A campaign file may come from a stranger, and it names its target and its policy. Everything that loads such a
name asks `require_trust` first. What you name yourself, on the command line or in a Python call, is not asked
about: naming it asks for it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.target import IN_MEMORY, split_options
from policyfuzz.policies.uri import is_data
from policyfuzz.targets.registry import ADAPTERS, BUILT_INS, is_trusted

_GYMNASIUM = """
Acrobot Ant BipedalWalker BipedalWalkerHardcore Blackjack CarRacing CartPole CliffWalking CliffWalkingSlippery
FrozenLake FrozenLake8x8 HalfCheetah Hopper Humanoid HumanoidStandup InvertedDoublePendulum InvertedPendulum
LunarLander LunarLanderContinuous MountainCar MountainCarContinuous Pendulum Pusher Reacher Swimmer Taxi
Walker2d phys2d/CartPole phys2d/Pendulum tabular/Blackjack tabular/CliffWalking
"""
#: Environments whose arguments (env.NAME) are numbers, words and files of data, without their version:
#: those of Gymnasium, except GymV21Environment and GymV26Environment, whose arguments name other modules.
KNOWN_ENVIRONMENTS = frozenset(_GYMNASIUM.split())
#: First letters of environments of other packages, of which the same is true.
_KNOWN_FAMILIES = ("MiniGrid-", "BabyAI-", "ALE/")
_VERSION = re.compile(r"-v\d+")
#: Modules of PettingZoo, or FAMILY/NAME in its registry.
_KNOWN_MODULE = re.compile(r"(?:pettingzoo|mpe2)(?:\.\w+)*|\w+/[\w-]+", re.ASCII)
#: Wrappers that get an environment and nothing else.
_KNOWN_WRAPPER = re.compile(r"(?:gymnasium|minigrid)\.wrappers:[A-Z]\w*", re.ASCII)
#: Schemes that built-in targets read themselves, all of them as data: driving-rl takes driving:FILE.
_OWN_SCHEMES = frozenset(name.partition("-")[0] for name in BUILT_INS)
#: Policies that come with built-in targets, as data.
_OWN_POLICIES = frozenset({"repaired"})
#: The agents that one of several policies is for.
_FOR_AGENTS = re.compile(r"[^:=?]+=")


@dataclass(frozen=True, slots=True)
class NamedCode:
    """Code that a name runs when it is loaded."""

    place: str  #: MODULE:NAME, a file, or the text that names it
    role: str  #: what it does there, after the place: "makes the target"

    def __str__(self) -> str:
        return f"{self.place!r} {self.role}"  # quoted: a stranger wrote it


def require_trust(whose: str, target: str | None, policy: str | None, trust: bool) -> None:
    """Raise if loading the `target` and `policy` that `whose` file names would run code, unless `trust`.

    None stands for what the user has named himself, and for no policy.
    """
    code = [] if is_trusted(trust) else named_code(target, policy)
    if code:
        lines = "".join(f"\n  {one}" for one in code)
        options = " and ".join(name for name, text in (("--target", target), ("--policy", policy)) if text)
        raise CampaignError(
            f"{whose} names code to run, and you have not named it yourself:{lines}",
            "look at that code first; to run it, add --trust (trust=True in Python), or name it yourself with"
            f" {options}",
        )


def named_code(target: str | None, policy: str | None) -> list[NamedCode]:
    """All code but that of installed packages which is run when `target` is loaded with `policy`.

    Nothing is imported, and no file that they name is opened. What cannot be judged counts as code.
    """
    try:
        return [*_of_target(target), *_of_policy(policy)]
    except UsageError:  # it cannot be taken apart
        return [NamedCode(str(target), "cannot be judged")]


def _of_target(name: str | None) -> Iterator[NamedCode]:
    if name is None:
        return
    whole, options = split_options(name)
    base, _, rest = whole.partition(":")
    if base in ADAPTERS:
        yield from _of_environment(base, rest, options)
    elif base in BUILT_INS:
        for option in BUILT_INS[base].elsewhere:
            if option in options:
                yield NamedCode(options[option], f"is the {option} that {base} connects to")
    elif rest and base != IN_MEMORY:  # loading the latter always fails
        yield NamedCode(whole, f"makes the target {name!r}")


def _of_environment(kind: str, name: str, options: dict[str, str]) -> Iterator[NamedCode]:
    arguments = [option for option in options if option.startswith("env.")]
    if kind == "gym":
        is_known = ":" not in name and (not arguments or _takes_data(name))
    else:
        is_known = _KNOWN_MODULE.fullmatch(name) is not None and not name.endswith(".py")
    if not is_known:
        given = " with " + ", ".join(f"{one}={options[one]!r}" for one in arguments) if arguments else ""
        yield NamedCode(name, f"makes the environment{given}")
    for wrapper in filter(None, options.get("wrap", "").split(";")):
        if not _KNOWN_WRAPPER.fullmatch(wrapper):
            yield NamedCode(wrapper, "wraps the environment")
    if ".py" in options.get("input", ""):
        yield NamedCode(options["input"], "starts the environment")


def _takes_data(name: str) -> bool:
    """True if the arguments of the environment of this name cannot name code."""
    return name.startswith(_KNOWN_FAMILIES) or _VERSION.sub("", name) in KNOWN_ENVIRONMENTS


def _of_policy(text: str | None) -> Iterator[NamedCode]:
    """Of one URI, or of several with ; between them, each perhaps after the name of its agents and =."""
    for part in filter(None, map(str.strip, (text or "").split(";"))):
        uri = _FOR_AGENTS.sub("", part, count=1) if _FOR_AGENTS.match(part) else part
        if uri in _OWN_POLICIES:
            continue
        if not is_data(uri) and uri.partition(":")[0] not in _OWN_SCHEMES:
            yield NamedCode(part, "is the policy")
