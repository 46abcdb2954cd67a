"""One worker process, seen from the coordinator."""

import mmap
import os
import time
from contextlib import ExitStack, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.execution.processes import worker as worker_module
from policyfuzz.execution.processes.isolated_process import ONE_THREAD, IsolatedProcess
from policyfuzz.execution.processes.worker import (
    DONE,
    FAILED,
    RAISED,
    READY,
    STEP_BYTES,
    SharedArrays,
    anonymous_file,
    executions_of,
)
from policyfuzz.execution.worker_pool import MAX_CHUNKS, ChunkResult, WorkerReady


class WorkerProcess(IsolatedProcess):
    """An interpreter that runs chunks; see `worker` for what it does.

    `shipment` is the descriptor of a file with the packed target.
    """

    def __init__(self, number: int, shipment: int, mark: str) -> None:
        self.number = number
        self.is_late = False  #: it did not get ready in time
        self._sent = self._answered = 0
        self._started_at, self._is_ready = time.monotonic(), False
        with ExitStack() as stack:  # closes what was opened if something fails
            memories = [_new_file(stack, "chunk") for _ in range(MAX_CHUNKS)]
            step = _new_file(stack, "step")
            os.ftruncate(step, STEP_BYTES)
            self._step = np.ndarray((1,), np.int64, mmap.mmap(step, STEP_BYTES))
            self._memories = [SharedArrays(memory) for memory in memories]
            super().__init__(worker_module.__name__, mark, (shipment, step, *memories), ONE_THREAD)
            self._resources.push(stack.pop_all())

    @property
    def has_message(self) -> bool:
        """True if `receive` returns at once, or raises EOFError."""
        return self.connection.poll()

    @property
    def step(self) -> int:
        """The step of its episodes, 0 for the reset."""
        return int(self._step[0])

    def send(self, *arrays: NDArray[Any]) -> None:
        """Send it cases to run: inputs, seeds, and the arrays of branches if there are any."""
        number, memory = self._sent, self._sent % MAX_CHUNKS
        self._sent += 1
        layout = self._memories[memory].write(arrays)
        with suppress(OSError):  # it has died: `receive` will raise
            self.connection.send((number, memory, layout))

    def receive(self) -> WorkerReady | ChunkResult | None:
        """Its next message, None if that is not for the dispatcher; raises EOFError when it is gone."""
        kind, *rest = self._read()
        if kind == READY:
            self._is_ready = True
            return WorkerReady(self.number, rest[0])
        if kind == FAILED:
            self.failure = rest[0]
            return None
        self.truncate_log()
        number, *rest = rest
        if number != self._answered:
            raise EOFError("it answers a chunk that it was not sent")
        self._answered += 1
        if kind == RAISED:
            return ChunkResult(self.number, *rest)
        assert kind == DONE
        memory, layout, errors, seconds = rest
        return ChunkResult(self.number, executions_of(self._memories[memory], layout, errors), seconds)

    def _read(self) -> Any:
        try:
            return self.connection.recv()
        except EOFError:
            raise
        except Exception as error:  # half a message, or something that its simulator wrote to the socket
            raise EOFError from error

    def abort_late_start(self, start_seconds: float) -> None:
        """Abort it if it did not get ready within `start_seconds`."""
        if not self._is_ready and time.monotonic() - self._started_at > start_seconds and not self.failure:
            self.failure = f"it was not ready within {start_seconds:g} s"
            self.is_late = True
            self.abort()


def _new_file(stack: ExitStack, name: str) -> int:
    descriptor = anonymous_file(name)
    stack.callback(os.close, descriptor)
    return descriptor
