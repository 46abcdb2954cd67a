"""The dispatcher shares batches among the workers of a pool, and loses no case when workers die or hang."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from policyfuzz.core.branches import Branches
from policyfuzz.core.errors import WorkersFailed, raise_pending_interrupt
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import CRASHED, HUNG, EpisodeError
from policyfuzz.core.rollout import not_run
from policyfuzz.core.target import Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.chunks import Batch, Chunk, ChunkSizer
from policyfuzz.execution.executor import TimeIsUp, WorkerStats
from policyfuzz.execution.worker_pool import (
    MAX_CHUNKS,
    ChunkResult,
    Message,
    WorkerLost,
    WorkerPool,
    WorkerReady,
)
from policyfuzz.search.cases import Cases

#: Workers that must die while running a single case before the case is recorded as crashed.
_DEATHS_TO_BLAME = 2
#: Time-outs of a case before it is recorded as hung: at the first one the whole machine may have stood still.
_TIMEOUTS_TO_BLAME = 2
#: Seconds that a wait may exceed its limit before the clocks of all chunks restart.
_STANDSTILL_SECONDS = 1.0
#: Failed starts in a row before a worker is not replaced any more.
_MAX_FAILED_STARTS = 3


class Dispatcher:
    """An executor over the workers of a `pool`.

    Episodes do not depend on their neighbours. So batches may be cut anywhere, and chunks may run in any
    order, by any worker, twice if need be: the results are the same. A chunk whose worker dies, or that takes
    longer than `timeout` seconds, is cut into pieces that run again. In the end the guilty case is alone: it
    is given up and gets an error. All others get their results.
    """

    def __init__(
        self,
        target: Target,
        pool: WorkerPool,
        workers: int,
        timeout: float,
        clock: TimeSplit | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target, self._pool, self._wanted, self._timeout = target, pool, workers, timeout
        self._clock, self._now = clock or TimeSplit(), now
        self._batches: deque[Batch] = deque()
        self._window = 1  #: the most batches in flight so far
        self._retries: deque[Chunk] = deque()  #: chunks to run again
        self._suspects: deque[Chunk] = deque()  #: single cases whose worker has died
        self._queues = _WorkerQueues()
        self._next_worker = 0
        self._sizer = ChunkSizer(workers, timeout)
        self._signals: tuple[str, ...] = ()
        self._first_ready_at: float | None = None
        self._busy_seconds = 0.0
        self._restarts = self._failed_starts = 0
        self._last_wait_at = now()
        for _ in range(workers):
            self._start_worker()

    def submit(self, cases: Cases, branches: Branches | None = None) -> None:
        self._batches.append(Batch(cases, branches))
        self._window = max(self._window, len(self._batches))
        self._handle(self._pool.wait(0))
        self._fill_queues()

    def collect(self, seconds: float | None = None) -> Executions:
        raise_pending_interrupt()
        batch, end = self._batches[0], math.inf if seconds is None else self._now() + seconds
        with self._clock.activity("simulate"):
            self._restart_clocks_if_late(self._last_wait_at)
            try:
                while batch.missing:
                    if self._now() > end:
                        raise TimeIsUp
                    self._fill_queues()
                    self._wait_for_messages(end)
                    self._kill_overdue()
            finally:
                self._last_wait_at = self._now()
            self._batches.popleft()
            self._fill_queues()
            return batch.executions()

    @property
    def worker_stats(self) -> WorkerStats:
        seconds = 0.0 if self._first_ready_at is None else self._now() - self._first_ready_at
        return WorkerStats(
            self._wanted, self._queues.ready, self._wanted * seconds, self._busy_seconds, self._restarts
        )

    def close(self) -> None:
        self._pool.close()

    def _start_worker(self) -> None:
        self._pool.start(self._next_worker)
        self._queues.add(self._next_worker)
        self._next_worker += 1

    def _fill_queues(self) -> None:
        """Send chunks to all workers that hold too few; idle workers come first."""
        self._send_suspects()
        for held in range(self._sizer.queue_depth):
            while (number := self._queues.next_holding(held)) is not None:
                chunk = self._next_chunk()
                if chunk is None:
                    return
                self._send(number, chunk)

    def _send_suspects(self) -> None:
        """Send suspects to unused workers, which cannot die of earlier episodes."""
        while self._suspects and (number := self._queues.next_unused) is not None:
            self._send(number, self._suspects.popleft())
        if self._suspects and not self._queues.starting:  # no unused worker will come
            self._retries.extendleft(reversed(self._suspects))
            self._suspects.clear()

    def _send(self, worker: int, chunk: Chunk) -> None:
        self._queues.push(worker, chunk, self._now())
        cases, rows, branches = chunk.batch.cases, slice(chunk.start, chunk.stop), chunk.batch.branches
        further = () if branches is None else branches[rows].arrays
        self._pool.send(worker, cases.inputs[rows], cases.seeds[rows], *further)

    def _next_chunk(self) -> Chunk | None:
        if self._retries:
            return self._retries.popleft()
        for batch in self._batches:
            if batch.cut < len(batch.cases):
                start = batch.cut
                size = self._sizer.chunk_size(len(batch.cases), self._window)
                batch.cut = min(len(batch.cases), start + size)
                return Chunk(batch, start, batch.cut)
        return None

    def _wait_for_messages(self, end: float) -> None:
        """Handle the next messages; returns without any at `end`, or when a chunk is overdue."""
        limit, started = self._wait_limit(end), self._now()
        messages = self._pool.wait(limit)
        if limit is not None:
            self._restart_clocks_if_late(started + limit)
        self._handle(messages)

    def _wait_limit(self, end: float) -> float | None:
        """Seconds until the next chunk is overdue, or until `end`."""
        slowest = self._queues.slowest
        end = end if slowest is None else min(end, slowest[1] + self._timeout)
        return None if math.isinf(end) else max(0.0, end - self._now())

    def _restart_clocks_if_late(self, expected: float) -> None:
        """Restart all clocks if it is much later than `expected`: the whole machine may have stood still."""
        if self._now() - expected > _STANDSTILL_SECONDS:
            self._queues.restart_clocks(self._now())

    def _kill_overdue(self) -> None:
        now = self._now()  # read once: killing takes time, in which other workers may have answered
        while (slowest := self._queues.slowest) and now - slowest[1] > self._timeout:
            worker, began = slowest
            self._busy_seconds += now - began
            self._queues.mark_killed(worker)
            self._pool.kill(worker)

    def _handle(self, messages: Iterable[Message]) -> None:
        for message in messages:
            match message:
                case WorkerReady():
                    self._handle_ready(message)
                case ChunkResult():
                    self._handle_result(message)
                case WorkerLost():
                    self._handle_lost(message)

    def _handle_ready(self, ready: WorkerReady) -> None:
        self._queues.set_ready(ready.worker)
        self._signals = ready.signals
        self._failed_starts = 0
        for _ in range(self._wanted - len(self._queues)):  # workers that were not replaced may start now
            self._start_worker()
        if self._first_ready_at is None:
            self._first_ready_at = self._now()

    def _handle_result(self, message: ChunkResult) -> None:
        chunk = self._queues.pop(message.worker, self._now())
        self._busy_seconds += message.seconds
        self._sizer.learn(len(chunk), message.seconds)
        chunk.batch.add_result(chunk, message.result)

    def _handle_lost(self, lost: WorkerLost) -> None:
        began = self._queues.began(lost.worker)
        self._busy_seconds += 0.0 if began is None else self._now() - began
        worker = self._queues.remove(lost.worker)
        chunks = list(worker.chunks)
        # a worker may finish the chunk it is killed for at the last moment; the rest is innocent then
        if lost.is_node_failure or not chunks or worker.killed_for not in (None, chunks[0]):
            self._retries.extendleft(reversed(chunks))
        else:
            self._retries.extendleft(reversed(chunks[1:]))
            self._retry_or_blame(chunks[0], lost, worker.killed_for is not None)
        if worker.is_ready or lost.is_node_failure:
            self._restarts += 1
            self._start_worker()
        else:
            self._handle_failed_start(lost)

    def _handle_failed_start(self, lost: WorkerLost) -> None:
        """Try again a few times, then continue with the other workers if there are any."""
        self._failed_starts += 1
        if self._failed_starts < _MAX_FAILED_STARTS and not lost.is_late:
            self._start_worker()
        elif not len(self._queues):
            raise WorkersFailed(
                f"no worker gets ready to run target {self._target.name}, after {self._failed_starts} that"
                f" failed to start:\n{lost.text}",
                "without -j and --executor, the same is run in one process: does it work there?",
            )

    def _retry_or_blame(self, chunk: Chunk, lost: WorkerLost, is_timeout: bool) -> None:
        """Narrow down which case of `chunk` killed its worker or hangs; give it up once that is certain."""
        if is_timeout:
            chunk = replace(chunk, timeouts=chunk.timeouts + 1)
        else:
            chunk = replace(chunk, deaths=chunk.deaths + 1)
        if len(chunk) > 1:
            self._retries.extendleft(reversed(chunk.pieces()))
        elif is_timeout and chunk.timeouts >= _TIMEOUTS_TO_BLAME:
            text = f"{lost.text}\nno answer within {self._timeout:g} s"
            self._give_up(chunk, EpisodeError(HUNG, lost.step, text.strip()))
        elif not is_timeout and chunk.deaths >= _DEATHS_TO_BLAME:
            self._give_up(chunk, EpisodeError(CRASHED, lost.step, lost.text))
        elif is_timeout:
            self._retries.appendleft(chunk)
        else:  # something else may have killed the worker
            self._suspects.append(chunk)

    def _give_up(self, chunk: Chunk, error: EpisodeError) -> None:
        chunk.batch.add_result(chunk, not_run(error, self._target.oracle, self._signals))


@dataclass(slots=True)
class _WorkerState:
    """What one worker is doing."""

    is_ready: bool = False
    killed_for: Chunk | None = None  #: the chunk that took too long
    chunks: deque[Chunk] = field(default_factory=deque)  #: that it holds, the oldest first


class _WorkerQueues:
    """The chunks that each worker holds, and since when. Times are those of any monotonic clock.

    Nothing here iterates over all workers for each message: there may be thousands.
    """

    def __init__(self) -> None:
        self._workers: dict[int, _WorkerState] = {}
        #: Workers that can take another chunk, by the number they hold; who has waited longest comes first.
        self._with_room: list[dict[int, None]] = [{} for _ in range(MAX_CHUNKS)]
        self._unused: dict[int, None] = {}  #: workers that are ready and never held a chunk
        #: When each busy worker began its oldest chunk; the earliest come first.
        self._began: dict[int, float] = {}

    def __len__(self) -> int:
        """The number of workers, ready or not."""
        return len(self._workers)

    @property
    def ready(self) -> int:
        """The number of workers that can run episodes."""
        return sum(worker.is_ready for worker in self._workers.values())

    @property
    def starting(self) -> int:
        """The number of workers that are not ready yet."""
        return len(self._workers) - self.ready

    @property
    def next_unused(self) -> int | None:
        """A worker that is ready and never held a chunk, if there is one."""
        return next(iter(self._unused), None)

    @property
    def slowest(self) -> tuple[int, float] | None:
        """The worker that began its oldest chunk first, and when; None if no worker is busy."""
        return next(iter(self._began.items()), None)

    def add(self, number: int) -> None:
        """Add a worker that is not ready yet."""
        self._workers[number] = _WorkerState()

    def set_ready(self, number: int) -> None:
        """The worker can take chunks from now on."""
        self._workers[number].is_ready = True
        self._with_room[0][number] = self._unused[number] = None

    def next_holding(self, chunks: int) -> int | None:
        """A worker that holds so many chunks and can take another, if there is one."""
        return next(iter(self._with_room[chunks]), None)

    def push(self, number: int, chunk: Chunk, now: float) -> None:
        """The worker gets a chunk."""
        self._unused.pop(number, None)
        chunks = self._workers[number].chunks
        del self._with_room[len(chunks)][number]
        chunks.append(chunk)
        self._began.setdefault(number, now)
        if len(chunks) < MAX_CHUNKS:
            self._with_room[len(chunks)][number] = None

    def pop(self, number: int, now: float) -> Chunk:
        """The worker has done its oldest chunk."""
        worker = self._workers[number]
        held = len(worker.chunks)
        chunk = worker.chunks.popleft()
        if worker.killed_for is None:
            if held < MAX_CHUNKS:
                del self._with_room[held][number]
            self._with_room[held - 1][number] = None
            del self._began[number]
            if worker.chunks:
                self._began[number] = now
        return chunk

    def restart_clocks(self, now: float) -> None:
        """Count time on all chunks from `now`."""
        self._began = dict.fromkeys(self._began, now)

    def began(self, number: int) -> float | None:
        """When the worker began its oldest chunk; None if it holds none, or was killed for it."""
        return self._began.get(number)

    def mark_killed(self, number: int) -> None:
        """The worker gets no more chunks, since its oldest one takes too long."""
        worker = self._workers[number]
        worker.killed_for = worker.chunks[0]
        self._unlist(number)

    def remove(self, number: int) -> _WorkerState:
        """Remove a worker that is gone, and return what it was doing."""
        self._unlist(number)
        return self._workers.pop(number)

    def _unlist(self, number: int) -> None:
        self._began.pop(number, None)
        self._unused.pop(number, None)
        for workers in self._with_room:
            workers.pop(number, None)
