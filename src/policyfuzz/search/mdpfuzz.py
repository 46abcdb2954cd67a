"""The published method: choose parents by energy, add small noise, keep what a guide finds interesting.

`EnergySearch` follows the pseudocode of the paper. With a `ParentPool` it does what the published code does.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.algorithm import SearchContext, Update
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.guides import FRESHNESS_GUIDES, Guide
from policyfuzz.search.parent_pool import ParentPool
from policyfuzz.search.state import State, prefixed, substate

#: Sensitivity is a difference quotient; at smaller distances it would only measure rounding.
_SMALLEST_DISTANCE = 1e-9


@dataclass(slots=True)
class EnergySearch:
    """Chooses parents by energy, adds small noise, and keeps what a guide has a reason for."""

    guides: tuple[Guide, ...]  #: reasons to keep a mutant
    samples: int = 1000  #: inputs sampled before the first mutation (N in the paper)
    #: True: measure the energy of every kept mutant by an extra episode (the paper's Algorithm 2).
    #: False: compute it from the mutant and its parent, which have run anyway.
    probes_mutants: bool = False
    explored_share: float = 0.0  #: share of later batches that is sampled instead of mutated
    #: Energy is the change of the return per distance in the unit cube; False: the change alone.
    energy_per_distance: bool = True
    keeps_crashed_samples: bool = False  #: as parents
    #: Parents that run out: a kept mutant replaces its parent, a crash removes it. None: all, for ever.
    pool: ParentPool | None = None
    refills: bool = True  #: draw as many samples as at first when the pool is empty; False: end the search
    _to_probe: NDArray[np.int64] = field(init=False)  #: entries without a measured energy
    _to_sample: int = field(init=False, default=0)  #: samples that the empty pool still needs
    _awaited: int = field(init=False, default=0)  #: with a pool: probes and later samples that are being run

    def __post_init__(self) -> None:
        self._to_probe = np.empty(0, np.int64)

    @property
    def fresh_threshold(self) -> float:
        return next((guide.threshold for guide in self.guides if isinstance(guide, FRESHNESS_GUIDES)), np.nan)

    @property
    def fresh_share(self) -> float:
        return next(
            (guide.fresh_share for guide in self.guides if isinstance(guide, FRESHNESS_GUIDES)), np.nan
        )

    def probe(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        """Small steps from entries whose energy is still unknown."""
        entries, self._to_probe = self._to_probe[:count], self._to_probe[count:]
        if len(entries) == 0:
            return context.no_cases()
        origins = context.corpus.inputs[entries]
        inputs, found = context.validator.near(origins, lambda some: context.space.perturb(some, rng))
        if self.pool is not None:
            self._awaited += int(np.count_nonzero(found))
        return Cases.of(Purpose.PROBE, inputs[found], context.case_seeds(entries[found]), entries[found])

    def propose(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        explored = round(count * self.explored_share)
        if self.pool is not None:
            return self._from_pool(self.pool, context, rng, count, explored)
        explorers = context.sample(Purpose.EXPLORE, rng, explored)
        return Cases.concatenate([explorers, self._mutants(context, rng, count - explored)])

    def learn(
        self, context: SearchContext, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> Update:
        # probes come first, so a slice will do, which copies none of the large state sequences
        probes = int(np.count_nonzero(cases.purposes == Purpose.PROBE))
        measured = self._measure(context, cases[:probes], executions.returns[:probes])
        rows: NDArray[np.int64] | slice = slice(probes, None)
        if executions.errors:  # a failed episode teaches nothing
            rows = np.flatnonzero(executions.sound & (cases.purposes != Purpose.PROBE))
        kept, entries = self._keep(context, cases[rows], executions[rows], rng)
        if self.pool is not None:
            self._awaited -= probes + int(np.count_nonzero(cases.purposes == Purpose.EXPLORE))
            self._turn_over(self.pool, cases, executions, np.arange(len(cases))[rows][kept])
            self.pool.add(np.concatenate([measured, entries[~np.isin(entries, self._to_probe)]]))
        crashed = np.flatnonzero(executions.crashed)
        return Update(crashed, np.arange(len(cases))[rows][kept], entries, measured)

    def credit(self, context: SearchContext, cases: Cases) -> NDArray[np.int64]:
        return np.empty(0, np.int64)  # crashes are not rewarded

    def state(self) -> dict[str, NDArray[Any]]:
        state: dict[str, NDArray[Any]] = {"to_probe": self._to_probe}
        if self.pool is not None:
            state["refill"] = np.array([self._to_sample, self._awaited])
            state |= prefixed("pool.", self.pool.state())
        for number, guide in enumerate(self.guides):
            state |= prefixed(f"guide{number}.", guide.state())
        return state

    def restore(self, context: SearchContext, state: State) -> None:
        self._to_probe = state["to_probe"]
        if self.pool is not None:
            self._to_sample, self._awaited = state["refill"].tolist()
            self.pool.restore(substate("pool.", state))
        for number, guide in enumerate(self.guides):
            guide.restore(substate(f"guide{number}.", state))

    def _mutants(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            parents = context.corpus.choose(rng, wanted)
            return parents, context.space.perturb(context.corpus.inputs[parents], rng)

        parents, inputs = context.validator.fill(count, draw)
        return Cases.of(Purpose.MUTANT, inputs, context.case_seeds(parents), parents)

    def _from_pool(
        self, pool: ParentPool, context: SearchContext, rng: np.random.Generator, count: int, explored: int
    ) -> Cases:
        """Up to `count` children, after `explored` samples or those that an empty pool needs.

        None if all parents wait for a child; or if there are none left, and no refills.
        """
        explored = max(explored, self._refill(pool, count))
        children = self._children(pool, context, rng, count - explored)
        if not len(children) and not explored:
            explored = self._refill(pool, count)  # the last parents may have had no good neighbour
        self._awaited += explored
        return Cases.concatenate([context.sample(Purpose.EXPLORE, rng, explored), children])

    def _refill(self, pool: ParentPool, count: int) -> int:
        """How many of the next `count` cases must be samples, because the pool has run out."""
        is_empty = not (len(pool) or len(self._to_probe) or self._awaited or self._to_sample)
        if is_empty and self.refills:
            self._to_sample = self.samples
        needed = min(count, self._to_sample)
        self._to_sample -= needed
        return needed

    @staticmethod
    def _children(pool: ParentPool, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        """A child of each of up to `count` parents; those around which no input is good leave the pool."""
        while count > 0 and len(parents := pool.take(rng, context.corpus.column("energy"), count)):
            origins = context.corpus.inputs[parents]
            inputs, found = context.validator.near(origins, lambda some: context.space.perturb(some, rng))
            pool.settle(parents[~found], np.ones(np.count_nonzero(~found), np.bool_))
            if found.any():
                parents = parents[found]
                return Cases.of(Purpose.MUTANT, inputs[found], context.case_seeds(parents), parents)
        return context.no_cases()

    @staticmethod
    def _turn_over(pool: ParentPool, cases: Cases, executions: Executions, kept: NDArray[np.int64]) -> None:
        """Let the parents of mutants go on, without those that a `kept` (k,) child or a crash replaces."""
        is_mutant, leaves = cases.purposes == Purpose.MUTANT, executions.crashed.copy()
        leaves[kept] = True
        pool.settle(cases.parents[is_mutant], leaves[is_mutant])

    def _measure(
        self, context: SearchContext, probes: Cases, returns: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Set the energy of the probed entries; return them."""
        if len(probes):
            context.corpus.set_energy(probes.parents, self._sensitivity(context, probes, returns))
        return probes.parents

    def _keep(
        self, context: SearchContext, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Add what is worth keeping to the corpus; return those rows and their entries."""
        is_sample, is_import = cases.purposes == Purpose.SAMPLE, cases.purposes == Purpose.IMPORT
        if self.pool is not None:
            is_sample |= cases.purposes == Purpose.EXPLORE
        parents = np.where(is_import, NO_PARENT, cases.parents)
        is_mutant = parents != NO_PARENT
        parent_returns = np.where(is_sample, np.nan, -np.inf)
        parent_returns[is_mutant] = context.corpus.column("return")[parents[is_mutant]]
        keep, log_density = is_sample | is_import, np.full(len(cases), np.nan)
        for guide in self.guides:
            feedback = guide.consider(executions, parent_returns, rng)
            keep |= feedback.keep
            log_density = np.where(np.isnan(log_density), feedback.log_density, log_density)
        crashed = executions.crashed & ~(is_sample & self.keeps_crashed_samples)
        kept = np.flatnonzero(keep & ~crashed & np.isfinite(executions.returns))
        energy = np.full(len(kept), np.nan)
        if not self.probes_mutants:
            mutants = kept[is_mutant[kept]]
            energy[is_mutant[kept]] = self._sensitivity(context, cases[mutants], executions.returns[mutants])
        columns = {
            "parent": parents[kept],
            "case_seed": cases.seeds[kept],
            "return": executions.returns[kept],
            "energy": energy,
            "log_density": log_density[kept],
            "is_crash": executions.crashed[kept],
        }
        entries = context.corpus.append(cases.inputs[kept], columns)
        self._to_probe = np.concatenate([self._to_probe, entries[np.isnan(energy)]])
        return kept, entries

    def _sensitivity(
        self, context: SearchContext, cases: Cases, returns: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """(n,) change of the return between each case and its parent, per distance if that is wanted."""
        change = np.abs(returns - context.corpus.column("return")[cases.parents])
        if not self.energy_per_distance:
            return np.asarray(change)
        distances = context.space.distance(cases.inputs, context.corpus.inputs[cases.parents])
        return np.asarray(change / np.maximum(distances, _SMALLEST_DISTANCE))
