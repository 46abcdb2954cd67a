"""A worker process: runs chunks whose arrays lie in memory shared with the coordinator."""

import faulthandler
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
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.branches import Branches
from policyfuzz.core.errors import PolicyFuzzError, interrupt
from policyfuzz.core.executions import Executions
from policyfuzz.oracles import Verdicts

#: Kinds of messages that a worker sends: the first item of each.
READY, DONE, RAISED, FAILED = "ready", "done", "raised", "failed"
#: Size of the file whose first bytes hold the step that a worker is at.
STEP_BYTES = mmap.PAGESIZE
#: The kernel first kills processes with a high score when memory is short; the coordinator has 0.
_OUT_OF_MEMORY_SCORE = "500"
#: Of prctl(2): sets the signal that this process gets when the thread that started it ends.
_PR_SET_PDEATHSIG = 1

#: dtype and shape of each array, in the order in which they lie in memory.
Layout = list[tuple[str, tuple[int, ...]]]

#: Bytes; arrays begin at multiples of it.
_ALIGNMENT = 64


def anonymous_file(name: str) -> int:
    """Descriptor of an empty file without a path, in memory if possible. The last close deletes it."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class SharedArrays:
    """Arrays in shared memory, which both sides open by the descriptor of its file.

    One side writes, sends the layout, and does not touch the memory until the other side has read it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._memory: mmap.mmap | None = None

    def write(self, arrays: Sequence[NDArray[Any]]) -> Layout:
        """Write `arrays` to the memory, which grows as needed."""
        layout: Layout = [(array.dtype.str, array.shape) for array in arrays]
        for view, array in zip(self._views(layout), arrays, strict=True):
            view[...] = array
        return layout

    def read(self, layout: Layout) -> list[NDArray[Any]]:
        """Copies of the arrays in the memory."""
        return [view.copy() for view in self._views(layout)]

    def _views(self, layout: Layout) -> list[NDArray[Any]]:
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


def main() -> None:
    """Serve a coordinator at the other end of a socket, over shared memory; descriptors are arguments."""
    socket, shipment, step_file, *files = (int(argument) for argument in sys.argv[1:])
    end_before_coordinator()
    explain_exits()
    coordinator: Connection[Any, Any] = Connection(socket)
    process = os.getpid()
    try:
        runner = _build_runner(shipment)
    except BaseException as error:
        _exit_if_forked_from(process)
        with suppress(OSError):
            coordinator.send((FAILED, _text(error)))
        raise
    _exit_if_forked_from(process)
    step = np.ndarray((1,), np.int64, mmap.mmap(step_file, STEP_BYTES))
    memories = [SharedArrays(file) for file in files]

    def observe(number: int, _rows: Any, _actions: Any, _frame: Any) -> None:
        step[0] = number + 1  # the step that comes next

    coordinator.send((READY, runner.simulator.signals))
    with suppress(EOFError, OSError):  # the coordinator has ended, or is ending
        while True:
            number, memory, layout = coordinator.recv()
            inputs, seeds, *further = memories[memory].read(layout)
            step[0] = 0  # the reset
            started = time.perf_counter()
            try:
                executions = runner(inputs, seeds, observe, branches=Branches(*further) if further else None)
            except Exception as error:
                _exit_if_forked_from(process)
                coordinator.send((RAISED, number, _sendable(error), time.perf_counter() - started))
                continue
            _exit_if_forked_from(process)
            seconds = time.perf_counter() - started
            layout = memories[memory].write(_arrays_of(executions))
            coordinator.send((DONE, number, memory, layout, executions.errors, seconds))


def _arrays_of(executions: Executions) -> list[NDArray[Any]]:
    """The arrays of `executions`, all but their errors; states (t, n, k) as they lie in memory."""
    verdicts = executions.verdicts
    states = executions.states.swapaxes(0, 1)
    return [executions.returns, executions.lengths, states, verdicts.kinds, verdicts.steps, verdicts.margins]


def executions_of(memory: SharedArrays, layout: Layout, errors: Any) -> Executions:
    """The executions whose arrays a worker wrote to `memory`."""
    returns, lengths, states, kinds, steps, margins = memory.read(layout)
    return Executions(returns, lengths, states.swapaxes(0, 1), Verdicts(kinds, steps, margins), errors)


def _exit_if_forked_from(process: int) -> None:
    """End this process if a simulator forked it from `process` and did not end it."""
    if os.getpid() != process:
        os._exit(1)


def end_before_coordinator() -> None:
    """End when the coordinator ends, be killed before it when memory runs out, and leave no core file."""
    import ctypes
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OUT_OF_MEMORY_SCORE)


def explain_exits() -> None:
    """Let this process print where its code calls `os._exit`, and raise KeyboardInterrupt on no signal."""
    process, exit_now = os.getpid(), os._exit

    def explained(status: int) -> NoReturn:
        if os.getpid() == process:
            faulthandler.dump_traceback(all_threads=False)
        exit_now(status)

    os._exit = explained
    signal.signal(signal.SIGINT, interrupt)


def _build_runner(shipment: int) -> Any:
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
    """`error`, or one with the same text if it may not survive pickling."""
    return error if isinstance(error, PolicyFuzzError) else RuntimeError(_text(error))


if __name__ == "__main__":
    main()
