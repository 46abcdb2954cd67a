"""The published method: choose parents by energy, add small noise, keep what a guide finds interesting."""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import DensitySettings, FreshnessSettings
from policyfuzz.core.timing import TimeSplit
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.search.algorithm import SearchContext, State, Update, prefixed, substate
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose

#: Sensitivity is a difference quotient; at smaller distances it would only measure rounding.
_SMALLEST_DISTANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a guide says about n executions."""

    keep: NDArray[np.bool_]  #: (n,) True if there is a reason to keep the input
    log_density: NDArray[np.float64]  #: (n,) of the state sequence, NaN if the guide has none


class Guide(Protocol):
    """Sees every sample and mutant once, crashed ones too, and says which to keep."""

    def consider(
        self,
        executions: Executions,
        parent_returns: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Feedback:
        """Judge n executions, then learn from them.

        `parent_returns` (n,) are NaN for first samples, which are kept anyway, and -inf for later ones.
        """
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed, as arrays."""
        ...

    def restore(self, state: State) -> None:
        """Continue from a `state`."""
        ...


@dataclass(slots=True)
class EnergySearch:
    """Chooses parents by energy, adds small noise, and keeps what a guide has a reason for."""

    guides: tuple[Guide, ...]  #: reasons to keep a mutant
    samples: int = 1000  #: inputs sampled before the first mutation (N in the paper)
    #: True: measure the energy of every kept mutant by an extra episode (the paper's Algorithm 2).
    #: False: compute it from the mutant and its parent, which have run anyway.
    probes_mutants: bool = False
    explored_share: float = 0.0  #: share of later batches that is sampled instead of mutated
    _to_probe: NDArray[np.int64] = field(init=False)  #: entries without a measured energy

    def __post_init__(self) -> None:
        self._to_probe = np.empty(0, np.int64)

    @property
    def fresh_threshold(self) -> float:
        return next((g.threshold for g in self.guides if isinstance(g, FreshnessGuide)), np.nan)

    @property
    def fresh_share(self) -> float:
        return next((g.fresh_share for g in self.guides if isinstance(g, FreshnessGuide)), np.nan)

    def probe(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        """Small steps from entries whose energy is still unknown."""
        entries, self._to_probe = self._to_probe[:count], self._to_probe[count:]
        if len(entries) == 0:
            return context.no_cases()
        origins = context.corpus.inputs[entries]
        inputs, found = context.validator.near(origins, lambda some: context.space.perturb(some, rng))
        return Cases.of(Purpose.PROBE, inputs[found], context.case_seeds(entries[found]), entries[found])

    def propose(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        explored = round(count * self.explored_share)
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
        crashed = np.flatnonzero(executions.crashed)
        return Update(crashed, np.arange(len(cases))[rows][kept], entries, measured)

    def state(self) -> dict[str, NDArray[Any]]:
        state: dict[str, NDArray[Any]] = {"to_probe": self._to_probe}
        for number, guide in enumerate(self.guides):
            state |= prefixed(f"guide{number}.", guide.state())
        return state

    def restore(self, context: SearchContext, state: State) -> None:
        self._to_probe = state["to_probe"]
        for number, guide in enumerate(self.guides):
            guide.restore(substate(f"guide{number}.", state))

    def _mutants(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            parents = context.corpus.choose(rng, wanted)
            return parents, context.space.perturb(context.corpus.inputs[parents], rng)

        parents, inputs = context.validator.fill(count, draw)
        return Cases.of(Purpose.MUTANT, inputs, context.case_seeds(parents), parents)

    def _measure(
        self, context: SearchContext, probes: Cases, returns: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Set the energy of the probed entries; return them."""
        if len(probes):
            context.corpus.set_energy(probes.parents, _sensitivity(context, probes, returns))
        return probes.parents

    def _keep(
        self, context: SearchContext, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Add what is worth keeping to the corpus; return those rows and their entries."""
        is_sample, is_import = cases.purposes == Purpose.SAMPLE, cases.purposes == Purpose.IMPORT
        parents = np.where(is_import, NO_PARENT, cases.parents)
        is_mutant = parents != NO_PARENT
        parent_returns = np.where(is_sample, np.nan, -np.inf)
        parent_returns[is_mutant] = context.corpus.column("return")[parents[is_mutant]]
        keep, log_density = is_sample | is_import, np.full(len(cases), np.nan)
        for guide in self.guides:
            feedback = guide.consider(executions, parent_returns, rng)
            keep |= feedback.keep
            log_density = np.where(np.isnan(log_density), feedback.log_density, log_density)
        kept = np.flatnonzero(keep & ~executions.crashed & np.isfinite(executions.returns))
        energy = np.full(len(kept), np.nan)
        if not self.probes_mutants:
            mutants = kept[is_mutant[kept]]
            energy[is_mutant[kept]] = _sensitivity(context, cases[mutants], executions.returns[mutants])
        columns = {
            "parent": parents[kept],
            "case_seed": cases.seeds[kept],
            "return": executions.returns[kept],
            "energy": energy,
            "log_density": log_density[kept],
        }
        entries = context.corpus.append(cases.inputs[kept], columns)
        self._to_probe = np.concatenate([self._to_probe, entries[np.isnan(energy)]])
        return kept, entries


def _sensitivity(context: SearchContext, cases: Cases, returns: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) change of the return between each case and its parent, per distance in the unit cube."""
    distances = context.space.distance(cases.inputs, context.corpus.inputs[cases.parents])
    change = np.abs(returns - context.corpus.column("return")[cases.parents])
    return np.asarray(change / np.maximum(distances, _SMALLEST_DISTANCE))


@dataclass(frozen=True, slots=True)
class ReturnGuide:
    """Keeps executions that earned less than their parent."""

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Feedback:
        keep = executions.returns < parent_returns
        return Feedback(keep, np.full(len(executions), np.nan))

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, state: State) -> None: ...


@dataclass(slots=True)
class FreshnessGuide:
    """Keeps executions whose state sequence is unlikely under what was seen (paper, Algorithm 3)."""

    density_settings: DensitySettings = field(default_factory=DensitySettings)
    settings: FreshnessSettings = field(default_factory=FreshnessSettings)
    clock: TimeSplit = field(default_factory=TimeSplit)
    density: SequenceDensity = field(init=False)
    threshold: float = field(init=False)  #: log-density below which a sequence is fresh
    fresh_share: float = field(init=False, default=np.nan)  #: of the last executions considered
    _recent: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.density = SequenceDensity(self.density_settings)
        self._remember(np.empty(0))

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Feedback:
        with self.clock.activity("density"):
            states, lengths = executions.states, executions.lengths
            if not self.density.is_fitted:
                finite = np.asarray(np.isfinite(states).all(axis=(1, 2)))
                self.density.learn(states[finite], lengths[finite], rng)
                if not self.density.is_fitted:
                    return Feedback(np.zeros(len(states), np.bool_), np.full(len(states), np.nan))
                log_density = self._score(states, lengths)
                fresh = finite
            else:
                # a sequence that holds NaN has density NaN: it is neither fresh nor learnt
                log_density = self._score(states, lengths)
                fresh = log_density < self.threshold
                learnt = fresh | (np.isnan(parent_returns) & ~np.isnan(log_density))
                to_learn = executions[learnt]
                self.density.learn(to_learn.states, to_learn.lengths, rng)
            self._remember(np.concatenate([self._recent, log_density[~np.isnan(log_density)]]))
            self.fresh_share = float(fresh.mean()) if len(fresh) else np.nan
            return Feedback(fresh, log_density)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"recent": self._recent, "fresh_share": np.array([self.fresh_share]), **self.density.state()}

    def restore(self, state: State) -> None:
        density = {name: array for name, array in state.items() if name not in ("recent", "fresh_share")}
        self.density = SequenceDensity.from_state(density, self.density_settings)
        self._remember(state["recent"])
        self.fresh_share = float(state["fresh_share"][0])

    def _score(self, states: NDArray[np.float64], lengths: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) log-density of sequences `states` (n, t, d); the lower, the fresher."""
        if self.settings.score == "mean":
            return self.density.mean_log_density(states, lengths)
        return self.density.least_log_density(states, lengths)

    def _remember(self, log_density: NDArray[np.float64]) -> None:
        """Remember the latest of `log_density` (n,), and derive the threshold from them."""
        self._recent = log_density[-self.settings.memory :]
        if self.settings.threshold is not None:
            self.threshold = self.settings.threshold
        elif len(self._recent):
            self.threshold = float(np.quantile(self._recent, self.settings.quantile))
        else:
            self.threshold = np.inf
