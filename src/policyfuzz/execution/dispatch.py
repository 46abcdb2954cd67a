"""Shares batches among the workers of a crew, and loses nothing when some of them die or hang."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from policyfuzz.core.errors import WorkersFailed
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import CRASHED, HUNG, EpisodeError
from policyfuzz.core.rollout import not_run
from policyfuzz.core.target import Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.chunks import Batch, Chunk, Pace
from policyfuzz.execution.executor import TimeIsUp, Workforce
from policyfuzz.execution.pool import Answer, Crew, Lost, Message, Ready
from policyfuzz.execution.roster import Roster
from policyfuzz.search.cases import Cases

#: Workers that must die while they run nothing but a case before it is believed to be what kills them.
_DEATHS = 2
#: Times that a case must take too long, the last time alone: once, the whole machine may have stood still.
_OVERDUE = 2
#: Seconds that messages may be waited for longer than was meant before clocks are set anew.
_LATE = 1.0
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
        self._window = 1  #: batches that were in flight at most
        self._again: deque[Chunk] = deque()  #: chunks that are to be run once more
        self._suspects: deque[Chunk] = deque()  #: single cases whose worker has died
        self._roster = Roster()
        self._next_worker = 0
        self._pace = Pace(workers, timeout)
        self._signals: tuple[str, ...] = ()
        self._first_ready: float | None = None
        self._busy_seconds = 0.0
        self._restarts = self._failed_starts = 0
        self._left_at = now()
        for _ in range(workers):
            self._start()

    def submit(self, cases: Cases) -> None:
        self._batches.append(Batch(cases))
        self._window = max(self._window, len(self._batches))
        self._handle(self._crew.wait(0))
        self._feed()

    def collect(self, seconds: float | None = None) -> Executions:
        batch, end = self._batches[0], math.inf if seconds is None else self._now() + seconds
        with self._clock.activity("simulate"):
            self._forgive(self._left_at)
            try:
                while batch.missing:
                    if self._now() > end:
                        raise TimeIsUp
                    self._feed()
                    self._listen(end)
                    self._kill_overdue()
            finally:
                self._left_at = self._now()
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
        self._feed_suspects()
        for depth in range(self._pace.depth):
            while (number := self._roster.next_holding(depth)) is not None:
                chunk = self._next_chunk()
                if chunk is None:
                    return
                self._give(number, chunk)

    def _feed_suspects(self) -> None:
        """Give suspects to new workers, which cannot die of what they did before."""
        while self._suspects and (number := self._roster.next_fresh) is not None:
            self._give(number, self._suspects.popleft())
        if self._suspects and not self._roster.starting:  # nobody new will come
            self._again.extendleft(reversed(self._suspects))
            self._suspects.clear()

    def _give(self, worker: int, chunk: Chunk) -> None:
        self._roster.give(worker, chunk, self._now())
        cases, rows = chunk.batch.cases, slice(chunk.start, chunk.stop)
        self._crew.send(worker, cases.inputs[rows], cases.seeds[rows])

    def _next_chunk(self) -> Chunk | None:
        if self._again:
            return self._again.popleft()
        for batch in self._batches:
            if batch.cut < len(batch.cases):
                start = batch.cut
                size = self._pace.chunk_size(len(batch.cases), self._window)
                batch.cut = min(len(batch.cases), start + size)
                return Chunk(batch, start, batch.cut)
        return None

    def _listen(self, end: float) -> None:
        """Handle what workers say, until something is said, somebody takes too long, or `end`."""
        patience, started = self._patience(end), self._now()
        messages = self._crew.wait(patience)
        if patience is not None:
            self._forgive(started + patience)
        self._handle(messages)

    def _forgive(self, expected: float) -> None:
        """Set all clocks anew if it is much later than `expected`: the whole machine may have stood still."""
        if self._now() - expected > _LATE:
            self._roster.restart_clocks(self._now())

    def _patience(self, end: float) -> float | None:
        """Seconds until somebody has taken too long, or until `end`."""
        longest = self._roster.longest_since
        end = end if longest is None else min(end, longest[1] + self._timeout)
        return None if math.isinf(end) else max(0.0, end - self._now())

    def _kill_overdue(self) -> None:
        now = self._now()  # killing takes time, in which others may have answered
        while (longest := self._roster.longest_since) and now - longest[1] > self._timeout:
            self._busy_seconds += now - longest[1]
            self._roster.kill(longest[0])
            self._crew.kill(longest[0])

    def _handle(self, messages: Iterable[Message]) -> None:
        for message in messages:
            if isinstance(message, Ready):
                self._roster.set_ready(message.worker)
                self._signals = message.signals
                self._failed_starts = 0
                for _ in range(self._wanted - len(self._roster)):  # it may be better now
                    self._start()
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
        since = self._roster.since(lost.worker)
        self._busy_seconds += 0.0 if since is None else self._now() - since
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
        """Try again a few times; then do without, as long as others work or may yet."""
        self._failed_starts += 1
        if self._failed_starts < _FAILED_STARTS:
            self._start()
        elif not len(self._roster):
            raise WorkersFailed(
                f"no worker gets ready, after {self._failed_starts} that failed to start:\n{lost.text}",
                "without -j and --executor, the same is run in one process: does it work there?",
            )

    def _suspect(self, chunk: Chunk, lost: Lost, is_overdue: bool) -> None:
        """Find out which case of `chunk` it was that killed its worker, or hangs."""
        if is_overdue:
            chunk = replace(chunk, overdue=chunk.overdue + 1)
        else:
            chunk = replace(chunk, deaths=chunk.deaths + 1)
        if len(chunk) > 1:
            self._again.extendleft(reversed(chunk.pieces()))
        elif is_overdue and chunk.overdue >= _OVERDUE:
            text = f"{lost.text}\nno answer within {self._timeout:g} s"
            self._give_up(chunk, EpisodeError(HUNG, lost.step, text.strip()))
        elif not is_overdue and chunk.deaths >= _DEATHS:
            self._give_up(chunk, EpisodeError(CRASHED, lost.step, lost.text))
        elif is_overdue:
            self._again.appendleft(chunk)
        else:  # somebody else may have killed it
            self._suspects.append(chunk)

    def _give_up(self, chunk: Chunk, error: EpisodeError) -> None:
        chunk.batch.put(chunk, not_run(error, self._target.oracle, self._signals))
