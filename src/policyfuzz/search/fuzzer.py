"""The search, as ask and tell: it never runs an episode itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.executions import Executions
from policyfuzz.inputs import InputSpace
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.guides import FreshnessGuide, Guide
from policyfuzz.search.validation import Validator
from policyfuzz.timing import TimeSplit

#: Sensitivity is a difference quotient; below this distance it would only measure rounding.
_SMALLEST_DISTANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Parts:
    """What a strategy is made of."""

    guides: tuple[Guide, ...] = ()  #: reasons to keep a mutant; without any nothing is ever changed
    samples: int = 1000  #: inputs sampled before the first is changed (N in the paper)
    #: True: measure the energy of every kept mutant by an extra episode (the paper's Algorithm 2).
    #: False: take it from the mutant and its parent, which have run anyway.
    probes_mutants: bool = False
    explored_share: float = 0.0  #: of later batches that is sampled instead of changed


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch of results has changed."""

    crashed: NDArray[np.int64]  #: (f,) rows of the batch whose oracle fired
    kept: NDArray[np.int64]  #: (k,) rows that entered the corpus
    entries: NDArray[np.int64]  #: (k,) their entry numbers
    measured: NDArray[np.int64]  #: (m,) older entries whose energy is now known


@dataclass(slots=True)
class Fuzzer:
    """Proposes cases and learns from their executions.

    `ask(n)` returns up to n cases, none at all while it waits for the first samples. `tell` wants the same
    cases in the order in which they were asked, in whole batches. The same seed, calls and results give the
    same cases. Once `is_warm`, a batch may end with imports, which were not asked for: what did not crash is
    kept.
    """

    space: InputSpace
    solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None = None
    parts: Parts = field(default_factory=Parts)
    seed: int = 0
    clock: TimeSplit = field(default_factory=TimeSplit)
    corpus: Corpus = field(init=False)
    validator: Validator = field(init=False)
    _asked: int = field(init=False, default=0)
    _told: int = field(init=False, default=0)
    _sampled: int = field(init=False, default=0)
    _awaited: int = field(init=False, default=0)  #: samples and probes that are being run
    _is_warm: bool = field(init=False, default=False)  #: all first samples have been run and probed
    _to_probe: NDArray[np.int64] = field(init=False)  #: entries that wait for a probe

    def __post_init__(self) -> None:
        self.corpus = Corpus(len(self.space.dimensions))
        self.validator = Validator(self.space, self.solvable, self.clock)
        self._to_probe = np.empty(0, np.int64)

    @property
    def is_warm(self) -> bool:
        """True once all first samples have been run and probed."""
        return self._is_warm

    @property
    def threshold(self) -> float:
        """Freshness threshold in force, NaN where the strategy has none."""
        return next((g.threshold for g in self.parts.guides if isinstance(g, FreshnessGuide)), np.nan)

    @property
    def fresh_share(self) -> float:
        """Share of fresh sequences in the last batch, NaN where the strategy does not look."""
        return next((g.fresh_share for g in self.parts.guides if isinstance(g, FreshnessGuide)), np.nan)

    def ask(self, count: int) -> Cases:
        """Up to `count` cases to run next."""
        with self.clock.activity("search"):
            rng = np.random.default_rng([self.seed, 0, self._asked])
            self._asked += 1
            cases = [self._probes(rng, count)]
            count -= len(cases[0])
            samples = min(count, max(self.parts.samples - self._sampled, 0)) if self.parts.guides else count
            cases.append(self._samples(rng, samples))
            count -= samples
            # the first samples and their probes are waited for; after that there is always something to do
            self._is_warm |= not self._awaited
            if count > 0 and self._is_warm:
                if len(self.corpus):
                    explored = round(count * self.parts.explored_share)
                    cases += [self._explorers(rng, explored), self._mutants(rng, count - explored)]
                else:
                    cases.append(self._samples(rng, count))
            return Cases.concatenate(cases)

    def tell(self, cases: Cases, executions: Executions) -> Told:
        """Learn from the `executions` of `cases`."""
        with self.clock.activity("search"):
            rng = np.random.default_rng([self.seed, 1, self._told])
            self._told += 1
            # `ask` puts probes first, so slices will do: state sequences are large, and are not copied
            probes = int(np.count_nonzero(cases.purposes == Purpose.PROBE))
            samples = int(np.count_nonzero(cases.purposes == Purpose.SAMPLE))
            self._awaited -= probes + samples
            measured = self._measure(cases[:probes], executions.returns[:probes])
            crashed = np.flatnonzero(executions.crashed)
            if not self.parts.guides:
                nothing = np.empty(0, np.int64)
                return Told(crashed, nothing, nothing, measured)
            rows: NDArray[np.int64] | slice = slice(probes, None)
            if executions.errors:  # there is nothing to learn from an episode that could not be run
                rows = np.flatnonzero(executions.sound & (cases.purposes != Purpose.PROBE))
            kept, entries = self._keep(cases[rows], executions[rows], rng)
            return Told(crashed, np.arange(len(cases))[rows][kept], entries, measured)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything but the corpus that is needed to go on, as arrays."""
        counters = [self._asked, self._told, self._sampled, self._awaited, int(self._is_warm)]
        drawn = [self.validator.drawn, self.validator.invalid, self.validator.unsolvable]
        state: dict[str, NDArray[Any]] = {
            "counters": np.array(counters),
            "drawn": np.array(drawn),
            "to_probe": self._to_probe,
        }
        for number, guide in enumerate(self.parts.guides):
            state |= {f"guide{number}.{name}": array for name, array in guide.state().items()}
        return state

    def restore(self, state: Mapping[str, NDArray[Any]], corpus: Corpus) -> None:
        """Go on from `state` and `corpus` as if nothing had happened."""
        counters = state["counters"].tolist()
        self._asked, self._told, self._sampled, self._awaited = counters[:4]
        self._is_warm = bool(counters[4])
        drawn, invalid, unsolvable = (int(value) for value in state["drawn"])
        self.validator.drawn, self.validator.invalid, self.validator.unsolvable = drawn, invalid, unsolvable
        self._to_probe = state["to_probe"]
        self.corpus = corpus
        for number, guide in enumerate(self.parts.guides):
            prefix = f"guide{number}."
            guide.restore(
                {name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)}
            )

    def _samples(self, rng: np.random.Generator, count: int) -> Cases:
        self._sampled += count
        self._awaited += count if self.parts.guides else 0
        return self._drawn(Purpose.SAMPLE, rng, count)

    def _explorers(self, rng: np.random.Generator, count: int) -> Cases:
        return self._drawn(Purpose.EXPLORE, rng, count)

    def _drawn(self, purpose: Purpose, rng: np.random.Generator, count: int) -> Cases:
        """Good draws from the nominal distribution."""

        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            return np.full(wanted, NO_PARENT, np.int64), self.space.sample(rng, wanted)

        parents, inputs = self.validator.fill(count, draw)
        seeds = rng.integers(0, 2**63, len(inputs), dtype=np.uint64)
        return Cases.of(purpose, inputs, seeds, parents)

    def _mutants(self, rng: np.random.Generator, count: int) -> Cases:
        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            parents = self.corpus.choose(rng, wanted)
            return parents, self.space.perturb(self.corpus.inputs[parents], rng)

        parents, inputs = self.validator.fill(count, draw)
        return Cases.of(Purpose.MUTANT, inputs, self._seeds_of(parents), parents)

    def _probes(self, rng: np.random.Generator, count: int) -> Cases:
        entries, self._to_probe = self._to_probe[:count], self._to_probe[count:]
        if len(entries) == 0:
            return Cases.none(len(self.space.dimensions))
        origins = self.corpus.inputs[entries]
        inputs, found = self.validator.near(origins, lambda some: self.space.perturb(some, rng))
        self._awaited += int(np.count_nonzero(found))
        return Cases.of(Purpose.PROBE, inputs[found], self._seeds_of(entries[found]), entries[found])

    def _seeds_of(self, entries: NDArray[np.int64]) -> NDArray[np.uint64]:
        """(n,) case seeds of `entries` (n,): with the same chance, a new return is due to the change."""
        return np.asarray(self.corpus.column("case_seed")[entries])

    def _measure(self, probes: Cases, returns: NDArray[np.float64]) -> NDArray[np.int64]:
        """Set the energy of the probed entries; return them."""
        if len(probes):
            self.corpus.set_energy(probes.parents, self._sensitivity(probes, returns))
        return probes.parents

    def _sensitivity(self, cases: Cases, returns: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) change of the return between each case and its parent, per distance in the unit cube."""
        distances = self.space.distance(cases.inputs, self.corpus.inputs[cases.parents])
        change = np.abs(returns - self.corpus.column("return")[cases.parents])
        return np.asarray(change / np.maximum(distances, _SMALLEST_DISTANCE))

    def _keep(
        self, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Put what is worth keeping into the corpus; return those rows and their entries."""
        is_sample, is_import = cases.purposes == Purpose.SAMPLE, cases.purposes == Purpose.IMPORT
        parents = np.where(is_import, NO_PARENT, cases.parents)
        is_mutant = parents != NO_PARENT
        parent_returns = np.where(is_sample, np.nan, -np.inf)
        parent_returns[is_mutant] = self.corpus.column("return")[parents[is_mutant]]
        keep, log_density = is_sample | is_import, np.full(len(cases), np.nan)
        for guide in self.parts.guides:
            opinion = guide.consider(executions, parent_returns, rng)
            keep |= opinion.keep
            log_density = np.where(np.isnan(log_density), opinion.log_density, log_density)
        kept = np.flatnonzero(keep & ~executions.crashed & np.isfinite(executions.returns))
        energy = np.full(len(kept), np.nan)
        if not self.parts.probes_mutants:
            mutants = kept[is_mutant[kept]]
            energy[is_mutant[kept]] = self._sensitivity(cases[mutants], executions.returns[mutants])
        columns = {
            "parent": parents[kept],
            "case_seed": cases.seeds[kept],
            "return": executions.returns[kept],
            "energy": energy,
            "log_density": log_density[kept],
        }
        entries = self.corpus.append(cases.inputs[kept], columns)
        self._to_probe = np.concatenate([self._to_probe, entries[np.isnan(energy)]])
        return kept, entries
