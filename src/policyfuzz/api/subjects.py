"""Makes a target of anything that a user may have."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from policyfuzz.api.oracles import judged_by, split_oracle
from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.oracle import Oracle
from policyfuzz.core.target import IN_MEMORY, MakeRunner, Runner, Target, joined, split_options
from policyfuzz.environments.live import digest, label, live_environment, live_target, plain_policy
from policyfuzz.execution.executor import ExecutorChoice
from policyfuzz.targets.registry import ADAPTERS, load_for, load_target

#: What to vary: text as for --input, a file, or bounds and values by name.
Input = str | Path | Mapping[str, Any]


def as_target(
    target: Any,
    policy: Any = None,
    *,
    oracle: str | Oracle | None = None,
    input: Input | None = None,  # noqa: A002 - as --input on the command line
    bounds: str | float | None = None,
    horizon: int | None = None,
    options: Mapping[str, str] | None = None,
    trust: bool = False,
    make_runner: MakeRunner = Runner,
    executor: ExecutorChoice | None = None,
) -> Target:
    """The target that `target` is or names, acted in by `policy`.

    `target` is a name as on the command line, a `Target`, a class of Gymnasium environments, or a function
    that makes an environment or a target. `policy` is a URI, a model of stable-baselines3, a function of one
    observation or of a batch, or an object with `predict`, or with `begin` and `act`. Agents of a PettingZoo
    environment share it, or a dictionary gives one to each: {"adversary": ..., "agent_0": ...}; the key ""
    stands for all others. `oracle`, `input` and `horizon` are as on the command line. `oracle` may be an
    object too, and `input` bounds and values by name, with "way" or the tables of a TOML file as further
    keys. `bounds` is "own", "wide" or a factor. Further `options` are those behind the name of a target:
    {"fresh": "yes"}. `make_runner` runs the few episodes from which a default oracle is chosen; an `executor`
    with workers also loads what is given by name in a process of its own.
    """
    if horizon is not None and horizon < 1:
        raise UsageError(f"horizon is {horizon}, expected 1 or more")
    policy = _policy(policy)
    text, judge = split_oracle(oracle)
    given = {
        "oracle": text,
        "input": _input_text(input),
        "bounds": "" if bounds is None else str(bounds),
        "horizon": str(horizon or ""),
    }
    options = {**(options or {}), **{name: value for name, value in given.items() if value}}
    if not isinstance(target, str | Target):
        target = live_environment(target, horizon)
    if judge is not None and not _takes_oracle(target):
        del options["oracle"]  # it records what it records
    if isinstance(target, str):
        made = _named(target, policy, options, trust, make_runner, executor or ExecutorChoice())
    elif isinstance(target, Target):
        made = _given(target, policy, options)
    else:
        made = live_target(target, options, policy, trust, make_runner)
    return made if judge is None else judged_by(made, judge)


def _named(
    name: str,
    policy: Any,
    options: dict[str, str],
    trust: bool,
    make_runner: MakeRunner,
    executor: ExecutorChoice,
) -> Target:
    base, own = split_options(name)
    whole = joined(base, own | options)
    is_live = policy is not None and not _is_uri(policy)
    if is_live and base.partition(":")[0] in ADAPTERS:
        return load_target(whole, policy, trust, make_runner)
    if executor.is_inline:
        target = load_target(whole, None if is_live else policy, trust, make_runner)
    else:
        target = load_for(executor, whole, None if is_live else policy, trust)
    return _given(target, policy, {}) if is_live else target


def _given(target: Target, policy: Any, options: dict[str, str]) -> Target:
    """`target` itself, with its own policy or with one of this process."""
    if options:
        raise UsageError(
            f"a Target has its {' and '.join(options)} already",
            "change it with dataclasses.replace(target, ...)",
        )
    if policy is None:
        return target
    if _is_uri(policy):
        raise UsageError(
            f"a Target has its policy already, and was given {policy!r}",
            "load it in the function that makes the target",
        )
    return replace(
        target,
        name=f"{IN_MEMORY}:{target.name}",
        policy=plain_policy(policy),
        policy_name=label(policy),
        policy_uri=None,
        policy_sha256=digest(policy),
    )


def _is_uri(policy: Any) -> bool:
    return isinstance(policy, str)


def _takes_oracle(target: Any) -> bool:
    """True if `target` is built around the text of an oracle: environments are, a `Target` is not."""
    return target.partition(":")[0] in ADAPTERS if isinstance(target, str) else not isinstance(target, Target)


def _policy(policy: Any) -> Any:
    """`policy`; paths, and a dictionary that names URIs only, as text."""
    if isinstance(policy, os.PathLike):
        return os.fspath(policy)
    if not isinstance(policy, Mapping):
        return policy
    each = {str(who): _policy(one) for who, one in policy.items()}
    if not all(isinstance(one, str) for one in each.values()):
        return each
    return ";".join(f"{who}={uri}" if who else uri for who, uri in each.items())


def _input_text(given: Input | None) -> str:
    """`given` as the command line takes it."""
    if given is None:
        return ""
    if isinstance(given, str | Path):
        if not str(given).strip():
            raise UsageError(
                f"input is {given!r}", "such as 'theta=-0.1..0.1', or None to vary what is found"
            )
        return str(given)
    # as in a TOML file, the dimensions may come in two tables; none of them is a pair or a value
    values = {
        name: value for name, value in given.items() if name != "way" and not isinstance(value, Mapping)
    }
    for name, table in given.items():
        if isinstance(table, Mapping):
            if name not in ("bounds", "fixed"):
                raise unknown_name("table of the input", name, ("bounds", "fixed"))
            values |= table
    way = [str(given["way"])] if "way" in given else []
    return ";".join([*way, *(f"{name}={_bounds_text(name, value)}" for name, value in values.items())])


def _bounds_text(name: str, value: Any) -> str:
    value = value.tolist() if hasattr(value, "tolist") else value  # numpy's arrays and numbers too
    if not isinstance(value, tuple | list):
        return str(value)
    if len(value) != 2:
        raise UsageError(
            f"the bounds of {name} are {value!r}", "expected (low, high), or one value to fix it"
        )
    low, high = (bound.item() if hasattr(bound, "item") else bound for bound in value)
    return f"{low!r}..{high!r}"
