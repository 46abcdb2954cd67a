"""The executor protocol: runs batches in order. `InlineExecutor` runs them in this process."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Runner, Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.cases import Cases


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """How many workers there are, and how busy they have been."""

    wanted: int = 1  #: workers that the user asked for
    ready: int = 1  #: workers that can run episodes now
    worker_seconds: float = 0.0  #: `wanted` times the seconds since the first worker was ready
    busy_seconds: float = 0.0  #: the part of these spent running episodes
    restarts: int = 0  #: workers that had to be replaced


class TimeIsUp(Exception):
    """The results did not arrive in time."""


class Executor(Protocol):
    """Runs batches of cases and returns results in the order of submission."""

    def submit(self, cases: Cases) -> None:
        """Queue a batch."""
        ...

    def collect(self, seconds: float | None = None) -> Executions:
        """Wait for the results of the oldest batch that was not collected yet.

        An executor that can stop waiting raises `TimeIsUp` after `seconds`; the batch stays queued.
        """
        ...

    @property
    def worker_stats(self) -> WorkerStats:
        """State and use of the workers."""
        ...

    def close(self) -> None:
        """Release everything; batches that were not collected are lost."""
        ...


#: Makes an executor for a target. The executor adds the time it spends simulating to the clock.
MakeExecutor = Callable[[Target, TimeSplit], Executor]


class InlineExecutor:
    """Runs a batch in this process when its results are collected."""

    def __init__(self, target: Target, clock: TimeSplit) -> None:
        self._runner = Runner(target)
        self._clock = clock
        self._queue: deque[Cases] = deque()
        self._started_at = time.perf_counter()

    def submit(self, cases: Cases) -> None:
        self._queue.append(cases)

    def collect(self, seconds: float | None = None) -> Executions:
        cases = self._queue.popleft()
        with self._clock.activity("simulate"):
            return self._runner(cases.inputs, cases.seeds)

    @property
    def worker_stats(self) -> WorkerStats:
        return WorkerStats(
            worker_seconds=time.perf_counter() - self._started_at,
            busy_seconds=self._clock.seconds.get("simulate", 0.0),
        )

    def close(self) -> None:
        self._queue.clear()
