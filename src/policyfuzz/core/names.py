"""Names of targets with their options: acasxu:bucket=3 is a name, bucket an option."""

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from policyfuzz.core.errors import PolicyError, UsageError, unknown_name

#: Targets that were made in Python are called IN_MEMORY:SOMETHING, and cannot be rebuilt from that.
IN_MEMORY = "python"

#: Where options begin behind a name that may have colons of its own, and where the next one begins.
_FIRST, _NEXT = re.compile(r":(?=[A-Za-z_][\w.]*=)"), re.compile(r",(?=[A-Za-z_][\w.]*=)")


def split_options(name: str) -> tuple[str, dict[str, str]]:
    """The name without its options, and the options."""
    base, *rest = _FIRST.split(name, maxsplit=1)
    items = _NEXT.split(rest[0]) if rest else []
    options = dict(item.split("=", 1) for item in items)
    if len(options) < len(items):
        raise UsageError(f"target {name!r} gives an option twice")
    return base, options


def joined(base: str, options: Mapping[str, str]) -> str:
    """The name `base` with `options`, in an order of their own."""
    for key, value in options.items():
        if _NEXT.search(value):
            raise UsageError(f"{key} is {value!r}, which looks like two options", "rename the file, or use ;")
    text = ",".join(f"{key}={value}" for key, value in sorted(options.items()))
    return f"{base}:{text}" if text else base


def check_options(base: str, options: Mapping[str, str], known: Collection[str]) -> None:
    """Refuse an option that is not `known`; a name that ends in a dot stands for all that begin so."""
    families = tuple(name for name in known if name.endswith("."))
    for key in options:
        if key not in known and not (families and key.startswith(families)):
            raise unknown_name(f"option of target {base}", key, known)


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
