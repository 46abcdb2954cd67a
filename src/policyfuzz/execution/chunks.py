"""Batches are cut into chunks; their size follows from how long episodes take."""

import math
from dataclasses import dataclass, field

from policyfuzz.core.branches import Branches
from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.search.cases import Cases

#: Pieces that a chunk is cut into when one of its cases killed a worker or hangs.
_RETRY_PIECES = 16
#: Chunks per worker of all work in flight. More would keep workers a little busier at the end of batches,
#: but a simulator that steps many episodes at once is slower in small chunks: by a sixth in chunks of 16
#: compared with 64, say.
_CHUNKS_PER_WORKER = 2
#: Below this size, sizes are rounded down: one more case per chunk would mean far fewer chunks.
_ROUND_DOWN_BELOW = 8
#: Seconds of work that are worth a message.
_MIN_SECONDS = 0.005
#: Share of the time-out that a chunk is expected to take at most.
_TIMEOUT_SHARE = 0.25
#: Factor by which a chunk may be larger than any before; the first has one case.
_GROWTH = 4
#: Seconds of work above which a worker needs no second chunk in its queue.
_PREFETCH_BELOW = 0.5
#: Weight of the latest chunk in the running average.
_WEIGHT = 0.5


@dataclass(slots=True, eq=False)
class Batch:
    """A batch of cases, and its results so far."""

    cases: Cases
    branches: Branches | None = None  #: of all cases, if they depart from what the policy does
    cut: int = 0  #: rows that were given out in chunks
    missing: int = 0  #: rows without a result
    results: dict[int, Executions | Exception] = field(default_factory=dict)  #: by their first row

    def __post_init__(self) -> None:
        self.missing = len(self.cases)

    def add_result(self, chunk: "Chunk", result: Executions | Exception) -> None:
        """Store the result of `chunk`."""
        self.results[chunk.start] = result
        self.missing -= len(chunk)

    def executions(self) -> Executions:
        """All results in the order of the cases. Raises the first error, if there was one."""
        results = [self.results[start] for start in sorted(self.results)]
        for result in results:
            if isinstance(result, Exception):
                raise result
        parts = [one for one in results if isinstance(one, Executions)]
        return concatenate(parts) if parts else Executions.of([], [])  # of no cases


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Neighbouring rows of a batch, run by one worker at once."""

    batch: Batch
    start: int
    stop: int
    deaths: int = 0  #: of workers that were running it
    timeouts: int = 0  #: times that it, or the chunk it was cut from, took too long

    def __len__(self) -> int:
        return self.stop - self.start

    def pieces(self) -> "list[Chunk]":
        """The same rows in at most `_RETRY_PIECES` chunks."""
        size = math.ceil(len(self) / _RETRY_PIECES)
        starts = range(self.start, self.stop, size)
        stops = (min(start + size, self.stop) for start in starts)
        # deaths start at 0: the death of many says little about one, and simulators may die of old age
        return [
            Chunk(self.batch, start, stop, timeouts=self.timeouts)
            for start, stop in zip(starts, stops, strict=True)
        ]


class ChunkSizer:
    """Chooses chunk sizes from how long episodes have taken. Results do not depend on it, speed does."""

    def __init__(self, workers: int, timeout: float) -> None:
        self._workers, self._timeout = workers, timeout
        self._largest = 0  #: cases of the largest chunk so far
        self._seconds = 0.0  #: per case, running average

    @property
    def queue_depth(self) -> int:
        """Chunks that a worker should hold: a second one only if the first is done soon."""
        return 2 if self._seconds * self._largest < _PREFETCH_BELOW else 1

    def chunk_size(self, batch: int, batches: int = 1) -> int:
        """Cases per chunk for a batch of size `batch`, with so many `batches` in flight."""
        fair = min(batch, batch * batches / (_CHUNKS_PER_WORKER * self._workers))
        size = math.ceil(fair) if fair >= _ROUND_DOWN_BELOW else max(int(fair), 1)
        if self._seconds > 0:
            # at most the batch: the quotients are infinite for tiny averages
            worth_a_message = math.ceil(min(_MIN_SECONDS / self._seconds, batch))
            in_time = int(min(_TIMEOUT_SHARE * self._timeout / self._seconds, batch))
            size = min(max(size, worth_a_message), max(in_time, 1))
        return min(size, max(_GROWTH * self._largest, 1))

    def learn(self, count: int, seconds: float) -> None:
        """A chunk of `count` cases took `seconds`."""
        latest = seconds / count
        self._seconds = latest if self._largest == 0 else (1 - _WEIGHT) * self._seconds + _WEIGHT * latest
        self._largest = max(self._largest, count)
