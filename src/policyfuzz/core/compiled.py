"""The one door to numba: how the inner loops of the package are compiled."""

import os
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, cast

import numba

# numba reads .numba_config.yaml in the current folder, which may be a stranger's, and the cache that it names
# holds pickles; environment variables overrule the file
os.environ.setdefault("NUMBA_CACHE_DIR", "")
numba.config.reload_config()  # type: ignore[no-untyped-call]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class _Decorator(Protocol):
    def __call__(self, function: _Function, /) -> _Function: ...


#: Decorator: compile a function to machine code at its first call and keep the result on disk. Multiply-adds
#: may be fused (`contract`), sums are never reordered: a row of a batch gets the same bits whatever its
#: neighbours are.
kernel = cast(_Decorator, numba.njit(cache=True, fastmath={"contract"}, nogil=True))
#: As `kernel`, but nothing is fused: each operation is rounded as it is written.
exact_kernel = cast(_Decorator, numba.njit(cache=True, nogil=True))
