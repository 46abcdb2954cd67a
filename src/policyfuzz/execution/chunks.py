"""Batches cut into chunks, whose size follows from how long episodes take."""

import math
from dataclasses import dataclass, field

from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.search.cases import Cases

#: Pieces of all work in flight per worker. More would keep everybody a little busier at the end of batches,
#: but where many episodes are stepped at once, one costs more in small chunks: a sixth more
#: in chunks of 16 than of 64, say.
_PIECES_PER_WORKER = 2
#: Cases of a chunk below which one more of them would mean far fewer pieces.
_FEW = 8
#: Seconds of work that are worth a message at least.
_SHORTEST = 0.005
#: Share of the time-out that a chunk may take by what is known.
_SAFE_SHARE = 0.25
#: Times that a chunk may be larger than any before; the first has one case.
_GROWTH = 4
#: Seconds of work beyond which the next may as well be sent when it is asked for.
_LONG = 0.5
#: Weight of the latest chunk in the running average.
_WEIGHT = 0.5


class Pace:
    """Sizes of chunks from how long episodes have taken so far. Results do not depend on it, speed does."""

    def __init__(self, workers: int, timeout: float) -> None:
        self._workers, self._timeout = workers, timeout
        self._largest = 0  #: chunk that was answered
        self._seconds = 0.0  #: per case

    @property
    def depth(self) -> int:
        """Chunks that a worker holds: one, and where that is soon done another to go on with at once."""
        return 2 if self._seconds * self._largest < _LONG else 1

    def chunk_size(self, batch: int, batches: int = 1) -> int:
        """Cases of a batch of this size that a worker gets, with so many batches in flight."""
        fair = min(batch, batch * batches / (_PIECES_PER_WORKER * self._workers))
        size = math.ceil(fair) if fair >= _FEW else max(int(fair), 1)
        if self._seconds > 0:
            worth_it = math.ceil(_SHORTEST / self._seconds)
            in_time = int(_SAFE_SHARE * self._timeout / self._seconds)
            size = min(max(size, worth_it), max(in_time, 1))
        return min(size, max(_GROWTH * self._largest, 1))

    def learn(self, count: int, seconds: float) -> None:
        """Take note of a chunk of `count` cases that took `seconds`."""
        latest = seconds / count
        self._seconds = latest if self._largest == 0 else (1 - _WEIGHT) * self._seconds + _WEIGHT * latest
        self._largest = max(self._largest, count)


#: Pieces that work is cut into when one of its cases has killed a worker, or hangs.
_PIECES = 16


@dataclass(slots=True, eq=False)
class Batch:
    """A batch of cases, and what has come of it so far."""

    cases: Cases
    cut: int = 0  #: rows that have been given out in chunks
    missing: int = 0  #: rows without a result
    results: dict[int, Executions | Exception] = field(default_factory=dict)  #: by their first row

    def __post_init__(self) -> None:
        self.missing = len(self.cases)

    def put(self, chunk: "Chunk", result: Executions | Exception) -> None:
        """Note what came of `chunk`."""
        self.results[chunk.start] = result
        self.missing -= len(chunk)

    def executions(self) -> Executions:
        """All results in the order of the cases, or the first error that there was."""
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
    overdue: int = 0  #: times that it, or what it was cut from, took too long

    def __len__(self) -> int:
        return self.stop - self.start

    def pieces(self) -> "list[Chunk]":
        """It, in at most `_PIECES` pieces."""
        size = math.ceil(len(self) / _PIECES)
        starts = range(self.start, self.stop, size)
        stops = (min(start + size, self.stop) for start in starts)
        # no deaths on record: that of many says little about one, and simulators may die of old age
        return [
            Chunk(self.batch, start, stop, overdue=self.overdue)
            for start, stop in zip(starts, stops, strict=True)
        ]
