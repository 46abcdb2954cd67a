"""What runs batches, in order: the protocol, the executor in this process, and the choice of one."""

import math
import os
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.branches import Branches
from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.core.target import RunBranches, Runner, Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose

if TYPE_CHECKING:
    from policyfuzz.execution.dispatch import Dispatcher
    from policyfuzz.execution.worker_pool import WorkerPool


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


#: How long a slice of a batch may take: seconds, or share of the time that is left.
_SLICE_SECONDS, _SLICE_SHARE = 1.0, 0.5


class InlineExecutor:
    """Runs a batch in this process when its results are collected.

    Between two slices of a batch it can stop in time; how a batch is sliced changes no result.
    """

    def __init__(self, target: Target, clock: TimeSplit) -> None:
        self._runner = Runner(target)
        self._clock = clock
        self._queue: deque[Cases] = deque()
        self._done: list[Executions] = []  #: slices of the oldest batch
        self._rate = 0.0  #: episodes per second, 0 before the first
        self._started_at = time.perf_counter()

    def submit(self, cases: Cases) -> None:
        self._queue.append(cases)

    def collect(self, seconds: float | None = None) -> Executions:
        cases = self._queue[0]
        end = math.inf if seconds is None else time.monotonic() + seconds
        with self._clock.activity("simulate"):
            while (done := sum(map(len, self._done))) < len(cases) or not self._done:
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeIsUp
                self._done.append(self._run_slice(cases[done:][: self._affordable(left)]))
        self._queue.popleft()
        parts, self._done = self._done, []
        return concatenate(parts)

    def _affordable(self, seconds: float) -> int | None:
        """How many episodes to run at once when `seconds` are left; None for all."""
        if math.isinf(seconds):
            return None
        return max(1, int(self._rate * min(seconds, max(_SLICE_SECONDS, _SLICE_SHARE * seconds))))

    def _run_slice(self, cases: Cases) -> Executions:
        started = time.monotonic()
        executions = self._runner(cases.inputs, cases.seeds)
        rate = len(cases) / max(time.monotonic() - started, 1e-9)
        self._rate = max(
            rate, self._rate / 2
        )  # few episodes at once look slow where many are stepped together
        return executions

    @property
    def worker_stats(self) -> WorkerStats:
        return WorkerStats(
            worker_seconds=time.perf_counter() - self._started_at,
            busy_seconds=self._clock.seconds.get("simulate", 0.0),
        )

    def close(self) -> None:
        self._queue.clear()


INLINE, PROCESSES, RAY = "inline", "processes", "ray"
#: Default time-out of an episode in a worker, in seconds.
TIMEOUT = 300.0
#: Seconds that a worker may take to build its target even if episodes have less.
_MIN_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ExecutorChoice:
    """Which executor to use, and its options."""

    kind: str = INLINE
    workers: int | None = None  #: None for one per core
    timeout: float = TIMEOUT  #: seconds for an episode in a worker
    address: str = ""  #: of a Ray cluster; empty to start one

    @property
    def is_inline(self) -> bool:
        """True if this process runs the episodes."""
        return self.kind == INLINE

    @property
    def start_seconds(self) -> float:
        """Seconds to load or build a target: large models lie on slow disks."""
        return max(2 * self.timeout, _MIN_START_SECONDS)

    def make_executor(self, target: Target, clock: TimeSplit) -> Executor:
        """Start the executor for the batches of a campaign on `target`."""
        if self.kind == INLINE:
            return InlineExecutor(target, clock)
        return self.start_dispatcher(target, clock)

    def start_dispatcher(self, target: Target, clock: TimeSplit) -> "Dispatcher":
        """Start workers, and what shares batches among them."""
        from policyfuzz.execution.dispatch import Dispatcher

        pool, workers = self._start_pool(target)
        try:
            return Dispatcher(target, pool, workers, self.timeout, clock)
        except BaseException:
            pool.close()
            raise

    def make_runner(self, target: Target) -> RunBranches:
        """Start what runs single episodes outside of a campaign: just as isolated, always on this machine."""
        if self.kind == INLINE:
            return Runner(target)
        workers = self.workers if self.kind == PROCESSES else 1
        return _IsolatedRunner(target, ExecutorChoice(PROCESSES, workers, self.timeout))

    def _start_pool(self, target: Target) -> tuple["WorkerPool", int]:
        """A pool, and the number of workers it should have."""
        from policyfuzz.execution.shipping import pack

        workers = _limited_workers(target, self.workers)
        if self.kind == RAY:
            from policyfuzz.execution.ray.ray_pool import RayPool

            pool = RayPool(pack(target), self.address or None, workers)
            return pool, workers or pool.cpus
        if not hasattr(os, "killpg"):
            raise UsageError("worker processes need Linux or macOS", "run without -j and --timeout")
        from policyfuzz.execution.processes.process_pool import ProcessPool

        return ProcessPool(pack(target), self.start_seconds), workers or usable_cores()


def choose_executor(
    name: str | None = None, workers: int | None = None, timeout: float | None = None
) -> ExecutorChoice:
    """The executor that `name` says: inline, processes, or ray[:ADDRESS].

    Without a name, `workers` or `timeout` (seconds per episode) select worker processes; otherwise the
    campaign's own process runs the episodes.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}, expected 1 or more")
    if timeout is not None and not timeout > 0:
        raise UsageError(f"timeout is {timeout:g} s, expected more than 0")
    kind, _, address = (name or "").partition(":")
    kind = kind or (INLINE if workers is None and timeout is None else PROCESSES)
    if kind not in (INLINE, PROCESSES, RAY):
        raise unknown_name("executor", kind, (INLINE, PROCESSES, RAY))
    if address and kind != RAY:
        raise UsageError(f"executor {kind} has no address, and was given {address!r}", "write ray:ADDRESS")
    if kind == INLINE and (workers is not None or timeout is not None):
        raise UsageError(
            "the executor inline has no workers, and cannot stop what hangs",
            "leave out -j and --timeout, or --executor inline",
        )
    return ExecutorChoice(kind, workers, timeout or TIMEOUT, address)


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _IsolatedRunner:
    """Runs episodes of `target` in worker processes, which end when this object is deleted."""

    def __init__(self, target: Target, choice: ExecutorChoice) -> None:
        self._dispatcher = choice.start_dispatcher(target, TimeSplit())
        weakref.finalize(self, self._dispatcher.close)

    def __call__(
        self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *, branches: Branches | None = None
    ) -> Executions:
        """Run one episode for each row of `inputs` (n, d) with case seeds (n,), and with its `branches`."""
        parents = np.full(len(inputs), NO_PARENT, np.int64)
        self._dispatcher.submit(Cases.of(Purpose.SAMPLE, inputs, seeds, parents), branches)
        return self._dispatcher.collect()


def _limited_workers(target: Target, workers: int | None) -> int | None:
    """`workers`, or the target's limit if the user gave no number; more than the limit is an error."""
    limit = target.max_workers
    if limit is not None and workers is not None and workers > limit:
        raise UsageError(
            f"target {target.name} can be run by {limit} worker{'s' if limit > 1 else ''} at a time,"
            f" and was given {workers}",
            f"use -j {limit}",
        )
    return limit if workers is None else workers
