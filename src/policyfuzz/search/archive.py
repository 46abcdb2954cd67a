"""The archive: which entries of the corpus are parents, one or two for each cell.

It depends on the corpus alone, so it is never stored: it is made anew when a campaign goes on.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.cases import NO_PARENT
from policyfuzz.search.cells import BEHAVIOUR_CELLS, InputCells
from policyfuzz.search.corpus import Corpus

#: (n,) cell of the input and (n,) cell of the behaviour.

Cells = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True, slots=True)
class Seen:
    """What counts of n episodes."""

    cells: Cells  #: (n,) of the input, (n,) of the behaviour
    distances: NDArray[np.float64]  #: (n,) from a crash, see `nearness`
    tie_breaks: NDArray[np.float64]  #: (n,) count where distances are equal
    crashed: NDArray[np.bool_]  #: (n,)

    def __getitem__(self, rows: NDArray[Any]) -> "Seen":
        """The episodes at `rows`."""
        cells = (self.cells[0][rows], self.cells[1][rows])
        return Seen(cells, self.distances[rows], self.tie_breaks[rows], self.crashed[rows])


class Elites:
    """For each cell, the entry that came nearest to a crash: least distance, then least tie-break."""

    def __init__(self, cells: int) -> None:
        self.entries = np.full(cells, NO_PARENT)
        self._distances = np.full(cells, np.inf)
        self._tie_breaks = np.full(cells, np.inf)

    def better(self, cells: NDArray[np.int64], seen: Seen) -> NDArray[np.int64]:
        """Rows (m,) that beat the elite of their cell (n,) and all other rows in it; of equals the first."""
        order = np.lexsort((seen.tie_breaks, seen.distances, cells))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = cells[order][1:] != cells[order][:-1]
        rows = order[is_first]
        distances, tie_breaks, old = seen.distances[rows], seen.tie_breaks[rows], cells[rows]
        is_nearer = distances < self._distances[old]
        is_nearer |= (distances == self._distances[old]) & (tie_breaks < self._tie_breaks[old])
        return np.asarray(rows[is_nearer])

    def put(self, cells: NDArray[np.int64], seen: Seen, entries: NDArray[np.int64]) -> None:
        """Make `entries` (m,) the elites of their `cells` (m,)."""
        self._distances[cells], self._tie_breaks[cells] = seen.distances, seen.tie_breaks
        self.entries[cells] = entries


class Archive:
    """Elites over cells of the input and cells of the behaviour, apart for what crashed and what did not."""

    def __init__(self, dimensions: int) -> None:
        self.input_cells = InputCells(dimensions)
        sizes = (self.input_cells.count, BEHAVIOUR_CELLS)
        self._safe = [Elites(size) for size in sizes]
        #: The latest finding of each cell, so that the search walks on; and how many there were.
        self._crashed = [np.full(size, NO_PARENT) for size in sizes]
        self._counts = [np.zeros(size, np.int64) for size in sizes]
        self.safe = self.crashed = np.empty(0, np.int64)  #: parents: entries, in order

    def worth_keeping(self, seen: Seen) -> NDArray[np.bool_]:
        """(n,) True where an episode that did not crash is the best of one of its cells."""
        keep = np.zeros(len(seen.crashed), np.bool_)
        safe = np.flatnonzero(~seen.crashed)
        ones = seen[safe]
        for elites, cells in zip(self._safe, ones.cells, strict=True):
            keep[safe[elites.better(cells, ones)]] = True
        return keep

    def rarity(self, seen: Seen) -> NDArray[np.float64]:
        """(n,) how new findings in these cells are: one where there were none, falling with their number."""
        rare = [1 / np.sqrt(1.0 + count[cell]) for count, cell in zip(self._counts, seen.cells, strict=True)]
        return np.asarray((rare[0] + rare[1]) / 2)

    def add(self, entries: NDArray[np.int64], seen: Seen) -> None:
        """Take in `entries` (m,) of the corpus, in their order."""
        safe, found = np.flatnonzero(~seen.crashed), np.flatnonzero(seen.crashed)
        ones = seen[safe]
        for place, (own, cells) in enumerate(zip(ones.cells, seen.cells, strict=True)):
            best = self._safe[place].better(own, ones)
            self._safe[place].put(own[best], ones[best], entries[safe[best]])
            self._crashed[place][cells[found]] = entries[found]
            np.add.at(self._counts[place], cells[found], 1)
        self.safe = _parents([elites.entries for elites in self._safe])
        self.crashed = _parents(self._crashed)

    @classmethod
    def of(cls, corpus: Corpus, unit: NDArray[np.float64]) -> "Archive":
        """The archive of a whole `corpus`, whose inputs are at `unit` (n, d)."""
        archive = cls(unit.shape[1])
        cells = (archive.input_cells.of(unit), np.asarray(corpus.column("niche")))
        seen = Seen(cells, *(corpus.column(name) for name in ("distance", "tie_break", "is_crash")))
        archive.add(np.arange(len(corpus)), seen)
        return archive


def _parents(entries: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    together = np.concatenate(entries)
    return np.unique(together[together != NO_PARENT])
