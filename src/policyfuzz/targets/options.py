"""How built-in targets read their options and --policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from policyfuzz.errors import PolicyError, UsageError

Number = TypeVar("Number", int, float)


def number(
    options: Mapping[str, str], name: str, default: Number, kind: type[Number], low: Number, high: Number
) -> Number:
    """The option called `name`, a number of this `kind` from `low` to `high`."""
    text = options.get(name, str(default))
    try:
        value = kind(text)
    except ValueError:
        value = None
    if value is None or not low <= value <= high:
        what = "a whole number" if kind is int else "a number"
        raise UsageError(f"{name} is {text!r}, expected {what} from {low:g} to {high:g}")
    return value


def choice(options: Mapping[str, str], name: str, known: Sequence[str]) -> str:
    """The option called `name`, one of `known`; the first of them by default."""
    text = options.get(name, known[0])
    if text not in known:
        raise UsageError(f"{name} is {text!r}, expected {', '.join(known[:-1])} or {known[-1]}")
    return text


def policy_path(target: str, policy: str | None, scheme: str, expected: str) -> Path | None:
    """The absolute path in `policy`, scheme:PATH; None for the target's own. `expected` is for a hint."""
    if policy is None:
        return None
    if not policy.startswith(f"{scheme}:"):
        raise PolicyError(f"{target} cannot use policy {policy!r}", hint=f"give --policy {scheme}:{expected}")
    return Path(policy.removeprefix(f"{scheme}:")).expanduser().resolve()
