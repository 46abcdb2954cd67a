"""Environments that the user's own program has registered with gymnasium, for processes that never ran it."""

import pickle
import sys
from collections.abc import Callable, Collection
from typing import Any


def own(modules: Collection[str], dumps: Callable[[Any], bytes]) -> list[bytes]:
    """What is registered here by code of `modules` or of the script itself, each by `dumps`.

    What cannot be pickled is left out: chances are that the target is of another one.
    """
    if "gymnasium" not in sys.modules:
        return []
    import gymnasium

    specs = [spec for spec in gymnasium.registry.values() if _module_of(spec) in {"__main__", *modules}]
    packed = []
    for spec in specs:
        try:
            packed.append(dumps(spec))
        except Exception:
            continue
    return packed


def restore(packed: Collection[bytes]) -> None:
    """Register what `own` gave, unless a module that was imported since has done so itself."""
    if not packed:
        return
    import gymnasium

    for one in packed:
        spec = pickle.loads(one)
        gymnasium.registry.setdefault(spec.id, spec)


def _module_of(spec: Any) -> str:
    """Name of the module that makes environments of `spec`."""
    entry = spec.entry_point
    return entry.partition(":")[0] if isinstance(entry, str) else str(getattr(entry, "__module__", ""))
