"""The archive: the best entries of each cell of input and behaviour, which become parents.

It depends on the corpus alone, so it is never stored: a resumed campaign rebuilds it.
"""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.behaviour import BEHAVIOUR_CELLS
from policyfuzz.search.cases import NO_PARENT
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.evaluation import Evaluations, InputCells


class Archive:
    """Elites over cells of the input and cells of the behaviour, findings apart from the rest.

    Each cell has two elites: the nearest to a crash by distance, and by tie-break. Margins lead to the crash
    that is nearest, returns to many others.
    """

    def __init__(self, dimensions: int) -> None:
        sizes = (InputCells(dimensions).count, BEHAVIOUR_CELLS)
        self._safe = [[Elites(size), Elites(size)] for size in sizes]
        #: The latest finding of each cell, so that the search moves on; and how many there were.
        self._crashed = [np.full(size, NO_PARENT) for size in sizes]
        self._counts = [np.zeros(size, np.int64) for size in sizes]
        self.safe = self.crashed = np.empty(0, np.int64)  #: parents: entry numbers, sorted

    @classmethod
    def of(cls, corpus: Corpus, unit: NDArray[np.float64]) -> "Archive":
        """The archive of a whole `corpus`, whose inputs are at `unit` (n, d)."""
        archive, dimensions = cls(unit.shape[1]), unit.shape[1]
        columns = (corpus.column(name) for name in ("niche", "distance", "tie_break", "is_crash"))
        archive.add(np.arange(len(corpus)), Evaluations(InputCells(dimensions).of(unit), *columns))
        return archive

    def is_elite(self, evaluations: Evaluations) -> NDArray[np.bool_]:
        """(n,) True for an episode that did not crash and is the best of one of its cells."""
        is_elite = np.zeros(len(evaluations.crashed), np.bool_)
        safe = np.flatnonzero(~evaluations.crashed)
        candidates = evaluations[safe]
        for pair, cells in zip(self._safe, candidates.cells, strict=True):
            for elites, ordered in zip(pair, (candidates, candidates.swapped), strict=True):
                is_elite[safe[elites.improving(cells, ordered)]] = True
        return is_elite

    def rarity(self, evaluations: Evaluations) -> NDArray[np.float64]:
        """(n,) how rare findings are in these cells: 1 in empty ones, falling with their number."""
        counts = zip(self._counts, evaluations.cells, strict=True)
        by_input, by_behaviour = (1 / np.sqrt(1.0 + count[cell]) for count, cell in counts)
        return np.asarray((by_input + by_behaviour) / 2)

    def lineages(self, corpus: Corpus) -> int:
        """How many lineages the findings that are parents go back to."""
        return len(np.unique(corpus.column("root")[self.crashed]))

    def add(self, entries: NDArray[np.int64], evaluations: Evaluations) -> None:
        """Add `entries` (m,) of the corpus, in their order."""
        safe, found = np.flatnonzero(~evaluations.crashed), np.flatnonzero(evaluations.crashed)
        candidates = evaluations[safe]
        for kind, (safe_cells, cells) in enumerate(zip(candidates.cells, evaluations.cells, strict=True)):
            for elites, ordered in zip(self._safe[kind], (candidates, candidates.swapped), strict=True):
                best = elites.improving(safe_cells, ordered)
                elites.put(safe_cells[best], ordered[best], entries[safe[best]])
            self._crashed[kind][cells[found]] = entries[found]
            np.add.at(self._counts[kind], cells[found], 1)
        self.safe = _parents([elites.entries for pair in self._safe for elites in pair])
        self.crashed = _parents(self._crashed)


class Elites:
    """For each cell, the entry that came nearest to a crash: least distance, then least tie-break."""

    def __init__(self, cells: int) -> None:
        self.entries = np.full(cells, NO_PARENT)
        self._distances = np.full(cells, np.inf)
        self._tie_breaks = np.full(cells, np.inf)

    def improving(self, cells: NDArray[np.int64], evaluations: Evaluations) -> NDArray[np.int64]:
        """Rows (m,) that beat the elite of their cell (n,) and all other rows in it; of equals the first."""
        order = np.lexsort((evaluations.tie_breaks, evaluations.distances, cells))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = cells[order][1:] != cells[order][:-1]
        rows = order[is_first]
        distances, tie_breaks, own = evaluations.distances[rows], evaluations.tie_breaks[rows], cells[rows]
        is_nearer = distances < self._distances[own]
        is_nearer |= (distances == self._distances[own]) & (tie_breaks < self._tie_breaks[own])
        return np.asarray(rows[is_nearer])

    def put(self, cells: NDArray[np.int64], evaluations: Evaluations, entries: NDArray[np.int64]) -> None:
        """Make `entries` (m,) the elites of their `cells` (m,)."""
        self._distances[cells], self._tie_breaks[cells] = evaluations.distances, evaluations.tie_breaks
        self.entries[cells] = entries


def _parents(entries: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The entries of all cells, sorted, each once."""
    together = np.concatenate(entries)
    return np.unique(together[together != NO_PARENT])
