"""The emitters of the portfolio: which parents they draw, and how they change them."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.algorithm import SearchContext
from policyfuzz.search.archive import Archive
from policyfuzz.search.cases import Cases
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.evaluation import Evaluations
from policyfuzz.search.mutation import Mutator
from policyfuzz.search.state import State

#: Entries of which the one nearest to a crash becomes the parent; twice as many for the start of a climber.
_TOURNAMENT = 64
#: Range of the scales of noise on entries that did not crash; they are drawn evenly by their logarithm.
_SMALLEST_JUMP, _LARGEST_JUMP = 0.001, 0.5
#: Spread of a scale around its value, as a logarithm.
_SPREAD = 0.5
#: Coordinates of findings that others are compared with at a time; and the range of findings.
_COMPARED_COORDINATES, _FEWEST_COMPARED, _MOST_COMPARED = 1024, 32, 256

#: Climbers at a time.
CLIMBERS = 16
#: Children without progress after which a climber starts anew elsewhere.
_PATIENCE = 48
#: Scale of a climber's first steps, and its range; it grows with success and shrinks without (1/5 rule).
_FIRST_STEP, _SMALLEST_STEP, _LARGEST_STEP = 0.05, 1e-4, 0.5
_GROWTH, _SHRINKAGE = 1.5, 0.9
_NOWHERE = -1


class Emitter(IntEnum):
    """Ways to propose a case."""

    RANDOM = 0  #: a draw from the nominal distribution
    CLIMB = 1  #: the next step of a climber
    JUMP = 2  #: noise on an entry that nearly crashed
    CROSS = 3  #: an entry that nearly crashed, along the difference of two others
    STEP = 4  #: little noise on a finding
    STRIDE = 5  #: more noise on a finding
    LEAP = 6  #: much noise on a finding
    CROSS_FINDINGS = 7  #: a finding, along the difference of two others
    SPAN_FINDINGS = 8  #: a finding, in the directions to its neighbours


#: Scales of noise on findings.
_SCALES = {Emitter.STEP: 0.01, Emitter.STRIDE: 0.05, Emitter.LEAP: 0.2}
#: Numbers that `Cases.emitters` may hold: an emitter, or that many plus a climber.
_NUMBERS = len(Emitter) + CLIMBERS


def emitters_of(cases: Cases) -> NDArray[np.int64]:
    """(n,) the emitter of each case; all climbers are one."""
    return np.where(cases.emitters >= len(Emitter), int(Emitter.CLIMB), cases.emitters)


def _goes_by_tie_break(climber: Any) -> Any:
    """True for every other climber: it goes by what breaks ties between distances."""
    return climber % 2 == 1


@dataclass(frozen=True, slots=True)
class Children:
    """n changed copies of corpus entries."""

    parents: NDArray[np.int64]  #: (n,) entries
    emitters: NDArray[np.int64]  #: (n,) for `Cases.emitters`
    inputs: NDArray[np.float64]  #: (n, d)

    @property
    def is_climbing(self) -> NDArray[np.bool_]:
        """(n,) True for the steps of climbers."""
        return np.asarray(self.emitters >= len(Emitter))


@dataclass(frozen=True, slots=True)
class Emitters:
    """All emitters except the random one."""

    context: SearchContext
    archive: Archive
    climbers: "Climbers"
    mutator: Mutator
    rng: np.random.Generator

    def propose(self, shares: NDArray[np.float64], count: int) -> Children:
        """`count` valid and solvable children; the emitters draw them with chances as in `shares` (e,)."""
        chances = np.where(np.arange(len(Emitter)) == Emitter.RANDOM, 0.0, shares)

        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            counts = self.rng.multinomial(wanted, chances / chances.sum())
            children = self._draw(counts)
            # the validator carries one number for each input
            return children.parents * _NUMBERS + children.emitters, children.inputs

        origins, inputs = self.context.validator.fill(count, draw)
        return Children(origins // _NUMBERS, origins % _NUMBERS, inputs)

    def climbing_starts(self, climbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) entries for `climbers` (n,) to climb from: promising ones, far from the findings."""
        count = len(climbers)
        entries = self._weighted(self.archive.safe, count * 2 * _TOURNAMENT).reshape(count, 2 * _TOURNAMENT)
        if len(self.archive.crashed):
            distances = self.mutator.distances(self._unit(entries.ravel()), self._some_findings()).min(axis=1)
            farthest = np.argsort(-distances.reshape(entries.shape), axis=1, kind="stable")[:, :_TOURNAMENT]
            entries = np.take_along_axis(entries, farthest, axis=1)
        return self._nearest_to_crash(entries, _goes_by_tie_break(climbers))

    def _draw(self, counts: NDArray[np.int64]) -> Children:
        """`counts` (e,) children of each emitter, shuffled; they may be invalid."""
        chosen = self.rng.integers(0, CLIMBERS, int(counts[Emitter.CLIMB]))
        steps = self._noisy(self.climbers.entries[chosen], self.climbers.scales[chosen])
        parents, emitters, units = [self.climbers.entries[chosen]], [len(Emitter) + chosen], [steps]
        for emitter in [one for one in list(Emitter)[Emitter.JUMP :] if counts[one]]:
            entries, unit = self._emit(emitter, int(counts[emitter]))
            parents.append(entries)
            emitters.append(np.full(len(entries), int(emitter)))
            units.append(unit)
        order = self.rng.permutation(int(counts.sum()))  # the validator takes the first good ones
        entries = np.concatenate(parents)[order]
        inputs = self.mutator.inputs(
            np.concatenate(units)[order], self._unit(entries), self.context.corpus.inputs[entries]
        )
        return Children(entries, np.concatenate(emitters)[order], inputs)

    def _emit(self, emitter: Emitter, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Parents (n,) that the `emitter` prefers, and where it puts their children: unit (n, d)."""
        if emitter == Emitter.JUMP:
            parents = self._promising(count)
            scales = _SMALLEST_JUMP * (_LARGEST_JUMP / _SMALLEST_JUMP) ** self.rng.random(count)
            return parents, self.mutator.jump(self._unit(parents), scales, self.rng)
        if emitter == Emitter.CROSS:
            parents, first, second = (self._promising(count) for _ in range(3))
            return parents, self._crossed(parents, first, second)
        findings = self.archive.crashed
        if emitter == Emitter.CROSS_FINDINGS:
            parents, first, second = (self._weighted(findings, count) for _ in range(3))
            return parents, self._crossed(parents, first, second)
        parents = self._weighted(findings, count)
        if emitter == Emitter.SPAN_FINDINGS:
            return parents, self.mutator.span(self._unit(parents), self._some_findings(), self.rng)
        return parents, self._noisy(parents, np.full(count, _SCALES[emitter]))

    def _noisy(self, parents: NDArray[np.int64], scales: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, d) `parents` (n,) with noise at about `scales` (n,)."""
        varied = scales * np.exp(_SPREAD * self.rng.normal(size=len(parents)))
        return self.mutator.jump(self._unit(parents), varied, self.rng)

    def _crossed(
        self, parents: NDArray[np.int64], first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(n, d) `parents` (n,) moved along the difference of `first` (n,) and `second` (n,)."""
        return self.mutator.cross(self._unit(parents), self._unit(first), self._unit(second), self.rng)

    def _promising(self, count: int) -> NDArray[np.int64]:
        """(n,) entries, each the nearest to a crash of a few that are drawn by energy."""
        entries = self._weighted(self.archive.safe, count * _TOURNAMENT)
        return self._nearest_to_crash(entries.reshape(count, _TOURNAMENT), self.rng.random(count) < 0.5)

    def _nearest_to_crash(
        self, entries: NDArray[np.int64], by_tie_break: NDArray[np.bool_]
    ) -> NDArray[np.int64]:
        """(n,) of each row of `entries` (n, k) the one that came nearest to a crash.

        By distance, or where `by_tie_break` (n,) by what else breaks ties.
        """
        columns = (self.context.corpus.column(name)[entries] for name in ("distance", "tie_break"))
        distances, tie_breaks = columns
        first = np.where(by_tie_break[:, None], tie_breaks, distances)
        second = np.where(by_tie_break[:, None], distances, tie_breaks)
        is_least = first == first.min(axis=1, keepdims=True)
        best = np.where(is_least, second, np.inf).argmin(axis=1)
        return np.asarray(entries[np.arange(len(entries)), best])

    def _weighted(self, entries: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """(count,) of `entries` (m,), drawn by energy."""
        sums = np.cumsum(self.context.corpus.column("energy")[entries])
        places = np.searchsorted(sums, self.rng.random(count) * sums[-1], side="right")
        return np.asarray(entries[np.minimum(places, len(entries) - 1)])

    def _some_findings(self) -> NDArray[np.float64]:
        """(m, d) some findings, in the unit cube."""
        findings, dimensions = self.archive.crashed, len(self.context.space.dimensions)
        affordable = min(_COMPARED_COORDINATES // dimensions, _MOST_COMPARED)
        count = min(len(findings), max(_FEWEST_COMPARED, affordable))
        return self._unit(self.rng.choice(findings, count, replace=False))

    def _unit(self, entries: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.context.space.to_unit(self.context.corpus.inputs[entries])


@dataclass(slots=True)
class Climbers:
    """Local searches. Each climber stands at an entry of the corpus and moves on to better children."""

    entries: NDArray[np.int64] = field(default_factory=lambda: np.full(CLIMBERS, _NOWHERE))
    #: The places before; their children may still be running.
    previous: NDArray[np.int64] = field(default_factory=lambda: np.full(CLIMBERS, _NOWHERE))
    scales: NDArray[np.float64] = field(default_factory=lambda: np.full(CLIMBERS, _FIRST_STEP))
    failures: NDArray[np.int64] = field(default_factory=lambda: np.zeros(CLIMBERS, np.int64))

    @property
    def stranded(self) -> NDArray[np.int64]:
        """(m,) climbers that need a new start: they have none, have found a crash or are stuck."""
        return np.flatnonzero((self.entries == _NOWHERE) | (self.failures > _PATIENCE))

    def start(
        self, climbers: NDArray[np.int64], entries: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Let `climbers` (m,) start at `entries` (m,)."""
        self.entries[climbers], self.previous[climbers] = entries, _NOWHERE
        self.scales[climbers] = _FIRST_STEP * np.exp(rng.normal(size=len(climbers)))
        self.failures[climbers] = 0

    def learn(self, corpus: Corpus, cases: Cases, evaluations: Evaluations) -> dict[int, int]:
        """Learn from steps among `cases`. Return each climber that found a better place, and its row.

        The caller must `move` such a climber once its row is in the corpus.
        """
        climbers = cases.emitters - len(Emitter)
        rows = np.flatnonzero(climbers >= 0)
        rows = rows[self.is_current(climbers[rows], cases.parents[rows])]
        moves = {}
        for climber in np.unique(climbers[rows]).tolist():
            steps = rows[climbers[rows] == climber]
            if evaluations.crashed[steps].any():
                self.arrive(climber)
                continue
            seen = evaluations.swapped if _goes_by_tie_break(climber) else evaluations
            names = ("tie_break", "distance") if _goes_by_tie_break(climber) else ("distance", "tie_break")
            order = np.lexsort((seen.tie_breaks[steps], seen.distances[steps]))
            best = int(steps[order[0]])
            here = self.entries[climber]
            place = tuple(corpus.column(name)[here] for name in names)
            if (seen.distances[best], seen.tie_breaks[best]) < place:
                moves[climber] = best
            else:
                self.fail(climber, len(steps))
        return moves

    def is_current(self, climbers: NDArray[np.int64], parents: NDArray[np.int64]) -> NDArray[np.bool_]:
        """(n,) True where a climber is still at the parent (n,) of its child, or was there just before."""
        here, before = self.entries[climbers], self.previous[climbers]
        return np.asarray((parents == here) | (parents == before))

    def arrive(self, climber: int) -> None:
        """The climber has found a crash, and needs a new start."""
        self.entries[climber] = self.previous[climber] = _NOWHERE

    def move(self, climber: int, entry: int) -> None:
        """Continue from a better `entry`."""
        self.previous[climber], self.entries[climber] = self.entries[climber], entry
        self.scales[climber] = min(self.scales[climber] * _GROWTH, _LARGEST_STEP)
        self.failures[climber] = 0

    def fail(self, climber: int, children: int) -> None:
        """Count `children` of which none was better."""
        self.failures[climber] += children
        self.scales[climber] = max(self.scales[climber] * _SHRINKAGE**children, _SMALLEST_STEP)

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {name: getattr(self, name) for name in ("entries", "previous", "scales", "failures")}

    @classmethod
    def from_state(cls, state: State) -> "Climbers":
        """The climbers that had this `state`."""
        return cls(state["entries"], state["previous"], state["scales"], state["failures"])
