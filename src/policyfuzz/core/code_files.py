"""The user's own code, MODULE:NAME or FILE.py:NAME: imported, hashed, and its errors explained."""

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from policyfuzz.core import forks
from policyfuzz.core.errors import (
    PolicyFuzzError,
    TargetCodeError,
    UsageError,
    described,
    forbid_copies,
    is_interrupt,
)
from policyfuzz.core.files import absolute_path, is_file, names_in, read_regular

#: As `sys.path` has it.
_CURRENT_FOLDER = ""
#: Packages whose wrappers a stranger's campaign may name: the current folder is not searched for them.
_LIBRARIES = ("gymnasium", "minigrid")
_MOST_SOURCE_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Source:
    """Something that the user wrote, and where."""

    thing: Any  #: a function, a class, or an object
    place: str  #: MODULE:NAME, or the absolute path of FILE.py:NAME
    contents: tuple[bytes, ...]  #: of the files it is written in, without what these import


@dataclass(frozen=True, slots=True)
class _Request:
    """What was asked for, for the reader of an error."""

    place: str
    what: str  #: "policy", "target"
    scheme: str  #: prefix of the place on a command line
    failure: type[PolicyFuzzError]  #: what to raise if it cannot be loaded

    def __str__(self) -> str:
        return f"{self.what} {self.scheme + self.place!r}"


def find_code(place: str, what: str, scheme: str = "", failure: type[PolicyFuzzError] = UsageError) -> Source:
    """What `place` names: MODULE:NAME or FILE.py:NAME, where NAME may have dots."""
    request = _Request(place, what, scheme, failure)
    where, _, name = place.rpartition(":")
    if not where or not all(part.isidentifier() for part in name.split(".")):
        raise failure(f"{request} names no function", _form(request))
    if where.endswith(".py"):
        path = absolute_path(where, failure)
        module, content = _run_file(path, request)
        return Source(_attribute(module, name, path.name, request), f"{path}:{name}", (content,))
    module = _import(where, request)
    thing = _attribute(module, name, f"module {where!r}", request)
    return Source(thing, place, _contents(module, thing, place))


def load_attribute(place: str, what: str) -> Any:
    """The thing that `place` names; `what` it is, for a reader."""
    return find_code(place, what).thing


def load_file(path: Path, what: str) -> ModuleType:
    """The module in the file at `path`."""
    return _run_file(absolute_path(path), _Request(str(path), what, "", UsageError))[0]


def import_user_module(name: str) -> ModuleType:
    """The module that the user calls `name`, perhaps in the current folder."""
    if name.partition(".")[0] not in _LIBRARIES:
        search_last()
    return importlib.import_module(name)


def search_last(folder: str = _CURRENT_FOLDER) -> None:
    """Import from `folder` too from now on, after all other places.

    Last, so that no file there can replace a module of Python or of an installed package. Done only when code
    that the user named is loaded: all other commands may be run in a folder of a stranger.
    """
    if folder not in sys.path:
        sys.path.append(folder)


def code_digest(places: Iterable[str]) -> str:
    """SHA-256 of the user's files that `places` (MODULE:NAME, FILE.py:NAME, FILE.py) are in; "" for none.

    What these files import does not count, nor do modules that are not a file.
    """
    digest, files = hashlib.sha256(), 0
    for place in places:
        where = place if place.endswith(".py") else place.rpartition(":")[0]
        path = Path(where) if where.endswith(".py") else _file_of(where)
        if path is not None and is_file(path):
            digest.update(hashlib.sha256(path.read_bytes()).digest())
            files += 1
    return digest.hexdigest() if files else ""


def _file_of(module: str) -> Path | None:
    """The file of a module that has been imported, unless it is part of an installed package."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None or "site-packages" in file else Path(file)


def absolute_name(name: str) -> str:
    """`name` so that it loads the same from any folder: the path of a file is made absolute."""
    place, _, attribute = name.rpartition(":")
    return f"{absolute_path(place)}:{attribute}" if place.endswith(".py") else name


def _form(request: _Request) -> str:
    place, scheme = request.place, request.scheme
    if place.endswith(".py"):
        return f"add the function: {scheme}{place}:FUNCTION"
    module, dot, name = place.rpartition(".")
    if dot and module and ":" not in place:
        return f"did you mean {scheme}{module}:{name}?"
    return f"write {scheme}MODULE:FUNCTION or {scheme}FILE.py:FUNCTION"


def _run_file(path: Path, request: _Request) -> tuple[ModuleType, bytes]:
    """The module in the file at `path`, and the bytes that were run."""
    if not is_file(path):
        names = [name for name in names_in(path.parent) if name.endswith(".py")]
        close = difflib.get_close_matches(path.name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else ""
        raise request.failure(f"no file {str(path)!r} for {request}", hint)
    content = read_regular(path, _MOST_SOURCE_BYTES, request.failure)
    # its own name may be that of an installed module; an edited file is another module
    name = f"policyfuzz_user_{path.stem}_{hashlib.sha256(os.fsencode(path) + content).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name], content
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise request.failure(f"{path} cannot be imported", "")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up
    search_last(str(path.parent))  # files beside it can be imported, now and later
    search_last()
    try:
        with _explained_errors(request):
            # not by its loader, whose cache may be older than the bytes that are hashed
            exec(compile(content, str(path), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module, content


def _import(name: str, request: _Request) -> ModuleType:
    try:
        with _explained_errors(request):
            return import_user_module(name)
    except PolicyFuzzError as error:
        cause = error.__cause__
        if not isinstance(cause, ModuleNotFoundError) or not f"{name}.".startswith(f"{cause.name}."):
            raise
        hint = "is the module in this folder or on PYTHONPATH?"
        raise request.failure(f"cannot load {request}: {cause}", hint) from cause


def _attribute(module: ModuleType, name: str, where: str, request: _Request) -> Any:
    thing: Any = module
    for part in name.split("."):
        if not hasattr(thing, part):
            known = [
                key for key, value in vars(module).items() if callable(value) and not key.startswith("_")
            ]
            close = difflib.get_close_matches(part, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(known) or 'no functions'}"
            raise request.failure(f"{where} has no {name!r}, asked for by {request}", hint)
        thing = getattr(thing, part)
    return thing


def _contents(module: ModuleType, thing: Any, place: str) -> tuple[bytes, ...]:
    """The source of `module`, and that of `thing` if it was written elsewhere."""
    try:
        written = inspect.getsourcefile(thing if not hasattr(thing, "__wrapped__") else inspect.unwrap(thing))
    except TypeError:  # an object, or built in
        written = inspect.getsourcefile(type(thing)) if type(thing).__module__ != "builtins" else None
    own = getattr(module, "__file__", None)  # what is compiled into Python has none
    files = dict.fromkeys(file for file in (own, written) if file is not None)
    return tuple(Path(file).read_bytes() for file in files) or (os.fsencode(place),)


@contextmanager
def _explained_errors(request: _Request) -> Iterator[None]:
    """Name the line of the user's code that failed."""
    kind = TargetCodeError if request.failure is UsageError else request.failure
    process = forks.this_process()
    try:
        yield
    except PolicyFuzzError:
        raise
    except SystemExit as error:
        raise kind(
            f"cannot load {request}: it ends the program while it is imported",
            "put the code of a script under: if __name__ == '__main__':",
        ) from error
    except SyntaxError as error:
        raise kind(f"cannot load {request}: {error.msg} ({error.filename}:{error.lineno})", "") from error
    except BaseException as error:  # whatever the user's own module raises
        forks.end_copy_of(process)
        if is_interrupt(error):
            raise
        raise kind(f"cannot load {request}: {described(error)}", _hint_at_sibling(error)) from error
    forbid_copies(process, str(request))


def _hint_at_sibling(error: BaseException) -> str:
    """Where another module of the same name was found before the one beside the code that imports it."""
    found = error.path if isinstance(error, ImportError) else None
    if found is None or not isinstance(error, ImportError):
        return ""
    folder = Path(traceback.extract_tb(error.__traceback__)[-1].filename).parent
    beside = folder / f"{error.name}.py"
    if not beside.is_file() or beside == Path(found):
        return ""
    return f"{found} is found before {beside}: rename your file"
