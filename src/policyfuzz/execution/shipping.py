"""A target as bytes: weights, and the source of the user's own modules, for processes that have no files.

The policy's weights and whatever else the target holds are pickled. The user's own modules go along as source
and keep their names, so that files may change or go while a campaign runs; things of a script or notebook go
by value. What user code reads from the disk by itself is not in it: a worker on this machine finds such files
as ever, since it adopts the folder and the import path, and another machine needs files of its own.
"""

import hashlib
import inspect
import io
import os
import pickle
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy as np

from policyfuzz.core.errors import PolicyFuzzError, UsageError
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.target import Target
from policyfuzz.execution.shipped_modules import (
    INSTALLED,
    ShippedModule,
    own_modules,
    own_registrations,
    restore_registrations,
    serve,
)

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


#: Bytes of the hash that a shipment begins with.
_DIGEST = hashlib.sha256().digest_size
_WEAK = (WeakKeyDictionary, WeakValueDictionary, WeakSet)


def pack(target: Target) -> bytes:
    """`target` without what only the coordinator uses, behind the SHA-256 of all of it."""
    packed = _pickled(_for_workers(target))
    modules = own_modules()  # after it, since a file that has changed is read again then
    content = {
        "versions": _versions(),
        "folder": str(Path.cwd()),
        "prefix": sys.prefix,
        "path": [str(Path(place).absolute()) for place in sys.path],
        "modules": [astuple(one) for one in modules],
        "target": packed,
        "environments": own_registrations({one.name for one in modules}, _dumps),
    }
    return sealed(content)


def unpack(data: bytes) -> Target:
    """The target in `data`.

    From now on this process has the folder and import path of who packed it, as far as these exist here, and
    imports the modules that came along.
    """
    content = opened(data)
    _check_versions(content["versions"])
    _adopt(content["folder"], content["path"], is_alike=content["prefix"] == sys.prefix)
    serve(ShippedModule(*one) for one in content["modules"])
    try:
        target: Target = pickle.loads(content["target"])
        restore_registrations(content["environments"])
    except PolicyFuzzError:
        raise
    except ImportError as error:
        raise UsageError(
            f"the target cannot be unpacked on {platform.node()}: {error}",
            "every machine needs the packages that the target uses, in the same versions",
        ) from error
    return target


def sealed(content: dict[str, Any]) -> bytes:
    """`content` behind its hash; it is of plain types, which every version can read."""
    data = pickle.dumps(content, protocol=4)
    return hashlib.sha256(data).digest() + data


def opened(data: bytes) -> dict[str, Any]:
    """The content that was `sealed`."""
    digest, data = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(data).digest() != digest:
        raise UsageError(f"the target did not arrive whole on {platform.node()}", "try again")
    content: dict[str, Any] = pickle.loads(data)
    return content


def _for_workers(target: Target) -> Target:
    """`target` without what chooses inputs or looks at episodes afterwards, and may hold much."""
    return replace(
        target,
        inputs=InputSpace(target.inputs.dimensions),  # inputs are drawn and validated by the coordinator
        policy_uri=None,
        solvable=None,
        film_simulator=None,
        notes=(),
        further_checks=None,
        draw=None,
    )


def _pickled(target: Target) -> bytes:
    try:
        return _dumps(target)
    except PolicyFuzzError:
        raise
    except Exception as error:  # pickling runs methods of whatever is pickled
        parts = {name: getattr(target, name) for name in ("simulator", "policy", "oracle")}
        raise UsageError(
            f"target {target.name} cannot be sent to worker processes: {culprit(parts, _dumps) or error}",
            "make what cannot be copied inside the worker: give a class, a function that makes the"
            " environment or policy, or FILE.py:function; or run without worker processes",
        ) from error


def _dumps(thing: Any) -> bytes:
    """`thing` pickled, with what cannot be imported elsewhere by value."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            # whom a weak dictionary knows stays here
            return (type(obj), ()) if type(obj) in _WEAK else super().reducer_override(obj)

    file = io.BytesIO()
    Pickler(file).dump(thing)
    return file.getvalue()


def _versions() -> dict[str, str]:
    """What must be alike on both sides."""
    return {
        "Python": ".".join(map(str, sys.version_info[:2])),
        "policyfuzz": metadata.version("policyfuzz"),
        "numpy": np.__version__.partition(".")[0],  # arrays of one major version are read by all of it
    }


def _check_versions(packed: dict[str, str]) -> None:
    here = _versions()
    wrong = [name for name in here if here[name] != packed.get(name)]
    if wrong:
        differences = ", ".join(f"{name} {packed.get(name)} there and {here[name]} here" for name in wrong)
        raise UsageError(
            f"the target was packed by another installation: {differences} ({platform.node()})",
            "use the same versions on every machine",
        )


def _adopt(folder: str, path: list[str], is_alike: bool) -> None:
    """Live in `folder` and import from `path`, as far as they exist; `is_alike` if Python lies there too."""
    if Path(folder).is_dir():
        os.chdir(folder)
    found = [place for place in path if Path(place).exists()]
    own = [place for place in found if is_alike or INSTALLED.isdisjoint(Path(place).parts)]
    # packages of another installation must not stand before those of this one
    sys.path[:] = dict.fromkeys([*own, *sys.path, *found])
