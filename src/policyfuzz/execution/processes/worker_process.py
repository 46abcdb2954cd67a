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
    NOTE_BYTES,
    RAISED,
    READY,
    SharedArrays,
    anonymous_file,
    executions_of,
)
from policyfuzz.execution.worker_pool import ChunkResult, WorkerReady

#: Seconds for a process to write down where it is before it is killed.
_LAST_WORDS = 1.0
#: Bytes of what a worker printed last that are told when it dies, and that are kept at most.
_TOLD, _KEPT = 4_000, 1_000_000
#: Work that a worker can be sent before it has answered: each has a piece of shared memory.
_SLOTS = 2
#: What makes the usual numerical libraries use one thread: workers share the cores already.
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
    """A fresh interpreter in a session of its own; see `worker` for what it does.

    `shipment` is the descriptor of a file with the packed target. All that the worker starts has its `mark`.
    """

    def __init__(self, number: int, shipment: int, mark: str) -> None:
        self.number, self.mark = number, mark
        with ExitStack() as stack:  # closes what there is, unless all goes well
            self._resources = stack
            self._open(shipment)
            self._resources = stack.pop_all()

    def _open(self, shipment: int) -> None:
        slots = [self._file("slot") for _ in range(_SLOTS)]
        note = self._file("note")
        os.ftruncate(note, NOTE_BYTES)
        self._log = self._file("log")
        fcntl.fcntl(self._log, fcntl.F_SETFL, fcntl.fcntl(self._log, fcntl.F_GETFL) | os.O_APPEND)
        self._note = np.ndarray((1,), np.int64, mmap.mmap(note, NOTE_BYTES))
        self._memories = [SharedArrays(slot) for slot in slots]
        self._sent = self._answered = 0
        self._failure = ""
        self._started_at, self._is_ready = time.monotonic(), False
        self._aborted_at: float | None = None
        mine, its = map(self._resources.enter_context, socket.socketpair())
        passed = (its.fileno(), shipment, note, *slots)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-X", "faulthandler", "-m", worker_module.__name__, *map(str, passed)],
            pass_fds=passed,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # Ctrl-C is for the coordinator; children of a worker are found by this
            env=_environment() | {VARIABLE: self.mark},
        )
        its.close()
        self.connection: Connection[Any, Any] = self._resources.enter_context(Connection(mine.detach()))

    def _file(self, name: str) -> int:
        descriptor = anonymous_file(name)
        self._resources.callback(os.close, descriptor)
        return descriptor

    @property
    def group(self) -> int:
        """Number of its process group."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True where there is no such process any more."""
        return self._process.poll() is not None

    @property
    def is_heard(self) -> bool:
        """True where there is something to receive, be it its end."""
        return self.connection.poll()

    @property
    def step(self) -> int:
        """The step that its episodes are at, 0 for the reset."""
        return int(self._note[0])

    def send(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> None:
        """Give it cases to run."""
        number, slot = self._sent, self._sent % _SLOTS
        self._sent += 1
        layout = self._memories[slot].write([inputs, seeds])
        with suppress(OSError):  # it has died, which will be heard
            self.connection.send((number, slot, layout))

    def receive(self) -> WorkerReady | ChunkResult | None:
        """What it says next, None if that is nothing to be told yet; EOFError when it is gone."""
        kind, *rest = self._heard()
        if kind == READY:
            self._is_ready = True
            return WorkerReady(self.number, rest[0])
        if kind == FAILED:
            self._failure = rest[0]
            return None
        self.forget_old_words()
        number, *rest = rest
        if number != self._answered:
            raise EOFError("it answers what it was not asked")
        self._answered += 1
        if kind == RAISED:
            return ChunkResult(self.number, *rest)
        assert kind == DONE
        slot, layout, errors, seconds = rest
        return ChunkResult(self.number, executions_of(self._memories[slot], layout, errors), seconds)

    def _heard(self) -> Any:
        try:
            return self.connection.recv()
        except EOFError:
            raise
        except Exception as error:  # half a message, or what its simulator has written there
            raise EOFError from error

    def abort(self) -> None:
        """Kill it, and have it print where it was."""
        self._aborted_at = time.monotonic()
        self._process.send_signal(signal.SIGABRT)  # which faulthandler answers with a traceback

    def hurry(self, start_seconds: float) -> None:
        """Abort it if it has not got ready for so long."""
        if not self._is_ready and time.monotonic() - self._started_at > start_seconds and not self._failure:
            self._failure = f"it was not ready within {start_seconds:g} s"
            self.abort()

    def forget_old_words(self) -> None:
        """Drop what it has printed, if that is much."""
        if os.fstat(self._log).st_size > _KEPT:
            os.ftruncate(self._log, 0)

    def insist(self) -> None:
        """Kill it by force, if it was aborted a while ago and is still there."""
        if self._aborted_at is not None and time.monotonic() - self._aborted_at > _LAST_WORDS:
            kill_group(self.group)

    def last_words(self) -> str:
        """How it ended, and what it printed last. It has ended, or is about to."""
        try:
            code = self._process.wait(_LAST_WORDS)
        except subprocess.TimeoutExpired:  # it has closed its end and goes on
            kill_group(self.group)
            code = self._process.wait()
        size = os.fstat(self._log).st_size
        printed = os.pread(self._log, _TOLD, max(0, size - _TOLD)).decode(errors="replace").strip()
        if self._aborted_at is not None:
            return f"{printed}\n{self._failure}".strip()
        return self._failure or f"{printed}\n{_ending(code)}".strip()

    def kill(self) -> None:
        """Kill it, if it is still there, and its children."""
        kill_group(self.group)
        kill_marked(self.mark)

    def close(self) -> None:
        """Let go of what was shared; it has been killed."""
        self._process.wait()
        self._resources.close()


def _environment() -> dict[str, str]:
    """Environment variables of a worker, which finds this very package."""
    home = Path(__file__).parents[3]
    path = os.environ.get("PYTHONPATH", "")
    if "site-packages" not in home.parts:
        path = f"{home}{os.pathsep}{path}" if path else str(home)
    return os.environ | _ONE_THREAD | ({"PYTHONPATH": path} if path else {})


def _ending(code: int) -> str:
    if code >= 0:
        return f"the worker process ended itself with exit code {code}"
    known, meaning = {one.value: one.name for one in signal.Signals}, signal.strsignal(-code)
    name = known.get(-code, f"signal {-code}")
    cause = "; was it out of memory?" if -code == signal.SIGKILL else ""
    return f"the worker process was killed by {name} ({meaning}){cause}"
