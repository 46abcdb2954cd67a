"""What makes one search differ from another, once there are some samples to work from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import InputSpace
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.validation import Validator


@dataclass(slots=True)
class Workshop:
    """The means of a search; they belong to its fuzzer."""

    space: InputSpace
    validator: Validator
    corpus: Corpus

    def drawn(self, purpose: Purpose, rng: np.random.Generator, count: int) -> Cases:
        """Good draws from the nominal distribution."""

        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            return np.full(wanted, NO_PARENT, np.int64), self.space.sample(rng, wanted)

        parents, inputs = self.validator.fill(count, draw)
        seeds = rng.integers(0, 2**63, len(inputs), dtype=np.uint64)
        return Cases.of(purpose, inputs, seeds, parents)

    def seeds_of(self, entries: NDArray[np.int64]) -> NDArray[np.uint64]:
        """(n,) case seeds of `entries` (n,): with the same chance, a new return is due to the change."""
        return np.asarray(self.corpus.column("case_seed")[entries])


@dataclass(frozen=True, slots=True)
class Told:
    """What a batch of results has changed."""

    crashed: NDArray[np.int64]  #: (f,) rows of the batch whose oracle fired
    kept: NDArray[np.int64]  #: (k,) rows that entered the corpus
    entries: NDArray[np.int64]  #: (k,) their entry numbers
    measured: NDArray[np.int64]  #: (m,) older entries whose energy has changed


class Tactic(Protocol):
    """Proposes cases from what it has learnt of earlier ones."""

    @property
    def samples(self) -> int | None:
        """Draws from the nominal distribution before anything else; None where there is nothing else."""
        ...

    @property
    def threshold(self) -> float:
        """Freshness threshold in force, NaN where there is none."""
        ...

    @property
    def fresh_share(self) -> float:
        """Share of fresh sequences in the last batch, NaN where nobody looks."""
        ...

    def urgent(self, shop: Workshop, rng: np.random.Generator, count: int) -> Cases:
        """Up to `count` cases that go before all others, and are waited for."""
        ...

    def propose(self, shop: Workshop, rng: np.random.Generator, count: int) -> Cases:
        """Up to `count` cases, at least one; all samples have been learnt from."""
        ...

    def learn(self, shop: Workshop, cases: Cases, executions: Executions, rng: np.random.Generator) -> Told:
        """Learn from the `executions` of `cases`, and put what is worth keeping into the corpus."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed besides the corpus, as arrays."""
        ...

    def restore(self, shop: Workshop, state: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a `state`; the corpus is there already."""
        ...


def under(prefix: str, state: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """The part of a `state` whose names start with `prefix`, by the rest of their names."""
    return {name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)}


def nothing_kept(executions: Executions) -> Told:
    """What is told where nothing is learnt: only who crashed."""
    nothing = np.empty(0, np.int64)
    return Told(np.flatnonzero(executions.crashed), nothing, nothing, nothing)


@dataclass(frozen=True, slots=True)
class RandomTactic:
    """Samples only; nothing is learnt."""

    samples: None = None
    threshold: float = float("nan")
    fresh_share: float = float("nan")

    def urgent(self, shop: Workshop, rng: np.random.Generator, count: int) -> Cases:
        return Cases.none(len(shop.space.dimensions))

    propose = urgent

    def learn(self, shop: Workshop, cases: Cases, executions: Executions, rng: np.random.Generator) -> Told:
        return nothing_kept(executions)

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, shop: Workshop, state: Mapping[str, NDArray[Any]]) -> None: ...
