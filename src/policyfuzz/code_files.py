"""The user's own code, named module:attribute or FILE.py:attribute."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from policyfuzz.errors import TargetCodeError, UsageError, unknown_name


def load_attribute(name: str, what: str) -> Any:
    """The attribute that `name` stands for; `what` it is, for a reader: "policy", "target"."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise UsageError(f"cannot read {what} {name!r}", hint="write module:name or FILE.py:name")
    module = _from_file(Path(place), what) if place.endswith(".py") else _from_module(place, name, what)
    if not hasattr(module, attribute):
        public = [known for known in vars(module) if not known.startswith("_")]
        hint = unknown_name(what, attribute, public).hint if public else ""
        raise UsageError(f"{place} has no {attribute!r}, asked for by {what} {name!r}", hint)
    return getattr(module, attribute)


def absolute_name(name: str) -> str:
    """`name` so that it loads the same from any folder: the path of a file is made absolute."""
    place, _, attribute = name.rpartition(":")
    return f"{Path(place).expanduser().resolve()}:{attribute}" if place.endswith(".py") else name


def source_digest(found: Any) -> str:
    """SHA-256 of the file that `found` is written in; empty where there is none."""
    try:
        file = inspect.getsourcefile(
            found if inspect.isroutine(found) or inspect.isclass(found) else type(found)
        )
    except TypeError:
        return ""
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file and Path(file).is_file() else ""


def _from_module(place: str, name: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{place}.".startswith(f"{error.name}."):
            raise TargetCodeError.of(f"{what} {name}", error) from error
        raise UsageError(
            f"no module {place!r} for {what} {name!r}", "is it in this folder or on PYTHONPATH?"
        ) from error
    except Exception as error:  # whatever the user's own module raises
        raise TargetCodeError.of(f"{what} {name}", error) from error


def _from_file(path: Path, what: str) -> ModuleType:
    path = path.expanduser().resolve()
    if not path.is_file():
        raise UsageError(f"no file {str(path)!r} for a {what}")
    name = f"policyfuzz_user_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look it up there
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # it may import what lies beside it
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever the user's own file raises
        del sys.modules[name]
        raise TargetCodeError.of(f"{what} {path.name}", error) from error
    return module
