"""Batches of cases, cut into chunks for workers and put together again."""

import math
from dataclasses import dataclass, field

from policyfuzz.executions import Executions, concatenate
from policyfuzz.search.cases import Cases

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
