"""The one place that uses numba: how the package compiles its inner loops."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` to machine code at its first call and cache the result on disk.

    Multiply-adds may be fused (`contract`), but sums are never reordered: the bits of a row never depend
    on its neighbours in the batch.
    """
    compiled = numba.njit(cache=True, fastmath={"contract"}, nogil=True)(function)
    return cast(Function, compiled)


def exact_kernel(function: Function) -> Function:
    """As `kernel`, but nothing is fused: every operation is rounded as written."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))
