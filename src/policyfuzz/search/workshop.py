"""What every tactic works with: the input space, the validator and the corpus."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.inputs import InputSpace
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
