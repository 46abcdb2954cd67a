"""What a worker process does: builds the target once, then runs cases until nobody wants more."""

import mmap
import os
import signal
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyFuzzError
from policyfuzz.executions import Executions
from policyfuzz.executors.processes.shared_arrays import Layout, SharedArrays
from policyfuzz.oracles import Verdicts

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

    from policyfuzz.executors.shipment import unpack
    from policyfuzz.target import Runner

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
