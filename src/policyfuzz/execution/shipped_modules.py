"""The user's own modules, and what they registered with gymnasium, for processes that never ran them."""

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


def has_changed(module: Any, name: str, file: str, content: bytes) -> bool:
    """True where `module` has functions that `content`, the source in its `file` by now, does not have.

    What only stands outside of functions may differ and not be found out.
    """
    functions = [code for code in _functions_of(module, name) if code.co_filename == file]
    if not functions:
        return False
    try:
        known = set(_codes_in(compile(content, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return True
    return not known.issuperset(functions)


def _functions_of(owner: Any, module: str) -> Iterator[CodeType]:
    """Code of all functions and methods that were written in `module`."""
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


@dataclass(frozen=True)
class PackedMaker:
    """What makes an environment, unpacked when the first is made: its module may be needed by nobody."""

    content: bytes

    @cached_property
    def _maker(self) -> Any:
        return pickle.loads(self.content)

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._maker(*arguments, **options)

    def __getattr__(self, name: str) -> Any:
        """What the maker itself has; gymnasium asks for its metadata."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._maker, name)


def own_registrations(modules: Collection[str], dumps: Callable[[Any], bytes]) -> list[bytes]:
    """What is registered here by code of `modules` or of the script itself, each by `dumps`.

    What cannot be pickled is left out: chances are that the target is of another one.
    """
    if "gymnasium" not in sys.modules:
        return []
    import gymnasium

    places, packed = {"__main__", *modules}, []
    for spec in gymnasium.registry.values():
        if _module_of(spec) in places:
            with suppress(Exception):  # pickling runs whatever the user has written
                packed.append(dumps(_lazy(spec, dumps)))
    return packed


def restore_registrations(packed: Collection[bytes]) -> None:
    """Register what `own` gave, unless a module that was imported since has done so itself."""
    if not packed:
        return
    import gymnasium

    for one in packed:
        with suppress(Exception):  # of an environment that the target may not use; gymnasium tells if it does
            spec = pickle.loads(one)
            gymnasium.registry.setdefault(spec.id, spec)


def _lazy(spec: Any, dumps: Callable[[Any], bytes]) -> Any:
    if isinstance(spec.entry_point, str):
        return spec
    lazy = copy(spec)
    lazy.entry_point = PackedMaker(dumps(spec.entry_point))
    return lazy


def _module_of(spec: Any) -> str:
    """Name of the module that makes environments of `spec`."""
    entry = spec.entry_point
    return entry.partition(":")[0] if isinstance(entry, str) else str(getattr(entry, "__module__", ""))


#: Folders of installed packages, which are on every machine already.
INSTALLED = {"site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class ShippedModule:
    """One module; `source` is None for a folder that is a package without a file."""

    name: str
    file: str  #: where it was, for tracebacks and for what the module itself looks for beside it
    source: bytes | None
    folders: tuple[str, ...] | None  #: where a package looks for its modules; None for what is no package
    is_changed: bool = False  #: the source is not what was imported, and must not be run instead of it

    @property
    def text(self) -> str:
        """The source, decoded as it says itself."""
        return importlib.util.decode_source(self.source or b"")


def own_modules() -> tuple[ShippedModule, ...]:
    """All modules that were imported from source and are neither Python's, installed, nor ours."""
    shipped = [_shipped(name, module) for name, module in list(sys.modules.items())]
    found = {one.name: one for one in shipped if one is not None}
    parents = {parent for name in found for parent in _parents(name)} - set(found)
    return (*found.values(), *(_namespace(name) for name in sorted(parents) if _has_no_file(name)))


def serve(modules: Iterable[ShippedModule]) -> None:
    """Have `import` find `modules` before anything on the disk."""
    served = {one.name: one for one in modules if one.name not in sys.modules}
    sys.meta_path.insert(0, _Finder({name: one for name, one in served.items() if one.source is not None}))
    # a folder without a file may well be here too, with more in it
    sys.meta_path.append(_Finder({name: one for name, one in served.items() if one.source is None}))
    for one in served.values():
        if one.source is not None and not one.is_changed:
            # without a time of change, which is how the lines stay when the file is another one by now
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
    """Loads a module as from its file, which need not be there."""

    def __init__(self, shipped: ShippedModule) -> None:
        super().__init__(shipped.name, shipped.file)
        self._shipped = shipped

    def path_stats(self, path: Any) -> Any:
        # compiled code beside the file may be of another source
        raise OSError(f"{path} came along without a time of change")

    def get_data(self, path: str) -> bytes:
        return (self._shipped.source or b"") if path == self._shipped.file else super().get_data(path)

    def exec_module(self, module: ModuleType) -> None:
        if self._shipped.is_changed:
            raise UsageError(
                f"{self._shipped.file} has changed since it was imported, and workers need it as it was",
                "start the program or notebook again, or run without worker processes",
            )
        super().exec_module(module)


def _shipped(name: str, module: object) -> ShippedModule | None:
    file = getattr(module, "__file__", None)
    if name == "__main__" or not isinstance(file, str) or not file.endswith(".py"):
        return None
    loader = getattr(getattr(module, "__spec__", None), "loader", None)
    path = Path(file).absolute()
    if not _is_own(file) or not (path.is_file() or type(loader) is SourceFileLoader):
        return None
    content = path.read_bytes() if path.is_file() else b""
    # other loaders may have good reasons to run something else than the source
    is_changed = type(loader) is SourceFileLoader and has_changed(module, name, file, content)
    return ShippedModule(name, str(path), content, _folders(module), is_changed)


def _is_own(file: str) -> bool:
    return not file.startswith(_elsewhere()) and INSTALLED.isdisjoint(Path(file).parts)


@cache
def _elsewhere() -> tuple[str, ...]:
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
