"""The fuzzer: ask for cases, tell their results. It never runs an episode itself."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import TargetCodeError
from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import SEED_END, InputSpace
from policyfuzz.core.settings import DISTINCT_RADIUS
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.algorithm import (
    NamesEmitters,
    Observed,
    RandomSearch,
    SearchAlgorithm,
    SearchContext,
    Update,
    Validator,
)
from policyfuzz.search.behaviour import BehaviourObserver
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.distinct import DistinctFindings
from policyfuzz.search.state import State, prefixed, substate


@dataclass(slots=True)
class Fuzzer:
    """Proposes cases and learns from their executions.

    `ask(n)` returns up to n cases, none while it waits for results, and none for ever if the algorithm has
    nothing left to try. `tell` takes whole batches in the order in which they were asked. The same seed,
    calls and results give the same cases. Once the fuzzer `is_warm`, a batch may end with imported cases,
    which it did not ask for.
    """

    space: InputSpace
    solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None = None
    algorithm: SearchAlgorithm = field(default_factory=RandomSearch)
    seed: int = 0
    clock: TimeSplit = field(default_factory=TimeSplit)
    radius: float = DISTINCT_RADIUS  #: of findings that are alike, see `DistinctFindings`
    _context: SearchContext = field(init=False)
    _observer: BehaviourObserver = field(init=False, default_factory=BehaviourObserver)
    _distinct: DistinctFindings = field(init=False)  #: crashes, confirmed or not
    _told: int = field(init=False, default=0)  #: cases
    _asks: int = field(init=False, default=0)
    _tells: int = field(init=False, default=0)
    _sampled: int = field(init=False, default=0)
    _awaited: int = field(init=False, default=0)  #: samples and probes that are being run
    _is_warm: bool = field(init=False, default=False)  #: all first samples have been learnt from
    _samples_limit: int | None = field(init=False, default=None)  #: if there is no time for all samples

    def __post_init__(self) -> None:
        validator = Validator(self.space, self.solvable, self.clock)
        corpus = Corpus(len(self.space.dimensions))
        self._context = SearchContext(self.space, validator, corpus, self.radius)
        self._distinct = DistinctFindings(self.radius, self.space.periods)

    @property
    def corpus(self) -> Corpus:
        """Inputs worth keeping."""
        return self._context.corpus

    @property
    def validator(self) -> Validator:
        """Counts the drawn inputs, and those that were invalid or unsolvable."""
        return self._context.validator

    @property
    def is_noisy(self) -> bool:
        """True where another case seed makes another episode of the same input: crashes may be luck."""
        return self._context.is_noisy

    @is_noisy.setter
    def is_noisy(self, is_noisy: bool) -> None:
        self._context.is_noisy = is_noisy

    @property
    def learns(self) -> bool:
        """False if the algorithm only samples, and never keeps anything."""
        return self.algorithm.samples is not None

    @property
    def is_warm(self) -> bool:
        """True once all first samples have been learnt from."""
        return self._is_warm

    @property
    def samples(self) -> int | None:
        """First samples, None if the algorithm only samples."""
        if self.algorithm.samples is None or self._samples_limit is None:
            return self.algorithm.samples
        return min(self.algorithm.samples, self._samples_limit)

    def limit_samples(self, samples: int, not_run: int = 0) -> None:
        """Learn from `samples` first samples at most; the last `not_run` of those asked for were left out."""
        self._sampled -= not_run
        self._awaited -= not_run if self.learns else 0
        self._samples_limit = samples

    def ask(self, count: int) -> Cases:
        """Up to `count` cases to run next."""
        with self.clock.activity("search"):
            rng = np.random.default_rng([self.seed, 0, self._asks])
            self._asks += 1
            cases = [self.algorithm.probe(self._context, rng, count)]
            self._awaited += len(cases[0])
            count -= len(cases[0])
            cases.append(self._samples(rng, count))
            count -= len(cases[1])
            # wait for the first samples and their probes
            self._is_warm |= not self._awaited
            if count > 0 and self._is_warm:
                cases.append(self.algorithm.propose(self._context, rng, count))
            asked = Cases.concatenate(cases)
        if len(asked) and asked.seeds.max() >= SEED_END:
            raise TargetCodeError(
                f"the search proposed case seed {asked.seeds.max()}, expected less than 2^63",
                "draw the seeds of new cases by rng.integers(0, 2**63, count, dtype=np.uint64)",
            )
        return asked

    def _samples(self, rng: np.random.Generator, count: int) -> Cases:
        """Up to `count` of the first samples, and further ones while the corpus is empty."""
        wanted = self.samples
        if wanted is not None and (self._sampled < wanted or self._awaited or len(self.corpus)):
            count = min(count, max(wanted - self._sampled, 0))
        self._sampled += count
        self._awaited += count if self.learns else 0
        return self._context.sample(Purpose.SAMPLE, rng, count)

    def tell(self, cases: Cases, executions: Executions, repeats: NDArray[np.int64] | None = None) -> Update:
        """Learn from the `executions` of `cases`; those at rows `repeats` (m,) repeat an earlier crash."""
        with self.clock.activity("search"):
            rng = np.random.default_rng([self.seed, 1, self._tells])
            self._tells += 1
            if self.learns:
                awaited = (cases.purposes == Purpose.PROBE) | (cases.purposes == Purpose.SAMPLE)
                self._awaited -= int(np.count_nonzero(awaited))
            observed = self._context.observed = self._observe(cases, executions, repeats)
            update = self.algorithm.learn(self._context, cases, executions, rng)
            self.corpus.set_roots(update.entries, observed.roots[update.kept])
            self._context.observed = Observed.nothing()
            return replace(update, observed=observed[update.crashed])

    def _observe(self, cases: Cases, executions: Executions, repeats: NDArray[np.int64] | None) -> Observed:
        behaviours = self._observer.observe(executions)
        roots = self._told + 1 + np.arange(len(cases))
        self._told += len(cases)
        is_child = np.isin(cases.purposes, (Purpose.MUTANT, Purpose.PROBE)) & (cases.parents != NO_PARENT)
        roots[is_child] = self.corpus.column("root")[cases.parents[is_child]]
        is_repeat = np.zeros(len(cases), np.bool_)
        if repeats is not None:
            is_repeat[repeats] = True
        is_novel = executions.crashed & ~is_repeat
        unit = self.space.to_unit(cases.inputs[is_novel])
        is_novel[is_novel] = self._distinct.add(unit, behaviours.descriptors[is_novel])
        return Observed(behaviours, roots, is_repeat, is_novel)

    def credit(self, cases: Cases) -> NDArray[np.int64]:
        """Reward crashes that hold with other case seeds; see `SearchAlgorithm.credit`."""
        with self.clock.activity("search"):
            return self.algorithm.credit(self._context, cases)

    def emitter_counts(self, cases: Cases) -> dict[str, int]:
        """How many of `cases` each emitter of the algorithm proposed; nothing if it does not name any."""
        return self.algorithm.emitter_counts(cases) if isinstance(self.algorithm, NamesEmitters) else {}

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that is needed to continue, as arrays, except the corpus."""
        limit = -1 if self._samples_limit is None else self._samples_limit
        counters = [
            self._asks,
            self._tells,
            self._sampled,
            self._awaited,
            int(self._is_warm),
            limit,
            self._told,
            int(self.is_noisy),
        ]
        drawn = [self.validator.drawn, self.validator.invalid, self.validator.unsolvable]
        state: dict[str, NDArray[Any]] = {"counters": np.array(counters), "drawn": np.array(drawn)}
        return state | prefixed("behaviour.", self._observer.state()) | self.algorithm.state()

    def restore(
        self,
        state: State,
        corpus: Corpus,
        novel: NDArray[np.float64],
        descriptors: NDArray[np.float64],
    ) -> None:
        """Continue from `state` and `corpus` exactly as the fuzzer that had them.

        `novel` (m, d) are the inputs of all crashes that were novel, and `descriptors` (m, q) theirs.
        """
        counters = state["counters"].tolist()
        self._asks, self._tells, self._sampled, self._awaited, is_warm, limit, self._told, is_noisy = counters
        self._is_warm, self._samples_limit = bool(is_warm), None if limit < 0 else limit
        self.is_noisy = bool(is_noisy)
        self._observer = BehaviourObserver.from_state(substate("behaviour.", state))
        self._distinct = DistinctFindings(self.radius, self.space.periods)
        self._distinct.insert(self.space.to_unit(novel), descriptors)
        drawn, invalid, unsolvable = (int(value) for value in state["drawn"])
        self.validator.drawn, self.validator.invalid, self.validator.unsolvable = drawn, invalid, unsolvable
        self._context.corpus = corpus
        self.algorithm.restore(self._context, state)
