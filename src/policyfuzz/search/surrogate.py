"""A surrogate: how near a candidate would come to a crash, guessed from entries of the corpus.

From its nearest neighbours; or, where all that an input holds are choices, from what each of them adds.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from policyfuzz.core.inputs import Choice, InputSpace
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.distinct import tree_of, wrapped

#: Latest entries of the corpus that are asked, at most: so many, and so many coordinates.
_MOST_ENTRIES, _MOST_COORDINATES = 2048, 65_536
#: Neighbours that a guess comes from, and the distance within which all weigh about the same.
_NEIGHBOURS, _SAME = 5, 1e-3
#: A neighbour may be farther away than the one that is meant, by this share. It is a guess all the same, and
#: the tree answers two to six times as fast.
_SLACK = 1.0
#: Entries that say nothing, as a prior of the effects of choices.
_PRIOR_ENTRIES = 10.0


@dataclass(frozen=True, slots=True)
class Surrogate:
    """Guesses from what the corpus holds, so that nothing has to be stored for a resumed campaign."""

    _tree: KDTree
    _entries: NDArray[np.int64]  #: (m,) of the corpus
    _distances: NDArray[np.float64]  #: (m,) of entries from a crash, at most 0 for findings
    _periods: NDArray[np.float64]  #: (d,) 1 where a coordinate wraps round, 0 where it does not
    _effects: "Effects | None"  #: None unless all dimensions are choices

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
        effects = None
        if all(isinstance(dimension, Choice) for dimension in space.dimensions):
            tie_breaks = np.nan_to_num(corpus.column("tie_break")[entries], nan=np.inf)
            effects = Effects.fit(space, unit, _ranks(distances) + _ranks(tie_breaks))
        return cls(tree_of(unit, space.periods), entries, distances, space.periods, effects)

    @property
    def knows_effects(self) -> bool:
        """True where all that an input holds are choices."""
        return self._effects is not None

    def nearest(self, unit: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) entries of the corpus that inputs at `unit` (n, d) lie beside."""
        _, places = self._tree.query(wrapped(unit, self._periods), eps=_SLACK)
        return np.asarray(self._entries[places])

    def guess(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) how far from a crash inputs at `unit` (n, d) would stay, the lower the nearer."""
        if not self._tree.n:
            return np.zeros(len(unit))
        if self._effects is not None:
            return self._effects.of(unit)
        ranks = np.arange(1, min(_NEIGHBOURS, self._tree.n) + 1)
        apart, nearest = self._tree.query(wrapped(unit, self._periods), k=ranks, eps=_SLACK)
        weights = 1 / (apart**2 + _SAME**2)
        return np.asarray((weights * self._distances[nearest]).sum(axis=1) / weights.sum(axis=1))


@dataclass(frozen=True, slots=True)
class Effects:
    """What each value of each choice adds to the rank of an entry: a linear model, shrunk towards none.

    Neighbours say little there. Of fifteen choices, a few may decide, and the nearest entry differs in these
    as easily as in the others.
    """

    _space: InputSpace
    _effects: NDArray[np.float64]  #: (v,) of all values, dimension by dimension

    @classmethod
    def fit(cls, space: InputSpace, unit: NDArray[np.float64], ranks: NDArray[np.float64]) -> "Effects":
        """The effects of entries at `unit` (m, d) that have `ranks` (m,)."""
        chosen = _chosen(space, unit)
        chosen = chosen - chosen.mean(axis=0) if len(chosen) else chosen
        ridge = chosen.T @ chosen + _PRIOR_ENTRIES * np.eye(chosen.shape[1])
        return cls(space, np.linalg.solve(ridge, chosen.T @ ranks))

    def of(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) the sum of effects at `unit` (n, d)."""
        return np.asarray(_chosen(self._space, unit) @ self._effects)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) rank of each of `values` (n,), from 1; equals share their mean. SciPy's takes long to import."""
    ordered = np.sort(values)
    below, upto = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray((below + upto + 1) / 2)


def _chosen(space: InputSpace, unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, v) 1 for each value that is chosen at `unit` (n, d), else 0."""
    inputs = space.from_unit(unit)
    values = [np.arange(one.low, one.high + 1) for one in space.dimensions]
    columns = [inputs[:, [place]] == allowed for place, allowed in enumerate(values)]
    return np.concatenate(columns, axis=1).astype(np.float64)
