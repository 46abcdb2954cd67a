"""Environments that the user's own program has registered with gymnasium, for processes that never ran it."""

import pickle
import sys
from collections.abc import Callable, Collection
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any


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


def own(modules: Collection[str], dumps: Callable[[Any], bytes]) -> list[bytes]:
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


def restore(packed: Collection[bytes]) -> None:
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
