"""Arrays in memory that two processes share: nothing is pickled, and nothing is left behind by a kill."""

import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: dtype and shape of each array, in the order in which they lie in memory.
Layout = list[tuple[str, tuple[int, ...]]]

#: Bytes; arrays begin at multiples of it.
_ALIGNMENT = 64


def anonymous_file(name: str) -> int:
    """Descriptor of an empty file without a path, in memory where the system can; it goes with its users."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class SharedArrays:
    """One piece of shared memory, by the descriptor of its file, for arrays one after another.

    One side writes, tells the other the layout, and leaves the memory alone until that has read it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory: mmap.mmap | None = None

    def write(self, arrays: Sequence[NDArray[Any]]) -> Layout:
        """Put `arrays` into the memory, which grows as needed."""
        layout: Layout = [(array.dtype.str, array.shape) for array in arrays]
        for place, array in zip(self._places(layout), arrays, strict=True):
            place[...] = array
        return layout

    def read(self, layout: Layout) -> list[NDArray[Any]]:
        """Copies of the arrays that lie there."""
        return [place.copy() for place in self._places(layout)]

    def _places(self, layout: Layout) -> list[NDArray[Any]]:
        sizes = [np.dtype(dtype).itemsize * int(np.prod(shape, dtype=np.int64)) for dtype, shape in layout]
        starts = np.cumsum([0, *(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes)]).tolist()
        memory = self._mapped(max(starts[-1], 1))  # an empty file cannot be mapped
        return [
            np.ndarray(shape, dtype, memory, start)
            for (dtype, shape), start in zip(layout, starts, strict=False)
        ]

    def _mapped(self, size: int) -> mmap.mmap:
        if self._memory is None or len(self._memory) < size:
            if os.fstat(self._descriptor).st_size < size:
                pages = size * 3 // 2 // mmap.PAGESIZE + 1
                os.ftruncate(self._descriptor, pages * mmap.PAGESIZE)
            self._memory = mmap.mmap(self._descriptor, 0)
        return self._memory
