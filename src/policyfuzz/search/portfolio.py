"""The default search: several ways to propose inputs share an archive, and a bandit shares out the budget."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.algorithm import Told, Workshop, under
from policyfuzz.search.archive import Archive, BehaviourCells, Seen, behaviour_of
from policyfuzz.search.bandit import Bandit, Emitter
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.distinct import Packing
from policyfuzz.search.emitters import CODES, Climbers, Emission
from policyfuzz.search.mutation import Mutator
from policyfuzz.search.nearness import Nearness

#: Most samples before anything is changed; and behaviours from which their cells are laid out.
SAMPLES, _ENOUGH = 256, 64
#: A batch is no larger than this share of what was learnt before, so that learning keeps pace; but no
#: smaller than so many cases, or than this share of what was asked for.
_LARGEST_STEP, _SMALL_BATCH, _SMALLEST_PART = 1 / 16, 64, 1 / 8
#: Distance in the unit cube from which on a finding is new.
_RADIUS = 0.01
#: Chance that a child does not keep its parent's case seed.
_RESEEDED = 0.1
#: How much a new finding raises the energy of its parent, at most.
_PRAISE = 3.0


@dataclass(slots=True)
class PortfolioTactic:
    """Seeks new regions of crashes, and walks through those that it knows.

    An entry is kept where it came nearer to a crash than all others in its cell of the input or of the
    behaviour; a finding, where it is new. Energy starts at one and falls with every child, so that no entry
    is worked on for ever; new findings among the children raise it again.
    """

    samples: int = SAMPLES
    threshold: float = field(init=False, default=float("nan"))
    fresh_share: float = field(init=False, default=float("nan"))
    _bandit: Bandit = field(init=False, default_factory=Bandit)
    _climbers: Climbers = field(init=False, default_factory=Climbers)
    _nearness: Nearness | None = field(init=False, default=None)
    _cells: BehaviourCells | None = field(init=False, default=None)
    _behaviours: NDArray[np.float64] | None = field(init=False, default=None)  #: seen before there were cells
    _archive: Archive | None = field(init=False, default=None)
    _packing: Packing | None = field(init=False, default=None)
    _learnt: int = field(init=False, default=0)  #: episodes
    _inputs: set[bytes] = field(init=False, default_factory=set)  #: of the first entries of the corpus
    _listed: int = field(init=False, default=0)  #: how many these are; none among real numbers
    _spent: list[NDArray[np.int64]] = field(init=False, default_factory=list)  #: entries with new energy

    def urgent(self, shop: Workshop, rng: np.random.Generator, count: int) -> Cases:
        return Cases.none(len(shop.space.dimensions))

    def propose(self, shop: Workshop, rng: np.random.Generator, count: int) -> Cases:
        least = max(_SMALL_BATCH, int(count * _SMALLEST_PART))
        count = min(count, max(least, int(self._learnt * _LARGEST_STEP)))
        archive = self._archive_of(shop)
        if not len(archive.safe):  # everything has crashed so far
            return shop.drawn(Purpose.EXPLORE, rng, count)
        shares = self._bandit.shares(len(archive.crashed))
        explorers = int(rng.binomial(count, shares[Emitter.RANDOM]))
        mutants = self._mutants(Emission(shop, archive, Mutator(shop.space), rng), shares, count - explorers)
        return Cases.concatenate([shop.drawn(Purpose.EXPLORE, rng, explorers), mutants])

    def learn(self, shop: Workshop, cases: Cases, executions: Executions, rng: np.random.Generator) -> Told:
        rows: NDArray[np.int64] | slice = slice(None)
        if executions.errors:  # unless it is a finding, there is nothing to learn from what could not be run
            rows = np.flatnonzero(executions.sound | executions.crashed)
        kept, entries = self._keep(shop, cases[rows], executions[rows])
        changed = np.unique(np.concatenate([*self._spent, np.empty(0, np.int64)]))
        self._spent = []
        older = changed[~np.isin(changed, entries)]
        return Told(np.flatnonzero(executions.crashed), np.arange(len(cases))[rows][kept], entries, older)

    def state(self) -> dict[str, NDArray[Any]]:
        state = {"learnt": np.array([self._learnt])}
        state |= {f"bandit.{name}": array for name, array in self._bandit.state().items()}
        state |= {f"climbers.{name}": array for name, array in self._climbers.state().items()}
        if self._nearness is not None:
            state |= {f"nearness.{name}": array for name, array in self._nearness.state().items()}
        if self._cells is not None:
            state |= {f"cells.{name}": array for name, array in self._cells.state().items()}
        elif self._behaviours is not None:
            state["behaviours"] = self._behaviours
        return state

    def restore(self, shop: Workshop, state: Mapping[str, NDArray[Any]]) -> None:
        self._learnt = int(state["learnt"][0])
        self._bandit = Bandit.from_state(under("bandit.", state))
        self._climbers = Climbers.from_state(under("climbers.", state))
        nearness, cells = under("nearness.", state), under("cells.", state)
        self._nearness = Nearness.from_state(nearness) if nearness else None
        self._cells = BehaviourCells.from_state(cells) if cells else None
        self._behaviours = None if cells else state.get("behaviours")
        self._inputs, self._listed = set(), 0
        unit = shop.space.to_unit(shop.corpus.inputs)
        self._archive = Archive.of(shop.corpus, unit)
        self._packing_of(shop).add(unit[shop.corpus.column("is_crash")])

    def _archive_of(self, shop: Workshop) -> Archive:
        if self._archive is None:
            self._archive = Archive(len(shop.space.dimensions))
        return self._archive

    def _packing_of(self, shop: Workshop) -> Packing:
        if self._packing is None:
            self._packing = Packing(_RADIUS, shop.space.periods)
        return self._packing

    def _mutants(self, emission: Emission, shares: NDArray[np.float64], count: int) -> Cases:
        """Changed copies of entries, by all emitters but the random one."""
        shop, rng, climbers = emission.shop, emission.rng, self._climbers
        if len(stranded := climbers.stranded):
            starts = emission.starts(len(stranded))
            self._tire(shop, np.repeat(starts, 2))
            climbers.start(stranded, starts, rng)
        chances = np.where(np.arange(len(Emitter)) == Emitter.RANDOM, 0.0, shares)

        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            counts = rng.multinomial(wanted, chances / chances.sum())
            return emission.all_children(climbers, counts)

        codes, inputs = shop.validator.fill(count, draw)
        parents, emitters = codes // CODES, codes % CODES
        self._tire(shop, parents[emitters < len(Emitter)])
        # climbers keep their luck, so that each step is due to the change
        is_reseeded = (rng.random(count) < _RESEEDED) & (emitters < len(Emitter))
        if emission.mutator.is_discrete:  # the same once more would say nothing
            is_reseeded |= self._are_entries(shop, inputs)
        fresh = rng.integers(0, 2**63, count, dtype=np.uint64)
        seeds = np.where(is_reseeded, fresh, shop.seeds_of(parents))
        return Cases.of(Purpose.MUTANT, inputs, seeds, parents).by(emitters)

    def _are_entries(self, shop: Workshop, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where the corpus holds an input of `inputs` (n, d)."""
        new = shop.corpus.inputs[self._listed :]
        self._inputs.update(row.tobytes() for row in new)
        self._listed += len(new)
        return np.array([row.tobytes() in self._inputs for row in inputs], np.bool_)

    def _tire(self, shop: Workshop, parents: NDArray[np.int64]) -> None:
        """Lower the energy of `parents` (n,) for each of their children: 1, 1/2, 1/3 and so on."""
        entries, children = np.unique(parents, return_counts=True)
        energy = shop.corpus.column("energy")[entries]
        self._set_energy(shop, entries, energy / (1 + children * energy))

    def _set_energy(self, shop: Workshop, entries: NDArray[np.int64], energy: NDArray[np.float64]) -> None:
        shop.corpus.set_energy(entries, energy)
        self._spent.append(entries)

    def _keep(
        self, shop: Workshop, cases: Cases, executions: Executions
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Put what is worth keeping into the corpus; return those rows and their entries."""
        if not len(cases):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        archive = self._archive_of(shop)
        unit = shop.space.to_unit(cases.inputs)
        seen = self._seen(executions, archive.input_cells.of(unit))
        found = np.flatnonzero(seen.crashed)
        found = found[self._packing_of(shop).add(unit[found])]
        rewards = np.zeros(len(cases))
        rewards[found] = (1 + archive.rarity(seen[found])) / 2
        moves = self._climbed(shop, cases, seen)
        keep = archive.worth_keeping(seen) & np.isfinite(executions.returns)
        keep[found] = keep[list(moves.values())] = True
        kept = np.flatnonzero(keep)
        is_import = cases.purposes == Purpose.IMPORT
        parents = np.where(is_import, NO_PARENT, cases.parents)
        entries = self._append(shop, cases[kept], parents[kept], executions.returns[kept], seen[kept])
        archive.add(entries, seen[kept])
        for climber, row in moves.items():
            self._climbers.move(climber, int(entries[np.searchsorted(kept, row)]))
        self._praise(shop, parents[found], rewards[found])
        self._bandit.learn(_emitters(cases)[~is_import], rewards[~is_import])
        self._learnt += len(cases)
        return kept, entries

    def _append(
        self,
        shop: Workshop,
        cases: Cases,
        parents: NDArray[np.int64],
        returns: NDArray[np.float64],
        seen: Seen,
    ) -> NDArray[np.int64]:
        columns = {
            "parent": parents,
            "case_seed": cases.seeds,
            "return": returns,
            "energy": np.ones(len(cases)),
            "log_density": np.full(len(cases), np.nan),
            "distance": seen.distances,
            "tie_break": seen.tie_breaks,
            "is_crash": seen.crashed,
            "niche": seen.cells[1],
        }
        return shop.corpus.append(cases.inputs, columns)

    def _seen(self, executions: Executions, input_cells: NDArray[np.int64]) -> Seen:
        """What counts of `executions`; of those that were not run to their end only that they crashed."""
        sound, count = executions.sound, len(executions)
        niches, far = np.zeros(count, np.int64), np.full(count, np.inf)
        seen = Seen((input_cells, niches), far, far.copy(), executions.crashed)
        if sound.any():
            whole = executions[sound] if executions.errors else executions
            self._nearness = self._nearness or Nearness.fit(whole)
            niches[sound] = self._niches(whole)
            seen.distances[sound], seen.tie_breaks[sound] = self._nearness.of(whole)
        return seen

    def _niches(self, executions: Executions) -> NDArray[np.int64]:
        """(n,) cells of the behaviour, all the same until enough was seen to lay them out."""
        behaviour = behaviour_of(executions)
        if self._cells is None:
            seen = behaviour if self._behaviours is None else np.concatenate([self._behaviours, behaviour])
            if len(seen) < _ENOUGH:
                self._behaviours = seen
                return np.zeros(len(executions), np.int64)
            self._cells, self._behaviours = BehaviourCells.fit(seen), None
        return self._cells.of(behaviour)

    def _climbed(self, shop: Workshop, cases: Cases, seen: Seen) -> dict[int, int]:
        """Climbers that have found a better place, and the row that it is; the others have failed."""
        climbers = cases.emitters - len(Emitter)
        rows = np.flatnonzero(climbers >= 0)
        rows = rows[self._climbers.is_current(climbers[rows], cases.parents[rows])]
        moves = {}
        for climber in np.unique(climbers[rows]).tolist():
            own = rows[climbers[rows] == climber]
            if seen.crashed[own].any():
                self._climbers.arrive(climber)
                continue
            best = int(own[np.lexsort((seen.tie_breaks[own], seen.distances[own]))[0]])
            here = self._climbers.entries[climber]
            place = (shop.corpus.column("distance")[here], shop.corpus.column("tie_break")[here])
            if (seen.distances[best], seen.tie_breaks[best]) < place:
                moves[climber] = best
            else:
                self._climbers.fail(climber, len(own))
        return moves

    def _praise(self, shop: Workshop, parents: NDArray[np.int64], rewards: NDArray[np.float64]) -> None:
        """Raise the energy of `parents` (n,) whose children were new findings."""
        known_ones = parents != NO_PARENT
        entries, which = np.unique(parents[known_ones], return_inverse=True)
        praise = np.log(shop.corpus.column("energy")[entries])  # products of many would overflow
        np.add.at(praise, which, np.log1p(_PRAISE * rewards[known_ones]))
        self._set_energy(shop, entries, np.exp(np.minimum(praise, 0.0)))


def _emitters(cases: Cases) -> NDArray[np.int64]:
    """(n,) the emitter of each case; all climbers are one."""
    return np.where(cases.emitters >= len(Emitter), int(Emitter.CLIMB), cases.emitters)
