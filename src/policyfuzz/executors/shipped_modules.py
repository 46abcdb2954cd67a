"""The user's own modules, sent as source and served on the other side as if their files were there."""

import importlib.abc
import importlib.util
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

#: Folders of installed packages, which are on every machine already.
_INSTALLED = {"site-packages", "dist-packages"}


@dataclass(frozen=True, slots=True)
class ShippedModule:
    """One module; `source` is None for a folder that is a package without a file."""

    name: str
    file: str  #: where it was, for tracebacks and for what the module itself looks for beside it
    source: bytes | None
    folders: tuple[str, ...] | None  #: where a package looks for its modules; None for what is no package

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
        if one.source is not None:
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
        loader = None if shipped.source is None else _Loader(shipped)
        spec = ModuleSpec(fullname, loader, origin=shipped.file or None)
        spec.has_location = loader is not None  # which sets __file__
        if shipped.folders is not None:
            spec.submodule_search_locations = list(shipped.folders)
        return spec


class _Loader(importlib.abc.InspectLoader):
    def __init__(self, shipped: ShippedModule) -> None:
        self._shipped = shipped

    def get_source(self, fullname: str) -> str:
        return self._shipped.text

    def get_filename(self, fullname: str) -> str:
        return self._shipped.file

    def is_package(self, fullname: str) -> bool:
        return self._shipped.folders is not None

    def exec_module(self, module: ModuleType) -> None:
        content = self._shipped.source or b""
        exec(compile(content, self._shipped.file, "exec", dont_inherit=True), module.__dict__)


def _shipped(name: str, module: object) -> ShippedModule | None:
    file = getattr(module, "__file__", None)
    if name == "__main__" or not isinstance(file, str) or not file.endswith(".py"):
        return None
    if not _is_own(file) or not (path := Path(file).absolute()).is_file():
        return None
    return ShippedModule(name, str(path), path.read_bytes(), _folders(module))


def _is_own(file: str) -> bool:
    return not file.startswith(_elsewhere()) and _INSTALLED.isdisjoint(Path(file).parts)


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
