"""Names of targets with options: NAME:option=value,option=value."""

import re
from collections.abc import Collection, Mapping

from policyfuzz.errors import UsageError, unknown_name

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
