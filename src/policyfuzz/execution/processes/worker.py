"""A worker process: runs chunks whose arrays lie in memory that it shares with its parent."""

import mmap
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyFuzzError
from policyfuzz.core.executions import Executions
from policyfuzz.oracles import Verdicts

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


#: First words of what a worker says.
READY, DONE, RAISED, FAILED = "ready", "done", "raised", "failed"
#: Size of the file in whose first bytes a worker notes its step.
NOTE_BYTES = mmap.PAGESIZE
#: The kernel kills those with more of this first when memory is short; the coordinator has none.
_OUT_OF_MEMORY_SCORE = "500"
#: Of prctl(2): the signal to get when the thread ends that has started this process.
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve a coordinator at the other end of a socket, over shared memory; descriptors are arguments."""
    socket, shipment, note, *slots = (int(argument) for argument in sys.argv[1:])
    _be_modest()
    coordinator: Connection[Any, Any] = Connection(socket)
    own = os.getpid()
    try:
        runner = _built(shipment)
    except BaseException as error:
        _leave_if_not(own)
        with suppress(OSError):
            coordinator.send((FAILED, _text(error)))
        raise
    _leave_if_not(own)
    step = np.ndarray((1,), np.int64, mmap.mmap(note, NOTE_BYTES))
    memories = [SharedArrays(slot) for slot in slots]

    def observe(number: int, _rows: Any, _actions: Any, _frame: Any) -> None:
        step[0] = number + 1  # that comes now

    coordinator.send((READY, runner.simulator.signals))
    with suppress(EOFError, OSError):  # the coordinator has gone, or is going
        while True:
            number, slot, layout = coordinator.recv()
            inputs, seeds = memories[slot].read(layout)
            step[0] = 0  # the reset
            started = time.perf_counter()
            try:
                executions = runner(inputs, seeds, observe)
            except Exception as error:
                _leave_if_not(own)
                coordinator.send((RAISED, number, _sendable(error), time.perf_counter() - started))
                continue
            _leave_if_not(own)
            seconds = time.perf_counter() - started
            done = memories[slot].write(arrays_of(executions))
            coordinator.send((DONE, number, slot, done, executions.errors, seconds))


def arrays_of(executions: Executions) -> list[NDArray[Any]]:
    """All that `executions` hold but their errors; states (t, n, k) as they lie in memory."""
    verdicts = executions.verdicts
    states = executions.states.swapaxes(0, 1)
    return [executions.returns, executions.lengths, states, verdicts.kinds, verdicts.steps, verdicts.margins]


def executions_of(memory: SharedArrays, layout: Layout, errors: Any) -> Executions:
    """What `arrays_of` was made from."""
    returns, lengths, states, kinds, steps, margins = memory.read(layout)
    return Executions(returns, lengths, states.swapaxes(0, 1), Verdicts(kinds, steps, margins), errors)


def _leave_if_not(process: int) -> None:
    """End here where this is a copy that a simulator has made by fork, and did not end."""
    if os.getpid() != process:
        os._exit(1)


def _be_modest() -> None:
    """Leave no core files, and be the one that is killed when memory runs out, or the coordinator ends."""
    import ctypes
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OUT_OF_MEMORY_SCORE)


def _built(shipment: int) -> Any:
    from threadpoolctl import threadpool_limits

    from policyfuzz.core.target import Runner
    from policyfuzz.execution.shipping import unpack

    with mmap.mmap(shipment, 0, prot=mmap.PROT_READ) as memory:
        target = unpack(memory[:])
    os.close(shipment)
    runner = Runner(target)
    threadpool_limits(1)  # one core per process, as in a campaign of one process
    return runner


def _text(error: BaseException) -> str:
    return str(error) if isinstance(error, PolicyFuzzError) else f"{type(error).__name__}: {error}"


def _sendable(error: Exception) -> Exception:
    """`error`, or one that says the same where it may not survive the journey."""
    return error if isinstance(error, PolicyFuzzError) else RuntimeError(_text(error))


if __name__ == "__main__":
    main()
