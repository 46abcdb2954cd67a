"""Search algorithms propose cases and learn from their executions; a strategy is one of them by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import InputSpace
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.validation import Validator

#: Everything that learning has changed, as named arrays.
State = Mapping[str, NDArray[Any]]


@dataclass(slots=True)
class SearchContext:
    """What the fuzzer shares with its algorithm: the input space, the validator and the corpus."""

    space: InputSpace
    validator: Validator
    corpus: Corpus

    def sample(self, purpose: Purpose, rng: np.random.Generator, count: int) -> Cases:
        """`count` valid and solvable draws from the nominal distribution."""

        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            return np.full(wanted, NO_PARENT, np.int64), self.space.sample(rng, wanted)

        parents, inputs = self.validator.fill(count, draw)
        seeds = rng.integers(0, 2**63, len(inputs), dtype=np.uint64)
        return Cases.of(purpose, inputs, seeds, parents)

    def no_cases(self) -> Cases:
        """An empty batch."""
        return Cases.none(len(self.space.dimensions))

    def case_seeds(self, entries: NDArray[np.int64]) -> NDArray[np.uint64]:
        """(n,) case seeds of `entries` (n,). A child that keeps its parent's differs by its input only."""
        return np.asarray(self.corpus.column("case_seed")[entries])


def _no_rows() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Update:
    """What a batch of results has changed."""

    crashed: NDArray[np.int64]  #: (f,) rows of the batch whose oracle fired
    kept: NDArray[np.int64] = field(default_factory=_no_rows)  #: (k,) rows that entered the corpus
    entries: NDArray[np.int64] = field(default_factory=_no_rows)  #: (k,) their entry numbers
    measured: NDArray[np.int64] = field(default_factory=_no_rows)  #: (m,) older entries with a new energy


class SearchAlgorithm(Protocol):
    """Proposes cases from what it has learnt of earlier ones."""

    @property
    def samples(self) -> int | None:
        """Draws from the nominal distribution before the first proposal; None to draw nothing else."""
        ...

    @property
    def fresh_threshold(self) -> float:
        """Log-density per state below which a sequence is fresh, NaN without a density."""
        ...

    @property
    def fresh_share(self) -> float:
        """Share of fresh sequences in the last batch, NaN without a density."""
        ...

    def probe(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        """Up to `count` probes. They run before all other cases, and the first proposal waits for them."""
        ...

    def propose(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        """Up to `count` cases, at least one. Called once all first samples have been learnt."""
        ...

    def learn(
        self, context: SearchContext, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> Update:
        """Learn from the `executions` of `cases`, and add what is worth keeping to the corpus."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed besides the corpus, as arrays."""
        ...

    def restore(self, context: SearchContext, state: State) -> None:
        """Continue from a `state`. The corpus has been restored already."""
        ...


@dataclass(frozen=True, slots=True)
class RandomSearch:
    """Samples only, and learns nothing: the baseline."""

    samples: None = None
    fresh_threshold: float = float("nan")
    fresh_share: float = float("nan")

    def probe(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        return context.no_cases()

    propose = probe

    def learn(
        self, context: SearchContext, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> Update:
        return Update(np.flatnonzero(executions.crashed))

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, context: SearchContext, state: State) -> None: ...


def prefixed(prefix: str, state: State) -> dict[str, NDArray[Any]]:
    """`state` with `prefix` before every name."""
    return {prefix + name: array for name, array in state.items()}


def substate(prefix: str, state: State) -> dict[str, NDArray[Any]]:
    """The arrays of `state` whose names start with `prefix`, without it: the inverse of `prefixed`."""
    return {name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)}
