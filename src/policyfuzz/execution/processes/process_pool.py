"""A pool of worker processes on this machine."""

import os
import resource
import selectors
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.execution.processes.reaper import Reaper, kill_group, kill_marked, new_mark
from policyfuzz.execution.processes.worker import anonymous_file
from policyfuzz.execution.processes.worker_process import WorkerProcess
from policyfuzz.execution.worker_pool import Message, WorkerLost

#: Seconds between two checks that processes are still there; most deaths are noticed at once.
_CHECK_SECONDS = 1.0
#: Seconds for a worker to get ready: large models lie on slow disks.
_START_SECONDS = 600.0
#: Open files that are enough for thousands of workers; many systems allow 1,024 by default.
_OPEN_FILES = 65_536


class ProcessPool:
    """Workers are fresh interpreters, which each build the target of a `shipment` within `start_seconds`."""

    def __init__(self, shipment: bytes, start_seconds: float = _START_SECONDS) -> None:
        self._shipment = anonymous_file("shipment")
        with open(self._shipment, "wb", closefd=False) as file:
            file.write(shipment)
        self._start_seconds = start_seconds
        self._mark = new_mark()  # in the environment of all workers and their children
        self._reaper = Reaper(self._mark)
        self._workers: dict[int, WorkerProcess] = {}
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._is_woken = False
        self._checked_at = time.monotonic()
        self._failed_starts: list[Message] = []
        _raise_open_files_limit()

    def start(self, worker: int) -> None:
        try:
            process = WorkerProcess(worker, self._shipment, f"{self._mark}{worker}.")
        except OSError as error:
            self._failed_starts.append(WorkerLost(worker, f"no process can be started: {error}"))
            return
        self._reaper.watch(process.group)
        self._workers[worker] = process
        self._selector.register(process.connection, selectors.EVENT_READ, worker)

    def send(
        self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *branches: NDArray[Any]
    ) -> None:
        self._workers[worker].send(inputs, seeds, *branches)

    def wait(self, seconds: float | None) -> Sequence[Message]:
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _CHECK_SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
            messages, self._failed_starts = self._failed_starts, []
            messages += self._receive(0.0 if messages else min(left, _CHECK_SECONDS))
            if time.monotonic() - self._checked_at >= _CHECK_SECONDS:
                messages += self._check_processes()
            is_over = deadline is not None and time.monotonic() >= deadline
            if messages or is_over or self._is_woken:
                return messages

    def wake(self) -> None:
        """Let `wait` return, from any thread."""
        os.write(self._wake_writer, b".")

    def kill(self, worker: int) -> None:
        if worker in self._workers:
            self._workers[worker].abort()

    def close(self) -> None:
        for process in self._workers.values():
            kill_group(process.group)
        kill_marked(self._mark)
        for process in self._workers.values():
            process.close()
            self._reaper.forget(process.group)
        self._workers.clear()
        self._reaper.close()
        self._selector.close()
        for descriptor in (self._shipment, self._wake_reader, self._wake_writer):
            os.close(descriptor)

    def _receive(self, seconds: float) -> list[Message]:
        self._is_woken = False
        messages: list[Message | None] = []
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                os.read(self._wake_reader, 4096)
                self._is_woken = True
            else:
                messages.append(self._receive_from(key.data))
        return [message for message in messages if message is not None]

    def _receive_from(self, worker: int) -> Message | None:
        try:
            return self._workers[worker].receive()
        except EOFError:
            return self._remove(worker)

    def _check_processes(self) -> list[Message]:
        """Enforce time limits, and find workers that died while a child holds their socket open."""
        self._checked_at = time.monotonic()
        for process in self._workers.values():
            process.abort_late_start(self._start_seconds)
            process.kill_if_abort_failed()
            process.truncate_log()
        # messages that they sent before come first
        ended = [n for n, process in self._workers.items() if process.has_ended and not process.has_message]
        return [self._remove(worker) for worker in ended]

    def _remove(self, worker: int) -> WorkerLost:
        process = self._workers.pop(worker)
        self._selector.unregister(process.connection)
        text, step = process.describe_end(), process.step
        process.kill()
        process.close()
        self._reaper.forget(process.group)
        return WorkerLost(worker, text, step, is_late=process.is_late)


def _raise_open_files_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < limit:
        with suppress(OSError, ValueError):  # some systems allow fewer
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
