"""The best entries of each cell of input and behaviour.

It depends on the corpus alone, so it is never stored: it is made anew when a campaign goes on.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.cases import NO_PARENT
from policyfuzz.search.corpus import Corpus

#: Cells of the input: at most 2 to the power of this.
_INPUT_BITS = 12
#: Cells of the behaviour: so many equally frequent bins along so many principal directions.
_DIRECTIONS, _BINS = 4, 6
BEHAVIOUR_CELLS = _BINS**_DIRECTIONS
#: Standard deviations at which a coordinate of the behaviour is cut, so that one alone cannot blur the rest.
_FAR = 10.0
#: Numbers beyond this are taken for this: their squares could not be added up.
_LARGEST = 1e100
#: A coordinate that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class InputCells:
    """A grid in the unit cube; beyond a dozen dimensions, the sides of as many random planes."""

    dimensions: int

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self._bins ** min(self.dimensions, _INPUT_BITS))

    @property
    def _bins(self) -> int:
        return max(2, int(2 ** (_INPUT_BITS / self.dimensions)))

    def of(self, unit: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) cell of each of `unit` (n, d)."""
        if self.dimensions > _INPUT_BITS:
            planes = np.random.default_rng(0).normal(size=(self.dimensions, _INPUT_BITS))
            digits = ((unit - 0.5) @ planes > 0).astype(np.int64)
        else:
            digits = np.clip((unit * self._bins).astype(np.int64), 0, self._bins - 1)
        return np.asarray(digits @ self._bins ** np.arange(digits.shape[1]))


def behaviour_of(executions: Executions) -> NDArray[np.float64]:
    """(n, 2k) what each episode did: its mean state and its last."""
    lengths = executions.lengths
    with np.errstate(invalid="ignore", over="ignore"):
        # states lie time first in memory: summed that way they round alike in any batch
        means = executions.states.sum(axis=1) / lengths[:, None]
    last = executions.states[np.arange(len(lengths)), lengths - 1]
    return tamed(np.concatenate([means, last], axis=1))


def tamed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`values` without NaN and without numbers whose squares are infinite."""
    return np.clip(np.nan_to_num(values), -_LARGEST, _LARGEST)


@dataclass(frozen=True, slots=True)
class BehaviourCells:
    """Bins along the directions in which the behaviour of random samples varied most."""

    centre: NDArray[np.float64]  #: (b,)
    directions: NDArray[np.float64]  #: (b, q) principal directions, over the spread of each coordinate
    scale: NDArray[np.float64]  #: (b,) zero where a coordinate was constant
    edges: NDArray[np.float64]  #: (bins - 1, q)

    @classmethod
    def fit(cls, behaviour: NDArray[np.float64]) -> "BehaviourCells":
        """Cells in which the samples' `behaviour` (n, b) is spread evenly."""
        centre, spread = behaviour.mean(axis=0), behaviour.std(axis=0)
        varies = spread > _CONSTANT * np.maximum(1.0, np.abs(centre))
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
        standard = _standardised(behaviour, centre, scale)
        variances, vectors = np.linalg.eigh(standard.T @ standard)
        # where nothing varied, rounding would decide on the bin
        directions = np.where(variances > _CONSTANT * len(behaviour), vectors, 0.0)[:, ::-1][:, :_DIRECTIONS]
        edges = np.quantile(standard @ directions, np.linspace(0, 1, _BINS + 1)[1:-1], axis=0)
        return cls(centre, directions, scale, edges)

    def of(self, behaviour: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) cell of each of `behaviour` (n, b)."""
        places = _standardised(behaviour, self.centre, self.scale) @ self.directions
        cells = np.zeros(len(behaviour), np.int64)
        for place, edges in zip(places.T, self.edges.T, strict=True):
            cells = cells * _BINS + np.searchsorted(edges, place)
        return cells

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {name: getattr(self, name) for name in ("centre", "directions", "scale", "edges")}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> "BehaviourCells":
        """What `state` turned into arrays."""
        return cls(state["centre"], state["directions"], state["scale"], state["edges"])


def _standardised(
    behaviour: NDArray[np.float64], centre: NDArray[np.float64], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.clip((behaviour - centre) * scale, -_FAR, _FAR)


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
