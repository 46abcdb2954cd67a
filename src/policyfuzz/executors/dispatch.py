"""Shares batches among the workers of a crew, and loses nothing when some of them die or hang."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from policyfuzz.episode_error import CRASHED, HUNG, EpisodeError
from policyfuzz.errors import WorkersFailed
from policyfuzz.executions import Executions
from policyfuzz.executors.chunks import Batch, Chunk
from policyfuzz.executors.crew import Answer, Crew, Lost, Message, Ready
from policyfuzz.executors.pace import Pace
from policyfuzz.executors.protocol import TimeIsUp, Workforce
from policyfuzz.executors.roster import Roster
from policyfuzz.rollout import not_run
from policyfuzz.search.cases import Cases
from policyfuzz.target import Target
from policyfuzz.timing import TimeSplit

#: Workers that must die while they run nothing but a case before it is believed to be what kills them.
_DEATHS = 2
#: Starts in a row that may fail before a worker is given up.
_FAILED_STARTS = 3


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
        self._batches: deque[Batch] = deque()
        self._again: deque[Chunk] = deque()  #: chunks that are to be run once more
        self._roster = Roster()
        self._next_worker = 0
        self._pace = Pace(workers, timeout)
        self._signals: tuple[str, ...] = ()
        self._first_ready: float | None = None
        self._busy_seconds = 0.0
        self._restarts = self._failed_starts = 0
        for _ in range(workers):
            self._start()

    def submit(self, cases: Cases) -> None:
        self._batches.append(Batch(cases))
        self._handle(self._crew.wait(0))
        self._feed()

    def collect(self, seconds: float | None = None) -> Executions:
        batch, end = self._batches[0], math.inf if seconds is None else self._now() + seconds
        with self._clock.activity("simulate"):
            while batch.missing:
                if self._now() > end:
                    raise TimeIsUp
                self._feed()
                self._handle(self._crew.wait(self._patience(end)))
                self._kill_overdue()
            self._batches.popleft()
            self._feed()
            return batch.executions()

    @property
    def workforce(self) -> Workforce:
        seconds = 0.0 if self._first_ready is None else self._now() - self._first_ready
        there = self._wanted * seconds
        return Workforce(self._wanted, self._roster.ready, there, self._busy_seconds, self._restarts)

    def close(self) -> None:
        self._crew.close()

    def _start(self) -> None:
        self._crew.start(self._next_worker)
        self._roster.add(self._next_worker)
        self._next_worker += 1

    def _feed(self) -> None:
        """Give work to all who have less than they should; those without any come first."""
        for depth in range(self._pace.depth):
            while (number := self._roster.next_holding(depth)) is not None:
                chunk = self._next_chunk()
                if chunk is None:
                    return
                self._roster.give(number, chunk, self._now())
                cases, rows = chunk.batch.cases, slice(chunk.start, chunk.stop)
                self._crew.send(number, cases.inputs[rows], cases.seeds[rows])

    def _next_chunk(self) -> Chunk | None:
        if self._again:
            return self._again.popleft()
        for batch in self._batches:
            if batch.cut < len(batch.cases):
                start = batch.cut
                batch.cut = min(len(batch.cases), start + self._pace.chunk_size(len(batch.cases)))
                return Chunk(batch, start, batch.cut)
        return None

    def _patience(self, end: float) -> float | None:
        """Seconds until somebody has taken too long, or until `end`."""
        longest = self._roster.longest_since
        end = end if longest is None else min(end, longest[1] + self._timeout)
        return None if math.isinf(end) else max(0.0, end - self._now())

    def _kill_overdue(self) -> None:
        now = self._now()  # killing takes time, in which others may have answered
        while (longest := self._roster.longest_since) and now - longest[1] > self._timeout:
            self._roster.kill(longest[0])
            self._crew.kill(longest[0])

    def _handle(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, Ready):
                self._roster.set_ready(message.worker)
                self._signals = message.signals
                self._failed_starts = 0
                self._first_ready = self._now() if self._first_ready is None else self._first_ready
            elif isinstance(message, Answer):
                self._answered(message)
            else:
                self._lost(message)

    def _answered(self, answer: Answer) -> None:
        chunk = self._roster.take(answer.worker, self._now())
        self._busy_seconds += answer.seconds
        self._pace.learn(len(chunk), answer.seconds)
        chunk.batch.put(chunk, answer.result)

    def _lost(self, lost: Lost) -> None:
        worker = self._roster.remove(lost.worker)
        waiting = list(worker.chunks)
        # it may have answered at the last moment what it was killed for; what is left has done nothing then
        if lost.is_blameless or not waiting or worker.killed_for not in (None, waiting[0]):
            self._again.extendleft(reversed(waiting))
        else:
            self._again.extendleft(reversed(waiting[1:]))
            self._suspect(waiting[0], lost, worker.killed_for is not None)
        if worker.is_ready or lost.is_blameless:
            self._restarts += 1
            self._start()
        else:
            self._start_failed(lost)

    def _start_failed(self, lost: Lost) -> None:
        self._failed_starts += 1
        if self._failed_starts < _FAILED_STARTS:
            self._start()
        elif not self._roster.ready:
            raise WorkersFailed(
                f"no worker gets ready, after {self._failed_starts} that failed to start:\n{lost.text}",
                "without -j and --executor, the same is run in one process: does it work there?",
            )

    def _suspect(self, chunk: Chunk, lost: Lost, is_overdue: bool) -> None:
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
