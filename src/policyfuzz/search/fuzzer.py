"""The search, as ask and tell: it never runs an episode itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.algorithm import RandomTactic, Tactic, Told, Workshop
from policyfuzz.search.cases import Cases, Purpose
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.validation import Validator


@dataclass(slots=True)
class Fuzzer:
    """Proposes cases and learns from their executions.

    `ask(n)` returns up to n cases, none at all while it waits for the first samples. `tell` wants the same
    cases in the order in which they were asked, in whole batches. The same seed, calls and results give the
    same cases. Once `is_warm`, a batch may end with imports, which were not asked for.
    """

    space: InputSpace
    solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None = None
    tactic: Tactic = field(default_factory=RandomTactic)
    seed: int = 0
    clock: TimeSplit = field(default_factory=TimeSplit)
    _shop: Workshop = field(init=False)
    _asked: int = field(init=False, default=0)
    _told: int = field(init=False, default=0)
    _sampled: int = field(init=False, default=0)
    _awaited: int = field(init=False, default=0)  #: samples and urgent cases that are being run
    _is_warm: bool = field(init=False, default=False)  #: all first samples have been learnt from

    def __post_init__(self) -> None:
        validator = Validator(self.space, self.solvable, self.clock)
        self._shop = Workshop(self.space, validator, Corpus(len(self.space.dimensions)))

    @property
    def corpus(self) -> Corpus:
        """What was worth keeping."""
        return self._shop.corpus

    @property
    def validator(self) -> Validator:
        """Knows how many inputs were drawn, and how many of these were good."""
        return self._shop.validator

    @property
    def learns(self) -> bool:
        """False where nothing is ever kept."""
        return self.tactic.samples is not None

    @property
    def is_warm(self) -> bool:
        """True once all first samples have been learnt from."""
        return self._is_warm

    def ask(self, count: int) -> Cases:
        """Up to `count` cases to run next."""
        with self.clock.activity("search"):
            rng = np.random.default_rng([self.seed, 0, self._asked])
            self._asked += 1
            cases = [self.tactic.urgent(self._shop, rng, count)]
            self._awaited += len(cases[0])
            count -= len(cases[0])
            cases.append(self._samples(rng, count))
            count -= len(cases[1])
            # the first samples and what they call for are waited for; then there is always something to do
            self._is_warm |= not self._awaited
            if count > 0 and self._is_warm:
                cases.append(self.tactic.propose(self._shop, rng, count))
            return Cases.concatenate(cases)

    def _samples(self, rng: np.random.Generator, count: int) -> Cases:
        """Up to `count` of the first samples; more of them while nothing was worth keeping."""
        wanted = self.tactic.samples
        if wanted is not None and (self._sampled < wanted or self._awaited or len(self.corpus)):
            count = min(count, max(wanted - self._sampled, 0))
        self._sampled += count
        self._awaited += count if self.learns else 0
        return self._shop.drawn(Purpose.SAMPLE, rng, count)

    def tell(self, cases: Cases, executions: Executions) -> Told:
        """Learn from the `executions` of `cases`."""
        with self.clock.activity("search"):
            rng = np.random.default_rng([self.seed, 1, self._told])
            self._told += 1
            if self.learns:
                awaited = (cases.purposes == Purpose.PROBE) | (cases.purposes == Purpose.SAMPLE)
                self._awaited -= int(np.count_nonzero(awaited))
            return self.tactic.learn(self._shop, cases, executions, rng)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything but the corpus that is needed to go on, as arrays."""
        counters = [self._asked, self._told, self._sampled, self._awaited, int(self._is_warm)]
        drawn = [self.validator.drawn, self.validator.invalid, self.validator.unsolvable]
        state: dict[str, NDArray[Any]] = {"counters": np.array(counters), "drawn": np.array(drawn)}
        return state | self.tactic.state()

    def restore(self, state: Mapping[str, NDArray[Any]], corpus: Corpus) -> None:
        """Go on from `state` and `corpus` as if nothing had happened."""
        counters = state["counters"].tolist()
        self._asked, self._told, self._sampled, self._awaited = counters[:4]
        self._is_warm = bool(counters[4])
        drawn, invalid, unsolvable = (int(value) for value in state["drawn"])
        self.validator.drawn, self.validator.invalid, self.validator.unsolvable = drawn, invalid, unsolvable
        self._shop.corpus = corpus
        self.tactic.restore(self._shop, state)
