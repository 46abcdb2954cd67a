"""The published method: choose by energy, change by small noise, keep what guides find interesting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.settings import DensitySettings, FreshnessSettings
from policyfuzz.core.timing import TimeSplit
from policyfuzz.density.sequence import SequenceDensity
from policyfuzz.search.algorithm import Told, Workshop, under
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a guide says of n executions."""

    keep: NDArray[np.bool_]  #: (n,) True where there is a reason to keep the input
    log_density: NDArray[np.float64]  #: (n,) per state, NaN where the guide knows none


class Guide(Protocol):
    """Sees every sample and mutant once, crashed ones too, and says which are worth keeping."""

    def consider(
        self,
        executions: Executions,
        parent_returns: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Opinion:
        """Judge n executions, then learn from them.

        `parent_returns` (n,) are NaN for the samples that are kept anyway, and -inf for later ones.
        """
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed, as arrays."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `state`."""
        ...


@dataclass(frozen=True, slots=True)
class ReturnGuide:
    """Keeps what earned less than its parent."""

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Opinion:
        keep = executions.returns < parent_returns
        return Opinion(keep, np.full(len(executions), np.nan))

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None: ...


@dataclass(slots=True)
class FreshnessGuide:
    """Keeps executions whose state sequence is unlikely under what was seen (paper, Algorithm 3)."""

    density_settings: DensitySettings = field(default_factory=DensitySettings)
    settings: FreshnessSettings = field(default_factory=FreshnessSettings)
    clock: TimeSplit = field(default_factory=TimeSplit)
    density: SequenceDensity = field(init=False)
    threshold: float = field(init=False)  #: log-density per state below which a sequence is fresh
    fresh_share: float = field(init=False, default=np.nan)  #: of the last executions considered
    _recent: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.density = SequenceDensity(self.density_settings)
        self._remember(np.empty(0))

    def consider(
        self, executions: Executions, parent_returns: NDArray[np.float64], rng: np.random.Generator
    ) -> Opinion:
        with self.clock.activity("density"):
            states, lengths = executions.states, executions.lengths
            if not self.density.is_fitted:
                finite = np.asarray(np.isfinite(states).all(axis=(1, 2)))
                self.density.learn(states[finite], lengths[finite], rng)
                if not self.density.is_fitted:
                    return Opinion(np.zeros(len(states), np.bool_), np.full(len(states), np.nan))
                log_density = self.density.mean_log_density(states, lengths)
                fresh = finite
            else:
                # a sequence with NaN in it has density NaN: it is neither fresh nor learnt
                log_density = self.density.mean_log_density(states, lengths)
                fresh = log_density < self.threshold
                learnt = fresh | (np.isnan(parent_returns) & ~np.isnan(log_density))
                learnt_ones = executions[learnt]
                self.density.learn(learnt_ones.states, learnt_ones.lengths, rng)
            self._remember(np.concatenate([self._recent, log_density[~np.isnan(log_density)]]))
            self.fresh_share = float(fresh.mean()) if len(fresh) else np.nan
            return Opinion(fresh, log_density)

    def state(self) -> dict[str, NDArray[Any]]:
        return {"recent": self._recent, "fresh_share": np.array([self.fresh_share]), **self.density.state()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        density = {name: array for name, array in state.items() if name not in ("recent", "fresh_share")}
        self.density = SequenceDensity.from_state(density, self.density_settings)
        self._remember(state["recent"])
        self.fresh_share = float(state["fresh_share"][0])

    def _remember(self, log_density: NDArray[np.float64]) -> None:
        """Keep the latest of `log_density` (n,), and place the threshold by them."""
        self._recent = log_density[-self.settings.memory :]
        if self.settings.threshold is not None:
            self.threshold = self.settings.threshold
        elif len(self._recent):
            self.threshold = float(np.quantile(self._recent, self.settings.quantile))
        else:
            self.threshold = np.inf


#: Sensitivity is a difference quotient; below this distance it would only measure rounding.
_SMALLEST_DISTANCE = 1e-9


@dataclass(slots=True)
class EnergyTactic:
    """Chooses by energy, changes by small noise, and keeps what a guide has a reason for."""

    guides: tuple[Guide, ...]  #: reasons to keep a mutant
    samples: int = 1000  #: inputs sampled before the first is changed (N in the paper)
    #: True: measure the energy of every kept mutant by an extra episode (the paper's Algorithm 2).
    #: False: take it from the mutant and its parent, which have run anyway.
    probes_mutants: bool = False
    explored_share: float = 0.0  #: of later batches that is sampled instead of changed
    _to_probe: NDArray[np.int64] = field(init=False)  #: entries that wait for a probe

    def __post_init__(self) -> None:
        self._to_probe = np.empty(0, np.int64)

    @property
    def threshold(self) -> float:
        return next((g.threshold for g in self.guides if isinstance(g, FreshnessGuide)), np.nan)

    @property
    def fresh_share(self) -> float:
        return next((g.fresh_share for g in self.guides if isinstance(g, FreshnessGuide)), np.nan)

    def urgent(self, shop: Workshop, rng: np.random.Generator, count: int) -> Cases:
        """Small steps from entries whose energy is not known yet."""
        entries, self._to_probe = self._to_probe[:count], self._to_probe[count:]
        if len(entries) == 0:
            return Cases.none(len(shop.space.dimensions))
        origins = shop.corpus.inputs[entries]
        inputs, found = shop.validator.near(origins, lambda some: shop.space.perturb(some, rng))
        return Cases.of(Purpose.PROBE, inputs[found], shop.seeds_of(entries[found]), entries[found])

    def propose(self, shop: Workshop, rng: np.random.Generator, count: int) -> Cases:
        explored = round(count * self.explored_share)
        explorers = shop.drawn(Purpose.EXPLORE, rng, explored)
        return Cases.concatenate([explorers, self._mutants(shop, rng, count - explored)])

    def learn(self, shop: Workshop, cases: Cases, executions: Executions, rng: np.random.Generator) -> Told:
        # probes come first, so slices will do: state sequences are large, and are not copied
        probes = int(np.count_nonzero(cases.purposes == Purpose.PROBE))
        measured = self._measure(shop, cases[:probes], executions.returns[:probes])
        rows: NDArray[np.int64] | slice = slice(probes, None)
        if executions.errors:  # there is nothing to learn from an episode that could not be run
            rows = np.flatnonzero(executions.sound & (cases.purposes != Purpose.PROBE))
        kept, entries = self._keep(shop, cases[rows], executions[rows], rng)
        crashed = np.flatnonzero(executions.crashed)
        return Told(crashed, np.arange(len(cases))[rows][kept], entries, measured)

    def state(self) -> dict[str, NDArray[Any]]:
        state: dict[str, NDArray[Any]] = {"to_probe": self._to_probe}
        for number, guide in enumerate(self.guides):
            state |= {f"guide{number}.{name}": array for name, array in guide.state().items()}
        return state

    def restore(self, shop: Workshop, state: Mapping[str, NDArray[Any]]) -> None:
        self._to_probe = state["to_probe"]
        for number, guide in enumerate(self.guides):
            guide.restore(under(f"guide{number}.", state))

    def _mutants(self, shop: Workshop, rng: np.random.Generator, count: int) -> Cases:
        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            parents = shop.corpus.choose(rng, wanted)
            return parents, shop.space.perturb(shop.corpus.inputs[parents], rng)

        parents, inputs = shop.validator.fill(count, draw)
        return Cases.of(Purpose.MUTANT, inputs, shop.seeds_of(parents), parents)

    def _measure(self, shop: Workshop, probes: Cases, returns: NDArray[np.float64]) -> NDArray[np.int64]:
        """Set the energy of the probed entries; return them."""
        if len(probes):
            shop.corpus.set_energy(probes.parents, _sensitivity(shop, probes, returns))
        return probes.parents

    def _keep(
        self, shop: Workshop, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Put what is worth keeping into the corpus; return those rows and their entries."""
        is_sample, is_import = cases.purposes == Purpose.SAMPLE, cases.purposes == Purpose.IMPORT
        parents = np.where(is_import, NO_PARENT, cases.parents)
        is_mutant = parents != NO_PARENT
        parent_returns = np.where(is_sample, np.nan, -np.inf)
        parent_returns[is_mutant] = shop.corpus.column("return")[parents[is_mutant]]
        keep, log_density = is_sample | is_import, np.full(len(cases), np.nan)
        for guide in self.guides:
            opinion = guide.consider(executions, parent_returns, rng)
            keep |= opinion.keep
            log_density = np.where(np.isnan(log_density), opinion.log_density, log_density)
        kept = np.flatnonzero(keep & ~executions.crashed & np.isfinite(executions.returns))
        energy = np.full(len(kept), np.nan)
        if not self.probes_mutants:
            mutants = kept[is_mutant[kept]]
            energy[is_mutant[kept]] = _sensitivity(shop, cases[mutants], executions.returns[mutants])
        columns = {
            "parent": parents[kept],
            "case_seed": cases.seeds[kept],
            "return": executions.returns[kept],
            "energy": energy,
            "log_density": log_density[kept],
            "distance": np.full(len(kept), np.nan),
            "tie_break": np.full(len(kept), np.nan),
            "is_crash": np.zeros(len(kept), np.bool_),
            "niche": np.zeros(len(kept), np.int64),
        }
        entries = shop.corpus.append(cases.inputs[kept], columns)
        self._to_probe = np.concatenate([self._to_probe, entries[np.isnan(energy)]])
        return kept, entries


def _sensitivity(shop: Workshop, cases: Cases, returns: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) change of the return between each case and its parent, per distance in the unit cube."""
    distances = shop.space.distance(cases.inputs, shop.corpus.inputs[cases.parents])
    change = np.abs(returns - shop.corpus.column("return")[cases.parents])
    return np.asarray(change / np.maximum(distances, _SMALLEST_DISTANCE))
