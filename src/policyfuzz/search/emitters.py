"""The emitters of the portfolio: which parents they draw, and how they change them."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.algorithm import SearchContext
from policyfuzz.search.archive import Archive
from policyfuzz.search.cases import Cases
from policyfuzz.search.climbers import CLIMBERS, Climbers, goes_by_tie_break
from policyfuzz.search.distinct import DistinctSet
from policyfuzz.search.mutation import Mutator
from policyfuzz.search.surrogate import Surrogate

#: Entries of which the one nearest to a crash becomes the parent, until there is a finding and from then on.
_FIRST_TOURNAMENT, _TOURNAMENT = 256, 64
#: Entries that those in tournaments are drawn from; and those that a climber may start from.
_POOL, _STARTS = 1024, 512
#: Range of the scales of noise on entries that did not crash; they are drawn evenly by their logarithm. Of
#: larger ones hardly any opened a lineage: random draws reach as far.
_SMALLEST_JUMP, _LARGEST_JUMP = 0.001, 0.1
#: Spread of a scale around its value, as a logarithm.
_SPREAD = 0.5
#: Coordinates of findings that others are compared with at a time; and the range of findings.
_COMPARED_COORDINATES, _FEWEST_COMPARED, _MOST_COMPARED = 1024, 32, 256


class Emitter(IntEnum):
    """Ways to propose a case. The numbers are stored in campaigns: only append."""

    RANDOM = 0  #: a draw from the nominal distribution
    CLIMB = 1  #: the next step of a climber
    JUMP = 2  #: noise on an entry that nearly crashed
    CROSS = 3  #: an entry that nearly crashed, along the difference of two others
    STEP = 4  #: little noise on a finding
    STRIDE = 5  #: more noise on a finding
    LEAP = 6  #: much noise on a finding
    CROSS_FINDINGS = 7  #: a finding, along the difference of two others
    SPAN_FINDINGS = 8  #: a finding, in the directions to its neighbours
    SCREEN = 9  #: of several draws from the nominal distribution the most promising, beside a known entry


#: Emitters that look for new regions.
SEEKERS = [Emitter.CLIMB, Emitter.JUMP, Emitter.CROSS, Emitter.SCREEN]
#: Emitters that walk through known regions.
WALKERS = [Emitter.STEP, Emitter.STRIDE, Emitter.LEAP, Emitter.CROSS_FINDINGS, Emitter.SPAN_FINDINGS]
#: Candidates for each child; emitters that are not named take the first.
_CANDIDATES = {Emitter.SCREEN: 16, **dict.fromkeys(WALKERS, 3)}
#: The same where the surrogate knows what each choice adds, for all that do not climb.
_CANDIDATES_BY_EFFECTS = 16
#: Entries that those who cross draw, at least.
_FEWEST_MATES = 16
#: A draw is larger than the share of valid children asks for: a second one would cost nearly as much.
_SPARE = 0.9
#: Scales of noise on findings.
_SCALES = {Emitter.STEP: 0.01, Emitter.STRIDE: 0.05, Emitter.LEAP: 0.2}
#: `Cases.emitters` holds an emitter, or this number plus a climber.
FIRST_CLIMBER = 64
_NUMBERS = FIRST_CLIMBER + CLIMBERS


def emitters_of(cases: Cases) -> NDArray[np.int64]:
    """(n,) the emitter of each case; all climbers are one."""
    # earlier versions stored climbers at lower numbers
    return np.where(cases.emitters >= len(Emitter), int(Emitter.CLIMB), cases.emitters)


def climbers_of(cases: Cases) -> NDArray[np.int64]:
    """(n,) the climber whose child each case is, negative where of none."""
    return cases.emitters - FIRST_CLIMBER


@dataclass(frozen=True, slots=True)
class Children:
    """n changed copies of corpus entries."""

    parents: NDArray[np.int64]  #: (n,) entries
    emitters: NDArray[np.int64]  #: (n,) for `Cases.emitters`
    inputs: NDArray[np.float64]  #: (n, d)

    @property
    def is_climbing(self) -> NDArray[np.bool_]:
        """(n,) True for the steps of climbers."""
        return np.asarray(self.emitters >= FIRST_CLIMBER)


@dataclass(frozen=True, slots=True)
class Emitters:
    """All emitters except the random one."""

    context: SearchContext
    archive: Archive
    climbers: Climbers
    mutator: Mutator
    rng: np.random.Generator
    served: NDArray[np.int64]  #: (k,) climbers that get children now
    known: DistinctSet  #: findings that are parents
    surrogate: Surrogate

    def propose(self, shares: NDArray[np.float64], count: int) -> Children:
        """`count` valid and solvable children; the emitters draw them with chances as in `shares` (e,)."""
        chances = np.where(np.arange(len(Emitter)) == Emitter.RANDOM, 0.0, shares)

        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            counts = self.rng.multinomial(wanted, chances / chances.sum())
            children = self._draw(counts)
            # the validator carries one number for each input
            return children.parents * _NUMBERS + children.emitters, children.inputs

        rate = _SPARE * self.context.validator.valid_rate
        origins, inputs = self.context.validator.fill(count, draw, rate)
        return Children(origins // _NUMBERS, origins % _NUMBERS, inputs)

    def climbing_starts(self, climbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) entries for `climbers` (n,) to start from: promising ones, far from the findings.

        Each is of another lineage, without a finding, that nobody has climbed from, while there are such.
        """
        safe, roots = self.archive.safe, self.context.corpus.column("root")
        used = np.concatenate([self.climbers.climbed, roots[self.archive.crashed]])
        unused = safe[~np.isin(roots[safe], used)]
        pool = unused if len(unused) >= len(climbers) else safe
        pool = self.rng.choice(pool, min(len(pool), _STARTS), replace=False)
        if len(self.archive.crashed):
            distances = self.mutator.distances(self._unit(pool), self._some_findings()).min(axis=1)
            pool = pool[np.argsort(-distances, kind="stable")][: max(len(pool) // 2, 1)]
        starts: list[int] = []
        for by_tie_break in goes_by_tie_break(climbers):
            others = pool[~np.isin(roots[pool], roots[starts])] if starts else pool
            row = others if len(others) else pool
            starts.append(int(self._nearest_to_crash(row[None], np.array([by_tie_break]))[0]))
        return np.array(starts, np.int64)

    def _draw(self, counts: NDArray[np.int64]) -> Children:
        """`counts` (e,) children of each emitter, shuffled; they may be invalid."""
        chosen = np.resize(self.rng.permutation(self.served), int(counts[Emitter.CLIMB]))
        standing = self.climbers.entries[chosen]
        steps = self.climbers.children(chosen, self._unit(standing), self.mutator, self.rng)
        parents, emitters, units = [standing], [FIRST_CLIMBER + chosen], [steps]
        candidates = [np.ones(len(chosen), np.int64)]
        for emitter in [one for one in list(Emitter)[Emitter.JUMP :] if counts[one]]:
            several = _CANDIDATES_BY_EFFECTS if self.surrogate.knows_effects else _CANDIDATES.get(emitter, 1)
            candidates.append(np.full(counts[emitter], several))
            entries, unit = self._emit(emitter, int(candidates[-1].sum()))
            parents.append(entries)
            emitters.append(np.full(len(entries), int(emitter)))
            units.append(unit)
        unit = np.concatenate(units)
        best = self._most_promising(unit, np.concatenate(candidates))
        best = best[self.rng.permutation(len(best))]  # the validator takes the first good ones
        entries, kinds, unit = np.concatenate(parents)[best], np.concatenate(emitters)[best], unit[best]
        screened = np.flatnonzero(kinds == Emitter.SCREEN)
        entries[screened] = self.surrogate.nearest(unit[screened])
        inputs = self.mutator.inputs(unit, self._unit(entries), self.context.corpus.inputs[entries])
        return Children(entries, kinds, inputs)

    def _most_promising(self, unit: NDArray[np.float64], candidates: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) row of `unit` (m, d) that becomes each child; the next `candidates` (n,) rows are for it.

        What lies near a known finding comes last: it would teach little.
        """
        rows = np.flatnonzero(np.repeat(candidates, candidates) > 1)
        places = self.mutator.settled(unit[rows])
        is_open = self.known.is_free(places)
        guessed = np.zeros(len(unit))
        guessed[rows[~is_open]] = np.inf
        guessed[rows[is_open]] = self.surrogate.guess(places[is_open])
        by_child = np.lexsort((guessed, np.repeat(np.arange(len(candidates)), candidates)))
        return np.asarray(by_child[np.cumsum(candidates) - candidates])

    def _emit(self, emitter: Emitter, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Parents (n,) that the `emitter` prefers, and where it puts their children: unit (n, d)."""
        if emitter == Emitter.SCREEN:
            unit = self.context.space.to_unit(self.context.space.sample(self.rng, count))
            return np.zeros(count, np.int64), unit  # the parents of those that are chosen come later
        if emitter == Emitter.JUMP:
            parents = self._promising(self._of_open_lineages(), count)
            scales = _SMALLEST_JUMP * (_LARGEST_JUMP / _SMALLEST_JUMP) ** self.rng.random(count)
            return parents, self.mutator.jump(self._unit(parents), scales, self.rng)
        if emitter == Emitter.CROSS:
            return self._crossed(self._promising(self.archive.safe, max(count, _FEWEST_MATES)), count)
        if emitter == Emitter.CROSS_FINDINGS:
            return self._crossed(self._weighted(self.archive.crashed, max(count, _FEWEST_MATES)), count)
        parents = self._weighted(self.archive.crashed, count)
        if emitter == Emitter.SPAN_FINDINGS:
            return parents, self.mutator.span(self._unit(parents), self._some_findings(), self.rng)
        return parents, self._noisy(parents, np.full(count, _SCALES[emitter]))

    def _noisy(self, parents: NDArray[np.int64], scales: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, d) `parents` (n,) with noise at about `scales` (n,)."""
        varied = scales * np.exp(_SPREAD * self.rng.normal(size=len(parents)))
        return self.mutator.jump(self._unit(parents), varied, self.rng)

    def _crossed(self, drawn: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The first `count` of `drawn` entries, and these moved along the difference of two others."""
        unit = self._unit(drawn)
        first, second = unit[self.rng.integers(len(drawn), size=(2, count))]
        return drawn[:count], self.mutator.cross(unit[:count], first, second, self.rng)

    def _of_open_lineages(self) -> NDArray[np.int64]:
        """(n,) parents of lineages without a finding; all that did not crash, if there is none of these."""
        safe, roots = self.archive.safe, self.context.corpus.column("root")
        is_open = ~np.isin(roots[safe], roots[self.archive.crashed])
        return safe[is_open] if is_open.any() else safe

    def _promising(self, entries: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """(count,) of `entries` (n,), each the nearest to a crash of a few that are drawn by energy."""
        size = _TOURNAMENT if len(self.archive.crashed) else _FIRST_TOURNAMENT
        # places in a pool are drawn far faster than entries by energy
        pool = self._weighted(entries, min(_POOL, count * size))
        drawn = pool[self.rng.integers(len(pool), size=(count, size), dtype=np.uint16)]
        return self._nearest_to_crash(drawn, self.rng.random(count) < 0.5)

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
