"""One worker process, seen from the coordinator."""

import fcntl
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.execution.processes import worker as worker_module
from policyfuzz.execution.processes.reaper import VARIABLE, kill_group, kill_marked
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

#: Seconds for an aborted process to write its traceback before it is killed.
_ABORT_SECONDS = 1.0
#: Bytes of a worker's last output that error messages quote, and that are kept at most.
_QUOTED, _KEPT = 4_000, 1_000_000
#: Makes the usual numerical libraries use one thread: workers share the cores already.
_ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)


class WorkerProcess:
    """A fresh interpreter in a new session; see `worker` for what it does.

    `shipment` is the descriptor of a file with the packed target. All processes that the worker starts carry
    its `mark` in their environment.
    """

    def __init__(self, number: int, shipment: int, mark: str) -> None:
        self.number, self.mark = number, mark
        with ExitStack() as stack:  # closes what was opened if something fails
            self._resources = stack
            self._open(shipment)
            self._resources = stack.pop_all()

    def _open(self, shipment: int) -> None:
        memories = [self._new_file("chunk") for _ in range(MAX_CHUNKS)]
        step = self._new_file("step")
        os.ftruncate(step, STEP_BYTES)
        self._log = self._new_file("log")
        fcntl.fcntl(self._log, fcntl.F_SETFL, fcntl.fcntl(self._log, fcntl.F_GETFL) | os.O_APPEND)
        self._step = np.ndarray((1,), np.int64, mmap.mmap(step, STEP_BYTES))
        self._memories = [SharedArrays(memory) for memory in memories]
        self._sent = self._answered = 0
        self._failure = ""
        self._started_at, self._is_ready = time.monotonic(), False
        self._aborted_at: float | None = None
        mine, its = map(self._resources.enter_context, socket.socketpair())
        passed = (its.fileno(), shipment, step, *memories)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-X", "faulthandler", "-m", worker_module.__name__, *map(str, passed)],
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for the coordinator
            env=_environment() | {VARIABLE: self.mark},
        )
        its.close()
        self.connection: Connection[Any, Any] = self._resources.enter_context(Connection(mine.detach()))

    def _new_file(self, name: str) -> int:
        descriptor = anonymous_file(name)
        self._resources.callback(os.close, descriptor)
        return descriptor

    @property
    def group(self) -> int:
        """The id of its process group."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True if the process has ended."""
        return self._process.poll() is not None

    @property
    def has_message(self) -> bool:
        """True if `receive` returns at once, or raises EOFError."""
        return self.connection.poll()

    @property
    def step(self) -> int:
        """The step of its episodes, 0 for the reset."""
        return int(self._step[0])

    def send(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> None:
        """Send it cases to run."""
        number, memory = self._sent, self._sent % MAX_CHUNKS
        self._sent += 1
        layout = self._memories[memory].write([inputs, seeds])
        with suppress(OSError):  # it has died: `receive` will raise
            self.connection.send((number, memory, layout))

    def receive(self) -> WorkerReady | ChunkResult | None:
        """Its next message, None if that is not for the dispatcher; raises EOFError when it is gone."""
        kind, *rest = self._read()
        if kind == READY:
            self._is_ready = True
            return WorkerReady(self.number, rest[0])
        if kind == FAILED:
            self._failure = rest[0]
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

    def abort(self) -> None:
        """Let it print where it is, and end."""
        self._aborted_at = time.monotonic()
        self._process.send_signal(signal.SIGABRT)  # which faulthandler answers with a traceback

    def abort_late_start(self, start_seconds: float) -> None:
        """Abort it if it did not get ready within `start_seconds`."""
        if not self._is_ready and time.monotonic() - self._started_at > start_seconds and not self._failure:
            self._failure = f"it was not ready within {start_seconds:g} s"
            self.abort()

    def truncate_log(self) -> None:
        """Drop its output if there is a lot of it."""
        if os.fstat(self._log).st_size > _KEPT:
            os.ftruncate(self._log, 0)

    def kill_if_abort_failed(self) -> None:
        """Kill it if it was aborted a while ago and is still there."""
        if self._aborted_at is not None and time.monotonic() - self._aborted_at > _ABORT_SECONDS:
            kill_group(self.group)

    def describe_end(self) -> str:
        """How it ended, and its last output. Kills it if it only closed its socket."""
        try:
            code = self._process.wait(_ABORT_SECONDS)
        except subprocess.TimeoutExpired:  # it closed its socket but still runs
            kill_group(self.group)
            code = self._process.wait()
        size = os.fstat(self._log).st_size
        printed = os.pread(self._log, _QUOTED, max(0, size - _QUOTED)).decode(errors="replace").strip()
        if self._aborted_at is not None:
            return f"{printed}\n{self._failure}".strip()
        return self._failure or f"{printed}\n{_describe_exit(code)}".strip()

    def kill(self) -> None:
        """Kill it and its children, if they are still there."""
        kill_group(self.group)
        kill_marked(self.mark)

    def close(self) -> None:
        """Release shared memory and the socket, after it was killed."""
        self._process.wait()
        self._resources.close()


def _environment() -> dict[str, str]:
    """Environment variables of a worker. They make it import this very package."""
    home = Path(__file__).parents[3]
    path = os.environ.get("PYTHONPATH", "")
    if "site-packages" not in home.parts:
        path = f"{home}{os.pathsep}{path}" if path else str(home)
    return os.environ | _ONE_THREAD | ({"PYTHONPATH": path} if path else {})


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"the worker process ended itself with exit code {code}"
    known, meaning = {one.value: one.name for one in signal.Signals}, signal.strsignal(-code)
    name = known.get(-code, f"signal {-code}")
    cause = "; was it out of memory?" if -code == signal.SIGKILL else ""
    return f"the worker process was killed by {name} ({meaning}){cause}"
