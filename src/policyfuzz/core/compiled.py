"""The one door to numba: how the inner loops of the package are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` to machine code at its first call and keep the result on disk.

    Multiply-adds may be fused (`contract`), sums are never reordered: a row of a batch gets the
    same bits whatever its neighbours are.
    """
    compiled = numba.njit(cache=True, fastmath={"contract"}, nogil=True)(function)
    return cast(Function, compiled)


def exact_kernel(function: Function) -> Function:
    """As `kernel`, but nothing is fused: each operation is rounded as it is written."""
    return cast(Function, numba.njit(cache=True, nogil=True)(function))
