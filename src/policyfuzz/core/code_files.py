"""The user's own code, MODULE:NAME or FILE.py:NAME: imported, hashed, and its errors explained."""

import difflib
import hashlib
import importlib
import importlib.util
import inspect
import sys
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
        path = Path(where).expanduser().absolute()
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
    return _run_file(path.expanduser().absolute(), _Request(str(path), what, "", UsageError))[0]


def code_digest(places: Iterable[str]) -> str:
    """SHA-256 of the user's files that `places` (MODULE:NAME, FILE.py:NAME, FILE.py) are in; "" for none.

    What these files import does not count, nor do modules that are not a file.
    """
    digest, files = hashlib.sha256(), 0
    for place in places:
        where = place if place.endswith(".py") else place.rpartition(":")[0]
        path = Path(where) if where.endswith(".py") else _file_of(where)
        if path is not None and path.is_file():
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
    return f"{Path(place).expanduser().absolute()}:{attribute}" if place.endswith(".py") else name


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
    if not path.is_file():
        names = [item.name for item in path.parent.glob("*.py")] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else ""
        raise request.failure(f"no file {str(path)!r} for {request}", hint)
    content = path.read_bytes()
    # its own name may be that of an installed module; an edited file is another module
    name = f"policyfuzz_user_{path.stem}_{hashlib.sha256(str(path).encode() + content).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name], content
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise request.failure(f"{path} cannot be imported", "")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))  # files beside it can be imported, now and later
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
            return importlib.import_module(name)
    except PolicyFuzzError as error:
        cause = error.__cause__
        if not isinstance(cause, ModuleNotFoundError) or not f"{name}.".startswith(f"{cause.name}."):
            raise
        hint = "is the module in this folder or on PYTHONPATH?"
        if Path(f"{name}.py").is_file():
            hint = f"did you mean {request.scheme}{name}.py:{request.place.rpartition(':')[2]}?"
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
    files = dict.fromkeys(file for file in (module.__file__, written) if file is not None)
    return tuple(Path(file).read_bytes() for file in files) or (place.encode(),)


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
        raise kind(f"cannot load {request}: {described(error)}", "") from error
    forbid_copies(process, str(request))
