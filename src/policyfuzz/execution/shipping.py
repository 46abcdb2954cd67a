"""Packs a target as bytes, for workers that read neither the model nor the user's files.

The target is pickled, with the weights of its policy. The source of the user's modules travels along, so
files may change or be deleted while a campaign runs. Functions and classes of a script or notebook are
pickled by value. Files that user code opens itself are not included: a worker on this machine finds them,
because it adopts the working folder and the import path; other machines need copies.
"""

import hashlib
import inspect
import io
import os
import pickle
import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
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
    ShippedModule,
    import_from,
    pack_registrations,
    restore_registrations,
    user_modules,
)

#: Levels of parts that the search for an unpicklable part descends.
_MAX_DEPTH = 12
#: Entries of one container that it looks at.
_MAX_ENTRIES = 100
#: Bytes of the SHA-256 that packed targets begin with.
_DIGEST_SIZE = hashlib.sha256().digest_size
_WEAK = (WeakKeyDictionary, WeakValueDictionary, WeakSet)


def pack(target: Target) -> bytes:
    """The part of `target` that workers need, with the SHA-256 of everything in front."""
    simulator, is_packed = target.simulator, isinstance(target.policy, Shipped)
    if is_packed and isinstance(simulator, Shipped) and simulator.horizon == target.horizon:
        return simulator.shipment  # another process has packed it
    return _pack(_pickle_target(_worker_part(target)))


def pack_for_coordinator(target: Target, shipment: bytes) -> bytes:
    """`target` for a process that must build neither its simulator nor its policy.

    It still has its own inputs, oracle and test of solvability. Its factories are handles of `shipment`, the
    same target packed for workers. Its health checks are left out.
    """
    part = replace(
        target,
        simulator=Shipped(shipment, "simulator", target.horizon),
        policy=Shipped(shipment, "policy", target.horizon),
        long_simulator=target.long_simulator and Shipped(shipment, "long_simulator", target.horizon),
        film_simulator=_later(target.film_simulator),
        draw=_later(target.draw),
        further_checks=None,
    )
    return _pack(_pickle(part))


def own_registrations() -> list[bytes]:
    """The environments that the user's modules and script have registered in this process, pickled."""
    if "gymnasium" not in sys.modules:
        return []
    return pack_registrations({one.name for one in user_modules()}, _pickle)


@dataclass(frozen=True, slots=True)
class Shipped:
    """A factory of a packed target, which stays packed until it is called."""

    shipment: bytes
    part: str  #: "simulator", "policy" or "long_simulator"
    horizon: int  #: of the packed target

    def __call__(self, *arguments: Any) -> Any:
        """Unpack the target in this process, and build the part."""
        return getattr(unpack(self.shipment), self.part)(*arguments)


@dataclass(frozen=True, slots=True)
class _Pickled:
    """A function that stays pickled until it is called."""

    content: bytes

    def __call__(self, *arguments: Any) -> Any:
        return pickle.loads(self.content)(*arguments)


def _later(function: Any) -> Any:
    """`function`, pickled; None if there is none, or if it cannot be pickled."""
    try:
        return None if function is None else _Pickled(_pickle(function))
    except Exception:  # pickling runs methods of whatever is pickled
        return None


def _pack(pickled: bytes) -> bytes:
    """A pickled target with everything that is needed to unpickle it."""
    modules = user_modules()  # after pickling, which may import a changed file again
    content = {
        "versions": _versions(),
        "folder": str(Path.cwd()),
        "prefix": sys.prefix,
        "path": [str(Path(place).absolute()) for place in sys.path],
        "modules": [astuple(one) for one in modules],
        "target": pickled,
        "environments": pack_registrations({one.name for one in modules}, _pickle),
    }
    return encode_content(content)


def unpack(data: bytes) -> Target:
    """The target in `data`.

    This process changes to the working folder and import path of the coordinator, as far as these exist here,
    and imports the user's modules from `data`.
    """
    content = decode_content(data)
    _check_versions(content["versions"])
    _adopt_paths(content["folder"], content["path"], is_same_python=content["prefix"] == sys.prefix)
    import_from(ShippedModule(*one) for one in content["modules"])
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


def encode_content(content: dict[str, Any]) -> bytes:
    """`content` with its hash in front. It has plain types only, which every version can read."""
    data = pickle.dumps(content, protocol=4)
    return hashlib.sha256(data).digest() + data


def decode_content(data: bytes) -> dict[str, Any]:
    """The content in `data`, whose hash is checked."""
    digest, data = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
    if hashlib.sha256(data).digest() != digest:
        raise UsageError(f"the target did not arrive whole on {platform.node()}", "try again")
    content: dict[str, Any] = pickle.loads(data)
    return content


def _worker_part(target: Target) -> Target:
    """`target` without what only the coordinator uses: it may be large or impossible to pickle."""
    return replace(
        target,
        inputs=InputSpace(target.inputs.dimensions),  # the coordinator draws and validates inputs
        policy_uri=None,
        solvable=None,
        film_simulator=None,
        notes=(),
        further_checks=None,
        draw=None,
    )


def _pickle_target(target: Target) -> bytes:
    try:
        return _pickle(target)
    except PolicyFuzzError:
        raise
    except Exception as error:  # pickling runs methods of whatever is pickled
        parts = {name: getattr(target, name) for name in ("simulator", "policy", "oracle")}
        reason = _describe_unpicklable(parts) or error
        raise UsageError(
            f"target {target.name} cannot be sent to worker processes: {reason}",
            "make what cannot be copied inside the worker: give a class, a function that makes the"
            " environment or policy, or FILE.py:function; or run without worker processes",
        ) from error


def _pickle(thing: Any) -> bytes:
    """`thing` pickled; functions and classes that cannot be imported go by value."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            # entries of a weak dictionary stay here
            return (type(obj), ()) if type(obj) in _WEAK else super().reducer_override(obj)

    file = io.BytesIO()
    Pickler(file).dump(thing)
    return file.getvalue()


def _versions() -> dict[str, str]:
    """Versions that must be the same on both sides."""
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


def _adopt_paths(folder: str, path: list[str], is_same_python: bool) -> None:
    """Change to `folder` and import from `path`, as far as they exist.

    `is_same_python` says that the coordinator runs the Python of this installation.
    """
    if Path(folder).is_dir():
        os.chdir(folder)
    found = [place for place in path if Path(place).exists()]
    # nothing of another installation may replace what is installed here; the user's modules are shipped
    sys.path[:] = dict.fromkeys([*found, *sys.path] if is_same_python else [*sys.path, *found])


def _describe_unpicklable(parts: Mapping[str, Any]) -> str:
    """The innermost of `parts` and their parts that cannot be pickled, and why; empty if there is none."""
    names, kind, reason = [], "", ""
    inner: Iterator[tuple[str, Any]] = iter(parts.items())
    for _ in range(_MAX_DEPTH):
        refused = next(((name, part, why) for name, part in inner if (why := _pickling_error(part))), None)
        if refused is None:
            break
        name, part, reason = refused
        names.append(name)
        kind = type(part).__name__
        inner = _parts(part)
    return f"{' > '.join(names)} is a {kind}: {reason}" if names else ""


def _pickling_error(thing: Any) -> str:
    try:
        _pickle(thing)
    except Exception as error:  # pickling runs methods of whatever is pickled
        return f"{type(error).__name__}: {error}"
    return ""


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    """The parts of `thing`, by name."""
    found: Mapping[Any, Any]
    if isinstance(thing, FunctionType):
        found = _variables_of(thing)
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
    return ((str(name), part) for name, part in list(found.items())[:_MAX_ENTRIES])


def _variables_of(function: FunctionType) -> dict[str, Any]:
    try:
        known = inspect.getclosurevars(function)
    except ValueError:  # a variable that has no value yet
        return {}
    return {**known.nonlocals, **known.globals}
