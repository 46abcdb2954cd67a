"""The one door to numba: how the inner loops of the package are compiled."""

import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numba

# numba reads .numba_config.yaml in the current folder, which may be a stranger's, and the cache that it names
# holds pickles; environment variables overrule the file
os.environ.setdefault("NUMBA_CACHE_DIR", "")
numba.config.reload_config()  # type: ignore[no-untyped-call]

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: What a cache on disk raises that is full, damaged, or not ours to write.
_CACHE_ERRORS = (OSError, EOFError, pickle.UnpicklingError)


class _Decorator(Protocol):
    def __call__(self, function: _Function, /) -> _Function: ...


def _decorator(**options: Any) -> _Decorator:
    def compiled(function: _Function) -> _Function:
        dispatcher: Any = numba.njit(nogil=True, **options)(function)
        with suppress(RuntimeError, *_CACHE_ERRORS):  # no folder may be written to: it is compiled each time
            if _has_cache_folder(function):
                dispatcher.enable_caching()
                # what goes wrong later, such as a full disk, costs no more than that either
                dispatcher._cache._guard_against_spurious_io_errors = partial(suppress, *_CACHE_ERRORS)
        kernel: _Function = dispatcher
        return kernel

    return compiled


def _has_cache_folder(function: Callable[..., Any]) -> bool:
    """False if numba would make a folder called ~ here, for a user who has no home."""
    is_writable = os.access(Path(function.__code__.co_filename).parent, os.W_OK)
    return is_writable or os.path.expanduser("~") != "~"  # noqa: PTH111 (as numba finds it)


#: Decorator: compile a function to machine code at its first call and keep the result on disk, if there is a
#: place for it. Multiply-adds may be fused (`contract`), sums are never reordered: a row of a batch gets the
#: same bits whatever its neighbours are.
kernel = _decorator(fastmath={"contract"})
#: As `kernel`, but nothing is fused: each operation is rounded as it is written.
exact_kernel = _decorator()
