"""The default search: several emitters share an archive, and a bandit shares out the budget among them."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.algorithm import Observed, SearchContext, Update
from policyfuzz.search.archive import Archive
from policyfuzz.search.bandit import Bandit
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.climbers import Climbers
from policyfuzz.search.distinct import DistinctSet
from policyfuzz.search.emitters import FIRST_CLIMBER, Emitter, Emitters, climbers_of, emitters_of
from policyfuzz.search.evaluation import Evaluator
from policyfuzz.search.mutation import Mutator
from policyfuzz.search.state import State, prefixed, substate
from policyfuzz.search.surrogate import Surrogate

#: Most samples before the first proposal.
SAMPLES = 256
#: A batch is no larger than this share of the episodes learnt before, so that learning keeps pace; but no
#: smaller than so many cases, or than this share of what was asked for.
_LARGEST_GROWTH, _SMALLEST_BATCH, _SMALLEST_SHARE = 1 / 16, 64, 1 / 8
#: Chance that a child does not keep its parent's case seed.
_RESEEDED = 0.1
#: Findings become parents if they are this share of the radius of distinct ones from each other, so that
#: walkers reach the next distinct one in steps.
_PARENT_RADIUS_SHARE = 0.5
#: How much a distinct finding raises the energy of its parent, at most.
_LARGEST_BONUS = 3.0


@dataclass(slots=True)
class PortfolioSearch:
    """Seeks new regions of crashes, and walks through known ones.

    An entry is kept if it came nearer to a crash than all others in its cell of the input or of the
    behaviour; a finding, if it is apart from the others. Energy starts at one and falls with every child, so
    that the search never stays with one entry; findings among the children raise it again, the more the rarer
    they are in their cells, and most if they are distinct.
    """

    samples: int = SAMPLES
    fresh_threshold: float = field(init=False, default=float("nan"))
    fresh_share: float = field(init=False, default=float("nan"))
    _learnt: int = field(init=False, default=0)  #: episodes
    _bandit: Bandit = field(init=False, default_factory=Bandit)
    _climbers: Climbers | None = field(init=False, default=None)
    _evaluator: Evaluator = field(init=False, default_factory=Evaluator)
    _archive: Archive | None = field(init=False, default=None)
    _walked: DistinctSet | None = field(init=False, default=None)  #: findings that are parents
    _spent: list[NDArray[np.int64]] = field(init=False, default_factory=list)  #: entries with a new energy
    _known_inputs: set[bytes] = field(init=False, default_factory=set)  #: of the corpus, if all is discrete
    _known_entries: int = field(init=False, default=0)  #: whose inputs are in `_known_inputs`

    def probe(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        return context.no_cases()

    def propose(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        least = max(_SMALLEST_BATCH, int(count * _SMALLEST_SHARE))
        count = min(count, max(least, int(self._learnt * _LARGEST_GROWTH)))
        archive = self._archive_for(context)
        if not len(archive.safe):  # everything has crashed so far
            return context.sample(Purpose.EXPLORE, rng, count)
        lineages, climbers = archive.lineages(context.corpus), self._climbers_for(context)
        shares = self._bandit.shares(len(archive.crashed), lineages, can_climb=len(climbers.idle) > 0)
        explorers = int(rng.binomial(count, shares[Emitter.RANDOM]))
        served = climbers.served(count * shares[Emitter.CLIMB])
        surrogate = Surrogate.of(context.corpus, context.space)
        walked = self._walked_for(context)
        emitters = Emitters(
            context, archive, climbers, Mutator(context.space), rng, served, walked, surrogate
        )
        mutants = self._mutants(emitters, shares, count - explorers)
        return Cases.concatenate([context.sample(Purpose.EXPLORE, rng, explorers), mutants])

    def learn(
        self, context: SearchContext, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> Update:
        climbers = climbers_of(cases)
        self._climbers_for(context).receive(climbers[climbers >= 0])
        rows: NDArray[np.int64] | slice = slice(None)
        if executions.errors:  # a failed episode teaches nothing unless it is a finding
            rows = np.flatnonzero(executions.sound | executions.crashed)
        kept, entries = self._keep(context, cases[rows], executions[rows], context.observed[rows])
        changed = np.unique(np.concatenate([*self._spent, np.empty(0, np.int64)]))
        self._spent = []
        older = changed[~np.isin(changed, entries)]
        return Update(np.flatnonzero(executions.crashed), np.arange(len(cases))[rows][kept], entries, older)

    def credit(self, context: SearchContext, cases: Cases) -> NDArray[np.int64]:
        """A crash that holds counts as one that was rewarded when it was found."""
        rewards = np.ones(len(cases))
        self._reward(context, cases.parents, rewards)
        np.add.at(self._bandit.rewards, emitters_of(cases), rewards)
        changed = np.unique(np.concatenate([*self._spent, np.empty(0, np.int64)]))
        self._spent = []
        return changed

    def emitter_counts(self, cases: Cases) -> dict[str, int]:
        counts = np.bincount(emitters_of(cases[cases.purposes != Purpose.IMPORT]), minlength=len(Emitter))
        return {one.name.lower(): int(counts[one]) for one in Emitter}

    def state(self) -> dict[str, NDArray[Any]]:
        return {
            "learnt": np.array([self._learnt]),
            **prefixed("bandit.", self._bandit.state()),
            **({} if self._climbers is None else prefixed("climbers.", self._climbers.state())),
            **self._evaluator.state(),
        }

    def restore(self, context: SearchContext, state: State) -> None:
        self._learnt = int(state["learnt"][0])
        self._bandit = Bandit.from_state(substate("bandit.", state))
        climbers, dimensions = substate("climbers.", state), len(context.space.dimensions)
        # there are none before anything was learnt; and much earlier versions had climbers of another kind
        self._climbers = Climbers.from_state(climbers, dimensions) if "means" in climbers else None
        self._evaluator = Evaluator.from_state(state)
        self._known_inputs, self._known_entries = set(), 0
        unit = context.space.to_unit(context.corpus.inputs)
        self._archive = Archive.of(context.corpus, unit)
        self._walked = None
        self._walked_for(context).add(unit[context.corpus.column("is_crash")])

    def _archive_for(self, context: SearchContext) -> Archive:
        if self._archive is None:
            self._archive = Archive(len(context.space.dimensions))
        return self._archive

    def _climbers_for(self, context: SearchContext) -> Climbers:
        if self._climbers is None:
            self._climbers = Climbers.of(len(context.space.dimensions))
        return self._climbers

    def _walked_for(self, context: SearchContext) -> DistinctSet:
        if self._walked is None:
            radius = _PARENT_RADIUS_SHARE * context.radius * math.sqrt(len(context.space.dimensions))
            self._walked = DistinctSet(radius, context.space.periods)
        return self._walked

    def _mutants(self, emitters: Emitters, shares: NDArray[np.float64], count: int) -> Cases:
        context, rng, climbers = emitters.context, emitters.rng, emitters.climbers
        if len(stranded := climbers.stranded(emitters.served)):
            starts = emitters.climbing_starts(stranded)
            unit = context.space.to_unit(context.corpus.inputs[starts])
            climbers.start(stranded, starts, unit, context.corpus.column("root")[starts])
        children = emitters.propose(shares, count)
        climbers.send(children.emitters[children.is_climbing] - FIRST_CLIMBER)
        self._spend(context, children.parents[~children.is_climbing])
        # climbers keep the case seed, so that progress is due to the step
        # where inputs are choices, the seed draws most of the situation: with it a child repeats its parent
        is_redrawn = context.is_noisy or emitters.surrogate.knows_effects
        reseeded_share = 1.0 if is_redrawn else _RESEEDED
        is_reseeded = (rng.random(count) < reseeded_share) & ~children.is_climbing
        if emitters.mutator.is_discrete:  # the same input with the same seed would repeat the episode
            is_reseeded |= self._is_known(context, children.inputs)
        fresh = rng.integers(0, 2**63, count, dtype=np.uint64)
        seeds = np.where(is_reseeded, fresh, context.case_seeds(children.parents))
        return Cases.of(Purpose.MUTANT, children.inputs, seeds, children.parents).by(children.emitters)

    def _is_known(self, context: SearchContext, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where the corpus holds an input of `inputs` (n, d)."""
        new = context.corpus.inputs[self._known_entries :]
        self._known_inputs.update(row.tobytes() for row in new)
        self._known_entries += len(new)
        return np.array([row.tobytes() in self._known_inputs for row in inputs], np.bool_)

    def _keep(
        self, context: SearchContext, cases: Cases, executions: Executions, observed: Observed
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Add what is worth keeping to the corpus; return those rows and their entries."""
        if not len(cases):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        archive, unit = self._archive_for(context), context.space.to_unit(cases.inputs)
        evaluations = self._evaluator.evaluate(executions, unit, observed.behaviours.cells)
        rewards = np.zeros(len(cases))
        is_parent = evaluations.crashed & ~observed.is_repeat
        is_parent[is_parent] = self._walked_for(context).add(unit[is_parent])
        if not context.is_noisy:  # else a crash is rewarded once it is known to hold
            rewards[is_parent] = (observed.is_novel[is_parent] + archive.rarity(evaluations[is_parent])) / 2
        climbers = self._climbers_for(context)
        children_of, mutator = climbers_of(cases), Mutator(context.space)
        moves = climbers.learn(context.corpus, cases, children_of, unit, evaluations, mutator)
        keep = archive.is_elite(evaluations) & np.isfinite(executions.returns)
        keep[is_parent] = keep[list(moves.values())] = True
        kept = np.flatnonzero(keep)
        is_import = cases.purposes == Purpose.IMPORT
        parents = np.where(is_import, NO_PARENT, cases.parents)
        columns = {
            "parent": parents[kept],
            "case_seed": cases.seeds[kept],
            "return": executions.returns[kept],
            "energy": np.ones(len(kept)),
            "distance": evaluations.distances[kept],
            "tie_break": evaluations.tie_breaks[kept],
            "is_crash": evaluations.crashed[kept],
            "niche": evaluations.behaviour_cells[kept],
        }
        entries = context.corpus.append(cases.inputs[kept], columns)
        archive.add(entries, evaluations[kept])
        for climber, row in moves.items():
            climbers.move(climber, int(entries[np.searchsorted(kept, row)]))
        self._reward(context, parents, rewards)
        self._bandit.learn(emitters_of(cases)[~is_import], rewards[~is_import])
        self._learnt += len(cases)
        return kept, entries

    def _spend(self, context: SearchContext, parents: NDArray[np.int64]) -> None:
        """Lower the energy of `parents` (n,) for each of their children: 1, 1/2, 1/3 and so on."""
        entries, children = np.unique(parents, return_counts=True)
        energy = context.corpus.column("energy")[entries]
        self._set_energy(context, entries, energy / (1 + children * energy))

    def _reward(
        self, context: SearchContext, parents: NDArray[np.int64], rewards: NDArray[np.float64]
    ) -> None:
        """Raise the energy of `parents` (n,) whose children were distinct findings, to one at most."""
        has_parent = (parents != NO_PARENT) & (rewards > 0)
        entries, which = np.unique(parents[has_parent], return_inverse=True)
        log_energy = np.log(context.corpus.column("energy")[entries])  # products of many would overflow
        np.add.at(log_energy, which, np.log1p(_LARGEST_BONUS * rewards[has_parent]))
        self._set_energy(context, entries, np.exp(np.minimum(log_energy, 0.0)))

    def _set_energy(
        self, context: SearchContext, entries: NDArray[np.int64], energy: NDArray[np.float64]
    ) -> None:
        context.corpus.set_energy(entries, energy)
        self._spent.append(entries)
