"""Climbers: local searches that each start at another draw, and climb from there towards a crash.

Each is a separable CMA-ES: a Gaussian that moves to the better half of its children, and learns its width in
every dimension from them. Its parts are described by Ros and Hansen (2008).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.cases import Cases
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.evaluation import Evaluations
from policyfuzz.search.mutation import Mutator
from policyfuzz.search.state import State

#: Most climbers at a time.
CLIMBERS = 16
#: Generations without progress after which a climber starts anew elsewhere.
_PATIENCE = 20
#: Scale of a climber's first steps, and its range.
_FIRST_STEP, _SMALLEST_STEP, _LARGEST_STEP = 0.1, 1e-4, 0.5
#: Range of the width in one dimension, as a multiple of the scale.
_NARROWEST, _WIDEST = 1e-3, 1e3
_NOWHERE = -1
_FIELDS = ("entries", "failures", "scales", "means", "widths", "paths", "trends", "waiting", "climbed")


def generation_size(dimensions: int) -> int:
    """Children after which a climber learns, as usual for CMA-ES."""
    return 4 + int(3 * math.log(dimensions))


def goes_by_tie_break(climber: Any) -> Any:
    """True for every fourth climber: it goes by what breaks ties between distances."""
    return climber % 4 == 3


@dataclass(slots=True)
class Climbers:
    """k climbers in the unit cube of d dimensions.

    Each stands at the best of its children so far. That entry of the corpus becomes the parent of the next
    ones, though they are drawn around the mean.
    """

    entries: NDArray[np.int64]  #: (k,) of the corpus, or _NOWHERE
    failures: NDArray[np.int64]  #: (k,) children since the last progress
    scales: NDArray[np.float64]  #: (k,) sigma of CMA-ES
    means: NDArray[np.float64]  #: (k, d)
    widths: NDArray[np.float64]  #: (k, d) roots of the diagonal of its matrix C
    paths: NDArray[np.float64]  #: (k, d) recent steps, which decide about the scale
    trends: NDArray[np.float64]  #: (k, d) recent steps, which widen the directions that they go in
    #: (k,) above 0 for climbers with children that are being run: the later these were sent, the higher.
    waiting: NDArray[np.int64]
    climbed: NDArray[np.int64]  #: (m,) roots of all lineages that a climber has started from

    @classmethod
    def of(cls, dimensions: int) -> "Climbers":
        """Climbers that stand nowhere yet."""
        flat = np.zeros((CLIMBERS, dimensions))
        nowhere = np.full(CLIMBERS, _NOWHERE)
        none = np.empty(0, np.int64)
        return cls(
            nowhere,
            np.zeros(CLIMBERS, np.int64),
            np.ones(CLIMBERS),
            flat,
            flat + 1,
            flat.copy(),
            flat.copy(),
            np.zeros(CLIMBERS, np.int64),
            none,
        )

    @property
    def dimensions(self) -> int:
        """Of the input space."""
        return int(self.means.shape[1])

    @property
    def idle(self) -> NDArray[np.int64]:
        """(m,) climbers without children that are being run."""
        return np.flatnonzero(self.waiting == 0)

    def served(self, children: float) -> NDArray[np.int64]:
        """(m,) idle climbers that share so many `children`: as many as get a generation or more each."""
        return self.idle[: max(int(children // generation_size(self.dimensions)), 1)]

    def stranded(self, climbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """(m,) which of `climbers` (n,) need a new start: they have none, have arrived or are stuck."""
        patience = _PATIENCE * generation_size(self.dimensions)
        is_stuck = (self.failures > patience) | (self.scales <= _SMALLEST_STEP)
        return np.asarray(climbers[((self.entries == _NOWHERE) | is_stuck)[climbers]])

    def send(self, climbers: NDArray[np.int64]) -> None:
        """Let `climbers` (n,), which have children now, wait for these."""
        self.waiting[climbers] = self.waiting.max() + 1

    def receive(self, climbers: NDArray[np.int64]) -> None:
        """Note that children of `climbers` (n,) have been run.

        Results come in the order of the questions, so what was sent before these will never come.
        """
        latest = self.waiting[climbers].max(initial=0)
        self.waiting[self.waiting <= latest] = 0

    def start(
        self,
        climbers: NDArray[np.int64],
        entries: NDArray[np.int64],
        unit: NDArray[np.float64],
        roots: NDArray[np.int64],
    ) -> None:
        """Let `climbers` (m,) start at `entries` (m,), at `unit` (m, d), whose lineages have `roots` (m,)."""
        self.entries[climbers], self.means[climbers] = entries, unit
        self.failures[climbers], self.scales[climbers], self.widths[climbers] = 0, _FIRST_STEP, 1.0
        self.paths[climbers] = self.trends[climbers] = 0.0
        self.climbed = np.concatenate([self.climbed, roots])

    def children(
        self,
        climbers: NDArray[np.int64],
        parents: NDArray[np.float64],
        mutator: Mutator,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """(n, d) a child of each of `climbers` (n,), whose entries are at `parents` (n, d)."""
        spread = self.scales[climbers, None] * self.widths[climbers]
        return mutator.around(self.means[climbers], spread, parents, self.scales[climbers], rng)

    def learn(
        self,
        corpus: Corpus,
        cases: Cases,
        climbers: NDArray[np.int64],
        unit: NDArray[np.float64],
        evaluations: Evaluations,
        mutator: Mutator,
    ) -> dict[int, int]:
        """Learn from `cases` at `unit` (n, d) that are children of `climbers` (n,), negative where of none.

        Returns each climber that found a better place, and its row; the caller must `move` it there once the
        row is in the corpus.
        """
        rows = np.flatnonzero(climbers >= 0)
        rows = rows[self._is_current(corpus, climbers[rows], cases.parents[rows])]
        moves = {}
        for climber in np.unique(climbers[rows]).tolist():
            steps = rows[climbers[rows] == climber]
            if evaluations.crashed[steps].any():
                self.entries[climber] = _NOWHERE  # it has arrived
                continue
            seen, names = evaluations, ("distance", "tie_break")
            if goes_by_tie_break(climber):
                seen, names = seen.swapped, names[::-1]
            steps = steps[np.lexsort((seen.tie_breaks[steps], seen.distances[steps]))]
            here = tuple(corpus.column(name)[self.entries[climber]] for name in names)
            if (seen.distances[steps[0]], seen.tie_breaks[steps[0]]) < here:
                moves[climber] = int(steps[0])
                self.failures[climber] = 0
            else:
                self.failures[climber] += len(steps)
            if len(steps) > 1:
                self._adapt(climber, unit[steps], mutator)
        return moves

    def move(self, climber: int, entry: int) -> None:
        """Note the corpus `entry` of the best child so far."""
        self.entries[climber] = entry

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {name: getattr(self, name) for name in _FIELDS}

    @classmethod
    def from_state(cls, state: State, dimensions: int) -> "Climbers":
        """The climbers, in so many `dimensions`, that had this `state`; ValueError if nobody can have."""
        model = cls.of(dimensions)
        state = {"waiting": model.waiting, **state}  # in earlier versions nobody waited
        for name in _FIELDS:
            given, expected = state[name], getattr(model, name)
            shape = given.shape if name == "climbed" and given.ndim == 1 else expected.shape
            if given.dtype != expected.dtype or given.shape != shape:
                is_not = f"{given.dtype} {given.shape}, not {expected.dtype} {shape}"
                raise ValueError(f"the {name} of climbers are {is_not}")
            if not np.isfinite(given).all():
                raise ValueError(f"the {name} of climbers are not all finite")
        if state["waiting"].min() < 0:
            raise ValueError("climbers wait for less than nothing")
        return cls(*(state[name] for name in _FIELDS))

    def _is_current(
        self, corpus: Corpus, climbers: NDArray[np.int64], parents: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """(n,) True where a climber (n,) has not left the lineage of its child's parent (n,)."""
        roots, here = corpus.column("root"), self.entries[climbers]
        return np.asarray((here != _NOWHERE) & (roots[parents] == roots[here]))

    def _adapt(self, climber: int, unit: NDArray[np.float64], mutator: Mutator) -> None:
        """Move the Gaussian of a climber to the better half of its children at `unit` (n, d), best first."""
        has_order = mutator.has_order
        rates = Rates.of(len(unit), max(int(np.count_nonzero(has_order)), 1))
        scale, widths = self.scales[climber], self.widths[climber]
        steps = mutator.apart(unit[: len(rates.weights)], self.means[climber]) / (scale * widths)
        steps = np.where(has_order, steps, 0.0)  # there is no way from one such value to another
        step = rates.weights @ steps
        path = rates.fade(self.paths[climber], step, rates.path)
        length = float(np.linalg.norm(path)) / rates.expected
        is_steady = length < 1.4 + 2 / (self.dimensions + 1)  # else it would widen what is wide already
        trend = rates.fade(self.trends[climber], widths * step * is_steady, rates.trend)
        varied = rates.weights @ (widths * steps) ** 2
        variances = (1 - rates.one - rates.many) * widths**2 + rates.one * trend**2 + rates.many * varied
        self.means[climber] = mutator.folded(self.means[climber] + scale * widths * step)
        self.paths[climber], self.trends[climber] = path, trend
        self.widths[climber] = np.clip(np.sqrt(variances), _NARROWEST, _WIDEST)
        grown = scale * math.exp(min(1.0, rates.path / rates.damping * (length - 1)))
        self.scales[climber] = min(max(grown, _SMALLEST_STEP), _LARGEST_STEP)


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast CMA-ES learns from a generation; the defaults of its authors."""

    weights: NDArray[np.float64]  #: (m,) of the better children, the best first
    mass: float  #: mu_eff, how many children the weights stand for
    path: float  #: c_sigma
    trend: float  #: c_c
    one: float  #: c_1, of the trend
    many: float  #: c_mu, of the children
    damping: float  #: d_sigma
    expected: float  #: length of a path of random steps

    @classmethod
    def of(cls, children: int, dimensions: int) -> "Rates":
        """For a generation of so many `children`, at least two."""
        best = np.arange(1, children // 2 + 1)
        weights = math.log((children + 1) / 2) - np.log(best)
        weights /= weights.sum()
        mass, size = float(1 / (weights**2).sum()), float(dimensions)
        path = (mass + 2) / (size + mass + 5)
        faster = (size + 2) / 3  # a diagonal is learnt from fewer children than a whole matrix
        one = min(1.0, faster * 2 / ((size + 1.3) ** 2 + mass))
        many = min(1 - one, faster * 2 * (mass - 2 + 1 / mass) / ((size + 2) ** 2 + mass))
        return cls(
            weights=weights,
            mass=mass,
            path=path,
            trend=(4 + mass / size) / (size + 4 + 2 * mass / size),
            one=one,
            many=many,
            damping=1 + 2 * max(0.0, math.sqrt((mass - 1) / (size + 1)) - 1) + path,
            expected=math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2)),
        )

    def fade(self, past: NDArray[np.float64], step: NDArray[np.float64], rate: float) -> NDArray[np.float64]:
        """`past` steps (d,) with the latest one, such that random steps neither grow nor shrink."""
        return np.asarray((1 - rate) * past + math.sqrt(rate * (2 - rate) * self.mass) * step)
