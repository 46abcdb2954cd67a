"""A surrogate: how near a candidate would come to a crash, guessed from its nearest neighbours."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from policyfuzz.core.inputs import InputSpace
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.distinct import tree_of, wrapped

#: Latest entries of the corpus that are asked, at most: so many, and so many coordinates.
_MOST_ENTRIES, _MOST_COORDINATES = 2048, 65_536
#: Neighbours that a guess comes from, and the distance within which all weigh about the same.
_NEIGHBOURS, _SAME = 5, 1e-3
#: A neighbour may be farther away than the one that is meant, by this share. It is a guess all the same, and
#: the tree answers two to six times as fast.
_SLACK = 1.0


@dataclass(frozen=True, slots=True)
class Surrogate:
    """Guesses from what the corpus holds, so that nothing has to be stored for a resumed campaign."""

    _tree: KDTree
    _entries: NDArray[np.int64]  #: (m,) of the corpus
    _distances: NDArray[np.float64]  #: (m,) of entries from a crash, at most 0 for findings
    _periods: NDArray[np.float64]  #: (d,) 1 where a coordinate wraps round, 0 where it does not

    @classmethod
    def of(cls, corpus: Corpus, space: InputSpace) -> "Surrogate":
        """That of the latest entries."""
        count = min(_MOST_ENTRIES, _MOST_COORDINATES // len(space.dimensions))
        latest = np.arange(max(len(corpus) - count, 0), len(corpus))
        distances, crashed = (corpus.column(name)[latest] for name in ("distance", "is_crash"))
        known = np.isfinite(distances)
        if not known.any():  # nothing tells them apart
            distances, known = np.zeros(len(latest)), np.ones(len(latest), np.bool_)
        entries, distances = latest[known], np.where(crashed, np.minimum(distances, 0.0), distances)[known]
        unit = wrapped(space.to_unit(corpus.inputs[entries]), space.periods)
        return cls(tree_of(unit, space.periods), entries, distances, space.periods)

    def nearest(self, unit: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) entries of the corpus that inputs at `unit` (n, d) lie beside."""
        _, places = self._tree.query(wrapped(unit, self._periods), eps=_SLACK)
        return np.asarray(self._entries[places])

    def distances(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) guessed distances from a crash of inputs at `unit` (n, d)."""
        if not self._tree.n:
            return np.zeros(len(unit))
        ranks = np.arange(1, min(_NEIGHBOURS, self._tree.n) + 1)
        apart, nearest = self._tree.query(wrapped(unit, self._periods), k=ranks, eps=_SLACK)
        weights = 1 / (apart**2 + _SAME**2)
        return np.asarray((weights * self._distances[nearest]).sum(axis=1) / weights.sum(axis=1))
