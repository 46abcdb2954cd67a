"""A pool of worker processes on this machine."""

import os
import resource
import selectors
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from policyfuzz.execution.processes.reaper import Reaper, kill_group, kill_marked
from policyfuzz.execution.processes.worker import anonymous_file
from policyfuzz.execution.processes.worker_process import WorkerProcess
from policyfuzz.execution.worker_pool import Message, WorkerLost

#: Seconds between two looks at whether processes are still there; most deaths are noticed at once.
_LOOK = 1.0
#: Seconds for a worker to get ready: large models lie on slow disks.
_START = 600.0
#: Open files that are enough for thousands of workers; many systems allow 1,024 unless one asks for more.
_MANY_FILES = 65_536


class ProcessPool:
    """Starts interpreters that each build the target of a `shipment`, within `start_seconds`."""

    def __init__(self, shipment: bytes, start_seconds: float = _START) -> None:
        self._shipment = anonymous_file("shipment")
        with open(self._shipment, "wb", closefd=False) as file:
            file.write(shipment)
        self._start_seconds = start_seconds
        self._mark = f"{uuid.uuid4().hex}."  # of all workers and what they start
        self._reaper = Reaper(self._mark)
        self._workers: dict[int, WorkerProcess] = {}
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._is_woken = False
        self._looked_at = time.monotonic()
        self._not_started: list[Message] = []
        _allow_many_files()

    def start(self, worker: int) -> None:
        try:
            process = WorkerProcess(worker, self._shipment, f"{self._mark}{worker}.")
        except OSError as error:
            self._not_started.append(WorkerLost(worker, f"no process can be started: {error}"))
            return
        self._reaper.watch(process.group)
        self._workers[worker] = process
        self._selector.register(process.connection, selectors.EVENT_READ, worker)

    def send(self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> None:
        self._workers[worker].send(inputs, seeds)

    def wait(self, seconds: float | None) -> Sequence[Message]:
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _LOOK if deadline is None else min(max(0.0, deadline - time.monotonic()), _LOOK)
            messages, self._not_started = self._not_started, []
            messages += self._heard(0.0 if messages else left)
            if time.monotonic() - self._looked_at >= _LOOK:
                messages += self._missed()
            is_over = deadline is not None and time.monotonic() >= deadline
            if messages or is_over or self._is_woken:
                return messages

    def wake(self) -> None:
        """Let `wait` return, in whatever thread it is."""
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

    def _heard(self, seconds: float) -> list[Message]:
        self._is_woken = False
        messages: list[Message | None] = []
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                os.read(self._wake_reader, 4096)
                self._is_woken = True
            else:
                messages.append(self._message(key.data))
        return [message for message in messages if message is not None]

    def _message(self, worker: int) -> Message | None:
        try:
            return self._workers[worker].receive()
        except EOFError:
            return self._lost(worker)

    def _missed(self) -> list[Message]:
        """Workers that have died, though somebody holds their end of the socket open."""
        self._looked_at = time.monotonic()
        for process in self._workers.values():
            process.hurry(self._start_seconds)
            process.insist()
            process.forget_old_words()
        # what they said before comes first
        ended = [n for n, process in self._workers.items() if process.has_ended and not process.is_heard]
        return [self._lost(worker) for worker in ended]

    def _lost(self, worker: int) -> WorkerLost:
        process = self._workers.pop(worker)
        self._selector.unregister(process.connection)
        text, step = process.last_words(), process.step
        process.kill()
        process.close()
        self._reaper.forget(process.group)
        return WorkerLost(worker, text, step)


def _allow_many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        with suppress(OSError, ValueError):  # some systems have limits of their own
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
