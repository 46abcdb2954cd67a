"""A crew of worker processes on this machine."""

import os
import selectors
import time
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import UsageError
from policyfuzz.executors.crew import Lost, Message
from policyfuzz.executors.processes.process import WorkerProcess
from policyfuzz.executors.processes.reaper import Reaper
from policyfuzz.executors.processes.shared_arrays import anonymous_file

#: Seconds between two looks at whether processes are still there; most deaths are noticed at once.
_LOOK = 1.0
#: Seconds for a worker to get ready: large models lie on slow disks.
_START = 600.0


class ProcessCrew:
    """Starts interpreters that each build the target of a `shipment`, within `start_seconds`."""

    def __init__(self, shipment: bytes, start_seconds: float = _START) -> None:
        if not hasattr(os, "killpg"):
            raise UsageError("worker processes need Linux or macOS", "run without -j and --timeout")
        self._shipment = anonymous_file("shipment")
        with open(self._shipment, "wb", closefd=False) as file:
            file.write(shipment)
        self._start_seconds = start_seconds
        self._reaper = Reaper()
        self._workers: dict[int, WorkerProcess] = {}
        self._selector = selectors.DefaultSelector()
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        self._selector.register(self._wake_reader, selectors.EVENT_READ)
        self._is_woken = False
        self._looked_at = time.monotonic()

    def start(self, worker: int) -> None:
        process = WorkerProcess(worker, self._shipment)
        self._reaper.watch(process.group)
        self._workers[worker] = process
        self._selector.register(process.connection, selectors.EVENT_READ, worker)

    def send(self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> None:
        with suppress(OSError):  # it has died, which will be told
            self._workers[worker].send(inputs, seeds)

    def wait(self, seconds: float | None) -> Sequence[Message]:
        deadline = None if seconds is None else time.monotonic() + seconds
        while True:
            left = _LOOK if deadline is None else min(max(0.0, deadline - time.monotonic()), _LOOK)
            messages = self._heard(left)
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
        for worker in list(self._workers.values()):
            worker.close()
            self._reaper.forget(worker.group)
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
        except (EOFError, OSError):
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

    def _lost(self, worker: int) -> Lost:
        process = self._workers.pop(worker)
        self._selector.unregister(process.connection)
        text, step = process.last_words(), process.step
        process.close()
        self._reaper.forget(process.group)
        return Lost(worker, text, step)
