"""Batches of any size as blocks of one size, so that a row's result does not depend on its batch."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Rows that a network sees at once. Matrix products round a row differently for other numbers of rows,
#: but alike at every position of a block of this size and whatever its other rows are.
BLOCK_ROWS = 64


def in_blocks(
    function: Callable[..., tuple[NDArray[Any], ...]], *arrays: NDArray[Any], size: int = BLOCK_ROWS
) -> tuple[NDArray[Any], ...]:
    """All rows of `arrays` (m, ...), m >= 1, through `function`, which is given `size` rows each time.

    `function` takes one array (size, ...) for each of `arrays`, in their order, and gives a tuple of
    arrays (size, ...); the result is the same tuple for all rows, arrays (m, ...). Copies of the first row
    fill the last block; what comes of them is left out. Structured arrays are treated like all others.
    """
    count = len(arrays[0])
    if count == size:
        return tuple(function(*arrays))
    parts = []
    for start in range(0, count, size):
        blocks = [_block(array, start, size) for array in arrays]
        parts.append([result[: count - start] for result in function(*blocks)])
    if len(parts) == 1:
        return tuple(parts[0])
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def _block(array: NDArray[Any], start: int, size: int) -> NDArray[Any]:
    """The rows of `array` from `start` on, exactly `size` of them."""
    rows = array[start : start + size]
    if len(rows) == size:
        return rows
    block = np.empty((size, *array.shape[1:]), array.dtype)
    block[: len(rows)] = rows
    block[len(rows) :] = array[0]
    return block
