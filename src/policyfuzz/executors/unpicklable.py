"""Which part of a thing it is that cannot be pickled."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import Any

#: Parts of parts that are looked into.
_DEEPEST = 12
#: Entries of one container that are looked at.
_MOST = 100


def culprit(parts: Mapping[str, Any], dumps: Callable[[Any], Any]) -> str:
    """The innermost of `parts` and their parts that `dumps` refuses, and why; empty if it refuses none."""
    names, kind, reason = [], "", ""
    inner: Iterator[tuple[str, Any]] = iter(parts.items())
    for _ in range(_DEEPEST):
        refused = next(((name, part, why) for name, part in inner if (why := _refusal(part, dumps))), None)
        if refused is None:
            break
        name, part, reason = refused
        names.append(name)
        kind = type(part).__name__
        inner = _parts(part)
    return f"{' > '.join(names)} is a {kind}: {reason}" if names else ""


def _refusal(thing: Any, dumps: Callable[[Any], Any]) -> str:
    try:
        dumps(thing)
    except Exception as error:  # pickling runs methods of whatever is pickled
        return f"{type(error).__name__}: {error}"
    return ""


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """What `thing` is made of, by name."""
    found: Mapping[Any, Any]
    if isinstance(thing, FunctionType):
        found = _names_used_by(thing)
    elif isinstance(thing, partial):
        found = {"function": thing.func, **{f"argument {n}": one for n, one in enumerate(thing.args)}}
        found = {**found, **thing.keywords}
    elif inspect.ismethod(thing):
        found = {"object": thing.__self__}
    elif isinstance(thing, Mapping):
        found = thing
    elif isinstance(thing, list | tuple | set):
        found = dict(enumerate(thing))
    else:
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        found = {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
        found = {**found, **getattr(thing, "__dict__", {})}
    return ((str(name), part) for name, part in list(found.items())[:_MOST])


def _names_used_by(function: FunctionType) -> dict[str, Any]:
    try:
        known = inspect.getclosurevars(function)
    except ValueError:  # a name that has no value yet
        return {}
    return {**known.nonlocals, **known.globals}
