"""A fresh interpreter beside the coordinator, which may crash, exit or hang without harm."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from policyfuzz.execution.processes.reaper import VARIABLE, kill_group, kill_marked
from policyfuzz.execution.processes.worker import anonymous_file

#: Seconds for an aborted process to write its traceback before it is killed.
_ABORT_SECONDS = 1.0
#: Bytes of its last output that error messages quote, and that are kept at most.
_QUOTED, _KEPT = 4_000, 1_000_000
#: Makes the usual numerical libraries use one thread: workers share the cores already.
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)


class IsolatedProcess:
    """Runs a module of this package in a new session, with a socket to it and its output in a file.

    All processes that it starts carry its `mark` in their environment.
    """

    def __init__(
        self, module: str, mark: str, files: Sequence[int] = (), variables: dict[str, str] | None = None
    ) -> None:
        """The arguments of the module are the descriptors of the socket and of `files`."""
        self.mark = mark
        self.failure = ""  #: why it ended, if we know
        self._aborted_at: float | None = None
        with ExitStack() as stack:  # closes what was opened if something fails
            self._log = anonymous_file("log")
            stack.callback(os.close, self._log)
            fcntl.fcntl(self._log, fcntl.F_SETFL, fcntl.fcntl(self._log, fcntl.F_GETFL) | os.O_APPEND)
            mine, its = map(stack.enter_context, socket.socketpair())
            passed = (its.fileno(), *files)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-X", "faulthandler", "-m", module, *map(str, passed)],
                pass_fds=passed,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,  # Ctrl-C is for the coordinator
                env=_environment() | (variables or {}) | {VARIABLE: mark},
            )
            its.close()
            self.connection: Connection[Any, Any] = stack.enter_context(Connection(mine.detach()))
            self._resources = stack.pop_all()

    @property
    def group(self) -> int:
        """The id of its process group."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True if the process has ended."""
        return self._process.poll() is not None

    def abort(self) -> None:
        """Let it print where it is, and end."""
        self._aborted_at = time.monotonic()
        self._process.send_signal(signal.SIGABRT)  # which faulthandler answers with a traceback

    def kill_if_abort_failed(self) -> None:
        """Kill it if it was aborted a while ago and is still there."""
        if self._aborted_at is not None and time.monotonic() - self._aborted_at > _ABORT_SECONDS:
            kill_group(self.group)

    def truncate_log(self) -> None:
        """Drop its output if there is a lot of it."""
        if os.fstat(self._log).st_size > _KEPT:
            os.ftruncate(self._log, 0)

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
            return f"{printed}\n{self.failure}".strip()
        return self.failure or f"{printed}\n{_describe_exit(code)}".strip()

    def kill(self) -> None:
        """Kill it and its children, if they are still there."""
        kill_group(self.group)
        kill_marked(self.mark)

    def close(self) -> None:
        """Release its socket and files, after it was killed."""
        self._process.wait()
        self._resources.close()


def _environment() -> dict[str, str]:
    """Environment variables that make it import this very package."""
    home = Path(__file__).parents[3]
    path = os.environ.get("PYTHONPATH", "")
    if "site-packages" not in home.parts:
        path = f"{home}{os.pathsep}{path}" if path else str(home)
    return os.environ | ({"PYTHONPATH": path} if path else {})


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"the worker process ended itself with exit code {code}"
    known, meaning = {one.value: one.name for one in signal.Signals}, signal.strsignal(-code)
    name = known.get(-code, f"signal {-code}")
    cause = "; was it out of memory?" if -code == signal.SIGKILL else ""
    return f"the worker process was killed by {name} ({meaning}){cause}"
