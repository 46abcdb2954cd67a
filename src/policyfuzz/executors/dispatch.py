"""Shares batches among the workers of a crew, and loses nothing when some of them die or hang."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from policyfuzz.episode_error import CRASHED, HUNG, EpisodeError
from policyfuzz.errors import WorkersFailed
from policyfuzz.executions import Executions, concatenate
from policyfuzz.executors.crew import Answer, Crew, Lost, Message, Ready
from policyfuzz.executors.pace import Pace
from policyfuzz.executors.protocol import Workforce
from policyfuzz.rollout import not_run
from policyfuzz.search.cases import Cases
from policyfuzz.target import Target
from policyfuzz.timing import TimeSplit

#: Pieces that work is cut into when one of its cases has killed a worker, or hangs.
_PIECES = 16
#: Workers of which a case is believed to be what kills them.
_DEATHS = 2
#: Starts in a row that may fail before a worker is given up.
_FAILED_STARTS = 3


@dataclass(slots=True)
class _Batch:
    """A batch of cases, and what has come of it so far."""

    cases: Cases
    cut: int = 0  #: rows that have been given out in chunks
    missing: int = 0  #: rows without a result
    results: dict[int, Executions | Exception] = field(default_factory=dict)  #: by their first row

    def __post_init__(self) -> None:
        self.missing = len(self.cases)

    def put(self, chunk: "_Chunk", result: Executions | Exception) -> None:
        """Note what came of `chunk`."""
        self.results[chunk.start] = result
        self.missing -= len(chunk)

    def executions(self) -> Executions:
        """All results in the order of the cases, or the first error that there was."""
        results = [self.results[start] for start in sorted(self.results)]
        for result in results:
            if isinstance(result, Exception):
                raise result
        return concatenate([one for one in results if isinstance(one, Executions)])


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Neighbouring rows of a batch, run by one worker at once."""

    batch: _Batch
    start: int
    stop: int
    deaths: int = 0  #: of workers that were running it, or what it was cut from

    def __len__(self) -> int:
        return self.stop - self.start

    def pieces(self) -> "list[_Chunk]":
        """It, in at most `_PIECES` pieces."""
        size = math.ceil(len(self) / _PIECES)
        starts = range(self.start, self.stop, size)
        return [_Chunk(self.batch, start, min(start + size, self.stop), self.deaths) for start in starts]


@dataclass(slots=True)
class _Worker:
    """What a worker is doing."""

    since: float  #: it has been at its oldest chunk, or starting
    is_ready: bool = False
    is_overdue: bool = False  #: it was killed, since its oldest chunk takes too long
    chunks: deque[_Chunk] = field(default_factory=deque)  #: that it has been sent, the oldest first


class Dispatcher:
    """An executor over the workers of a `crew`.

    Episodes do not depend on their neighbours, so that batches may be cut anyhow, and run in any order, by
    anybody, twice if need be: the results are the same. A chunk whose worker dies, or takes longer than
    `timeout` seconds, is cut into pieces that are run again; in the end the case that does it is alone, is
    given up and gets an error, and all others have their results.
    """

    def __init__(
        self,
        target: Target,
        crew: Crew,
        workers: int,
        timeout: float,
        clock: TimeSplit | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._target, self._crew, self._wanted, self._timeout = target, crew, workers, timeout
        self._clock, self._now = clock or TimeSplit(), now
        self._batches: deque[_Batch] = deque()
        self._again: deque[_Chunk] = deque()  #: chunks that are to be run once more
        self._workers: dict[int, _Worker] = {}
        self._next_worker = 0
        self._pace = Pace(workers, timeout)
        self._signals: tuple[str, ...] = ()
        self._first_ready: float | None = None
        self._busy_seconds = 0.0
        self._restarts = self._failed_starts = 0
        for _ in range(workers):
            self._start()

    def submit(self, cases: Cases) -> None:
        self._batches.append(_Batch(cases))
        self._handle(self._crew.wait(0))
        self._feed()

    def collect(self) -> Executions:
        batch = self._batches[0]
        with self._clock.activity("simulate"):
            while batch.missing:
                self._feed()
                self._handle(self._crew.wait(self._patience()))
                self._kill_overdue()
            self._batches.popleft()
            self._feed()
            return batch.executions()

    @property
    def workforce(self) -> Workforce:
        ready = sum(worker.is_ready for worker in self._workers.values())
        seconds = 0.0 if self._first_ready is None else self._now() - self._first_ready
        return Workforce(self._wanted, ready, self._wanted * seconds, self._busy_seconds, self._restarts)

    def close(self) -> None:
        self._crew.close()

    def _start(self) -> None:
        self._crew.start(self._next_worker)
        self._workers[self._next_worker] = _Worker(self._now())
        self._next_worker += 1

    def _feed(self) -> None:
        """Give work to all who have less than they should; those without any come first."""
        for depth in range(self._pace.depth):
            for number, worker in self._workers.items():
                if worker.is_ready and not worker.is_overdue and len(worker.chunks) == depth:
                    chunk = self._next_chunk()
                    if chunk is None:
                        return
                    if not worker.chunks:
                        worker.since = self._now()
                    worker.chunks.append(chunk)
                    cases = chunk.batch.cases
                    rows = slice(chunk.start, chunk.stop)
                    self._crew.send(number, cases.inputs[rows], cases.seeds[rows])

    def _next_chunk(self) -> _Chunk | None:
        if self._again:
            return self._again.popleft()
        for batch in self._batches:
            if batch.cut < len(batch.cases):
                start = batch.cut
                batch.cut = min(len(batch.cases), start + self._pace.chunk_size(len(batch.cases)))
                return _Chunk(batch, start, batch.cut)
        return None

    def _patience(self) -> float | None:
        """Seconds until somebody has taken too long."""
        since = [one.since for one in self._workers.values() if one.chunks and not one.is_overdue]
        return max(0.0, min(since) + self._timeout - self._now()) if since else None

    def _kill_overdue(self) -> None:
        for number, worker in self._workers.items():
            if worker.chunks and not worker.is_overdue and self._now() - worker.since > self._timeout:
                worker.is_overdue = True
                self._crew.kill(number)

    def _handle(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, Ready):
                self._workers[message.worker].is_ready = True
                self._signals = message.signals
                self._failed_starts = 0
                self._first_ready = self._now() if self._first_ready is None else self._first_ready
            elif isinstance(message, Answer):
                self._answered(message)
            else:
                self._lost(message)

    def _answered(self, answer: Answer) -> None:
        worker = self._workers[answer.worker]
        chunk = worker.chunks.popleft()
        worker.since = self._now()
        self._busy_seconds += answer.seconds
        self._pace.learn(len(chunk), answer.seconds)
        chunk.batch.put(chunk, answer.result)

    def _lost(self, lost: Lost) -> None:
        worker = self._workers.pop(lost.worker)
        waiting = list(worker.chunks)
        if lost.is_blameless or not waiting:
            self._again.extendleft(reversed(waiting))
        else:
            self._again.extendleft(reversed(waiting[1:]))
            self._suspect(waiting[0], lost, worker.is_overdue)
        if worker.is_ready or lost.is_blameless:
            self._restarts += 1
            self._start()
        else:
            self._start_failed(lost)

    def _start_failed(self, lost: Lost) -> None:
        self._failed_starts += 1
        if self._failed_starts < _FAILED_STARTS:
            self._start()
        elif not any(worker.is_ready for worker in self._workers.values()):
            raise WorkersFailed(
                f"no worker gets ready, after {self._failed_starts} that failed to start:\n{lost.text}",
                "without -j and --executor, the same is run in one process: does it work there?",
            )

    def _suspect(self, chunk: _Chunk, lost: Lost, is_overdue: bool) -> None:
        """Find out which case of `chunk` it was that killed its worker, or hangs."""
        chunk = replace(chunk, deaths=chunk.deaths + 1)
        if len(chunk) > 1:
            self._again.extendleft(reversed(chunk.pieces()))
        elif is_overdue or chunk.deaths >= _DEATHS:
            text = f"{lost.text}\nno answer within {self._timeout:g} s" if is_overdue else lost.text
            error = EpisodeError(HUNG if is_overdue else CRASHED, lost.step, text.strip())
            chunk.batch.put(chunk, not_run(error, self._target.oracle, self._signals))
        else:  # somebody else may have killed it
            self._again.appendleft(chunk)
