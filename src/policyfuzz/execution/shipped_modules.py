"""The user's modules as source, and their gymnasium registrations, for processes that never imported them."""

import importlib.abc
import importlib.util
import inspect
import linecache
import os
import pickle
import sys
import sysconfig
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from policyfuzz.core.errors import UsageError

#: Folders of installed packages, which every machine has already.
INSTALLED_FOLDERS = {"site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class ShippedModule:
    """One module; `source` is None for a namespace package, which has no file."""

    name: str
    file: str  #: where it was, for tracebacks and for files that the module looks for beside it
    source: bytes | None
    folders: tuple[str, ...] | None  #: where a package looks for its modules; None if it is no package
    has_changed: bool = False  #: the source is not what was imported, and must not run instead of it

    @property
    def text(self) -> str:
        """The source, decoded as it declares itself."""
        return importlib.util.decode_source(self.source or b"")


def user_modules() -> tuple[ShippedModule, ...]:
    """All modules imported from source that are neither Python's, nor installed, nor PolicyFuzz's."""
    shipped = [_shipped_module(name, module) for name, module in list(sys.modules.items())]
    found = {one.name: one for one in shipped if one is not None}
    parents = {parent for name in found for parent in _parents(name)} - set(found)
    return (*found.values(), *(_namespace(name) for name in sorted(parents) if _has_no_file(name)))


def import_from(modules: Iterable[ShippedModule]) -> None:
    """Make `import` find `modules` before any file."""
    missing = {one.name: one for one in modules if one.name not in sys.modules}
    sys.meta_path.insert(0, _Finder({name: one for name, one in missing.items() if one.source is not None}))
    # last: a namespace package may exist here too, with more in it
    sys.meta_path.append(_Finder({name: one for name, one in missing.items() if one.source is None}))
    for one in missing.values():
        if one.source is not None and not one.has_changed:
            # without a modification time the lines stay, even if the file is another one by now
            linecache.cache[one.file] = (len(one.source), None, one.text.splitlines(keepends=True), one.file)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, modules: dict[str, ShippedModule]) -> None:
        self._modules = modules

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        shipped = self._modules.get(fullname)
        if shipped is None:
            return None
        folders = None if shipped.folders is None else list(shipped.folders)
        if shipped.source is not None:
            return importlib.util.spec_from_file_location(
                fullname, shipped.file, loader=_Loader(shipped), submodule_search_locations=folders
            )
        spec = ModuleSpec(fullname, None)
        spec.submodule_search_locations = folders
        return spec


class _Loader(SourceFileLoader):
    """Loads a module as if from its file, which need not exist."""

    def __init__(self, shipped: ShippedModule) -> None:
        super().__init__(shipped.name, shipped.file)
        self._shipped = shipped

    def path_stats(self, path: Any) -> Any:
        # compiled code beside the file may belong to another source
        raise OSError(f"{path} was shipped without a modification time")

    def get_data(self, path: str) -> bytes:
        return (self._shipped.source or b"") if path == self._shipped.file else super().get_data(path)

    def exec_module(self, module: ModuleType) -> None:
        if self._shipped.has_changed:
            raise UsageError(
                f"{self._shipped.file} has changed since it was imported, and workers need it as it was",
                "start the program or notebook again, or run without worker processes",
            )
        super().exec_module(module)


def _shipped_module(name: str, module: object) -> ShippedModule | None:
    file = getattr(module, "__file__", None)
    if name == "__main__" or not isinstance(file, str) or not file.endswith(".py"):
        return None
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    path = Path(file).absolute()
    if not _is_user_file(file) or not (path.is_file() or type(loader) is SourceFileLoader):
        return None
    source = path.read_bytes() if path.is_file() else b""
    # other loaders may have good reasons to run something else than the source
    has_changed = type(loader) is SourceFileLoader and _has_changed(module, name, file, source)
    return ShippedModule(name, str(path), source, _folders(module), has_changed)


def _is_user_file(file: str) -> bool:
    return not file.startswith(_library_folders()) and INSTALLED_FOLDERS.isdisjoint(Path(file).parts)


@cache
def _library_folders() -> tuple[str, ...]:
    """Folders of Python itself and of this package."""
    standard = (sysconfig.get_path("platstdlib"), str(Path(os.__file__).parent))
    return tuple(f"{folder}{os.sep}" for folder in (*standard, str(Path(__file__).parents[1])))


def _folders(module: object) -> tuple[str, ...] | None:
    places = getattr(module, "__path__", None)
    return None if places is None else tuple(str(Path(place).absolute()) for place in places)


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def _has_no_file(name: str) -> bool:
    return getattr(sys.modules.get(name), "__file__", None) is None


def _namespace(name: str) -> ShippedModule:
    return ShippedModule(name, "", None, _folders(sys.modules.get(name)) or ())


def _has_changed(module: object, name: str, file: str, source: bytes) -> bool:
    """True if `module` has functions that `source`, the present content of its `file`, does not have.

    Changes outside of functions are not noticed.
    """
    functions = [code for code in _functions_of(module, name) if code.co_filename == file]
    if not functions:
        return False
    try:
        in_source = set(_codes_in(compile(source, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return True
    return not in_source.issuperset(functions)


def _functions_of(owner: object, module: str) -> Iterator[CodeType]:
    """Code of all functions and methods of `owner` that were defined in `module`."""
    for thing in list(vars(owner).values()):
        if getattr(thing, "__module__", None) != module:
            continue
        if inspect.isfunction(thing):
            yield thing.__code__
        elif inspect.isclass(thing) and thing is not owner:
            yield from _functions_of(thing, module)


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)


def pack_registrations(modules: Collection[str], dumps: Callable[[Any], bytes]) -> list[bytes]:
    """The gymnasium environments of `modules` and of the script itself, each pickled by `dumps`.

    Environments that cannot be pickled are left out: the target probably uses another one.
    """
    if "gymnasium" not in sys.modules:
        return []
    import gymnasium

    names, packed = {"__main__", *modules}, []
    for spec in gymnasium.registry.values():
        if isinstance(spec.entry_point, _LazyEntryPoint) or _module_of(spec) in names:
            with suppress(Exception):  # pickling runs user code
                packed.append(dumps(_with_lazy_entry_point(spec, dumps)))
    return packed


def restore_registrations(packed: Collection[bytes]) -> None:
    """Register what `pack_registrations` gave, unless a module that was imported here has done so."""
    if not packed:
        return
    import gymnasium

    for one in packed:
        with suppress(Exception):  # the target may not use it; gymnasium reports it otherwise
            spec = pickle.loads(one)
            gymnasium.registry.setdefault(spec.id, spec)


@dataclass(frozen=True)
class _LazyEntryPoint:
    """Makes environments; unpickled for the first one, since its module may never be needed."""

    pickled: bytes

    @cached_property
    def _entry_point(self) -> Any:
        return pickle.loads(self.pickled)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._entry_point(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        """The attribute of the real entry point; gymnasium reads its metadata."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._entry_point, name)


def _with_lazy_entry_point(spec: Any, dumps: Callable[[Any], bytes]) -> Any:
    if isinstance(spec.entry_point, str | _LazyEntryPoint):
        return spec
    lazy = copy(spec)
    lazy.entry_point = _LazyEntryPoint(dumps(spec.entry_point))
    return lazy


def _module_of(spec: Any) -> str:
    """Name of the module that makes environments of `spec`."""
    entry = spec.entry_point
    return entry.partition(":")[0] if isinstance(entry, str) else str(getattr(entry, "__module__", ""))
