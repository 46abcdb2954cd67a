"""The protocol of search algorithms, and what the fuzzer gives them: valid inputs and a corpus."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UnhealthyTarget, blamed_on
from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.settings import DISTINCT_RADIUS
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.behaviour import Behaviours
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.search.corpus import Corpus
from policyfuzz.search.state import State

#: Draws n inputs: returns their origins (n,), usually parents, and the inputs (n, d).
Draw = Callable[[int], tuple[NDArray[np.int64], NDArray[np.float64]]]
#: Draws for one batch, per wanted input, before the target is called unhealthy. Leaves room for spaces in
#: which one draw in a hundred is good.
_PATIENCE = 2000
#: Tries to find a good input near a given one before giving up.
_TRIES_NEAR = 50
#: Lowest acceptance rate that the size of the next draw allows for.
_WORST_RATE = 1 / 64


def _no_rows() -> NDArray[np.int64]:
    return np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Observed:
    """What the fuzzer makes of n episodes, whatever the algorithm."""

    behaviours: Behaviours
    roots: NDArray[np.int64]  #: (n,) number of the draw that each line of descent began with
    is_repeat: NDArray[np.bool_]  #: (n,) True for a crash with the outcome of an earlier one
    is_novel: NDArray[np.bool_]  #: (n,) True for a crash that is unlike all earlier ones

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Observed":
        """The episodes at `rows`."""
        return Observed(self.behaviours[rows], self.roots[rows], self.is_repeat[rows], self.is_novel[rows])

    @staticmethod
    def nothing() -> "Observed":
        """Of no episodes."""
        return Observed(Behaviours.unknown(0), _no_rows(), np.empty(0, np.bool_), np.empty(0, np.bool_))


@dataclass(frozen=True, slots=True)
class Update:
    """What a batch of results has changed."""

    crashed: NDArray[np.int64]  #: (f,) rows of the batch whose oracle fired
    kept: NDArray[np.int64] = field(default_factory=_no_rows)  #: (k,) rows that entered the corpus
    entries: NDArray[np.int64] = field(default_factory=_no_rows)  #: (k,) their entry numbers
    measured: NDArray[np.int64] = field(default_factory=_no_rows)  #: (m,) older entries with a new energy
    #: What the fuzzer made of the rows that crashed; an algorithm leaves it out.
    observed: Observed = field(default_factory=Observed.nothing)


@dataclass(slots=True)
class Validator:
    """Draws until enough inputs are valid and solvable."""

    space: InputSpace
    solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None
    clock: TimeSplit = field(default_factory=TimeSplit)
    drawn: int = 0
    invalid: int = 0
    unsolvable: int = 0

    @property
    def valid_rate(self) -> float:
        """Share of drawn inputs that were valid and solvable."""
        return (self.drawn - self.invalid - self.unsolvable) / self.drawn if self.drawn else 1.0

    def fill(
        self, wanted: int, draw: Draw, rate: float = 1.0
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Origins (n,) and inputs (n, d) of `wanted` draws that are valid and solvable.

        `rate` is the share that is expected to be, so that few draws are needed.
        """
        origins, inputs = np.empty(0, np.int64), np.empty((0, len(self.space.dimensions)))
        drawn_here = 0
        while (missing := wanted - len(inputs)) > 0:
            if drawn_here > _PATIENCE * wanted:
                raise UnhealthyTarget(
                    f"of {drawn_here:,} drawn inputs only {len(inputs)} were"
                    f" {'valid' if self.solvable is None else 'valid and solvable'}",
                    hint="check the constraint, the bounds of the dimensions and the solvability test",
                )
            rate = len(inputs) / drawn_here if drawn_here else rate
            count = int(np.ceil(missing / max(rate, _WORST_RATE)))
            new_origins, new_inputs = draw(count)
            drawn_here += count
            good = self.is_good(new_inputs)
            origins = np.concatenate([origins, new_origins[good][:missing]])
            inputs = np.concatenate([inputs, new_inputs[good][:missing]])
        return origins, inputs

    def near(
        self, inputs: NDArray[np.float64], perturb: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """A good perturbed copy (n, d) of each of `inputs` (n, d), and (n,) True where one was found."""
        perturbed = perturb(inputs)
        good = self.is_good(perturbed)
        for _ in range(_TRIES_NEAR):
            missing = np.flatnonzero(~good)
            if len(missing) == 0:
                break
            perturbed[missing] = perturb(inputs[missing])
            good[missing] = self.is_good(perturbed[missing])
        return perturbed, good

    def is_good(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where one of `inputs` (n, d) is valid and solvable; counts those that are not."""
        with self.clock.activity("validate"):
            with blamed_on("the target that judges inputs"):
                good = self.space.is_valid(inputs)
                self.drawn += len(inputs)
                self.invalid += int(np.count_nonzero(~good))
            if self.solvable is not None and good.any():
                with blamed_on("the target that judges inputs"):
                    solved = np.asarray(self.solvable(inputs[good]), np.bool_)
                self.unsolvable += int(np.count_nonzero(~solved))
                good[good] = solved
            return good


@dataclass(slots=True)
class SearchContext:
    """What the fuzzer shares with its algorithm: the input space, the validator and the corpus."""

    space: InputSpace
    validator: Validator
    corpus: Corpus
    radius: float = DISTINCT_RADIUS  #: of findings that are alike, per dimension of the unit cube
    observed: Observed = field(default_factory=Observed.nothing)  #: of the batch that is being learnt
    #: True where the case seed makes noise: a crash may be the luck of one seed, so a child gets a new one,
    #: and a crash is rewarded once `credit` says that it holds.
    is_noisy: bool = False

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


class SearchAlgorithm(Protocol):
    """Proposes cases, and learns from their results."""

    @property
    def samples(self) -> int | None:
        """Draws from the nominal distribution before the first proposal; None to draw nothing else."""
        ...

    @property
    def fresh_threshold(self) -> float:
        """Log-density below which a sequence is fresh, NaN without a density."""
        ...

    @property
    def fresh_share(self) -> float:
        """Share of fresh sequences in the last batch, NaN without a density."""
        ...

    def probe(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        """Up to `count` probes. They run before all other cases, and the first proposal waits for them."""
        ...

    def propose(self, context: SearchContext, rng: np.random.Generator, count: int) -> Cases:
        """Up to `count` cases. Called once all first samples have been learnt.

        None while it waits for results. None while no case is being run ends the search.
        """
        ...

    def learn(
        self, context: SearchContext, cases: Cases, executions: Executions, rng: np.random.Generator
    ) -> Update:
        """Learn from the `executions` of `cases`, and add what is worth keeping to the corpus."""
        ...

    def credit(self, context: SearchContext, cases: Cases) -> NDArray[np.int64]:
        """Reward `cases`, as they were proposed: in a noisy environment, they crash with other seeds too.

        Returns the entries whose energy has changed.
        """
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed besides the corpus, as arrays."""
        ...

    def restore(self, context: SearchContext, state: State) -> None:
        """Continue from a `state`. The corpus has been restored already."""
        ...


@runtime_checkable
class NamesEmitters(Protocol):
    """An algorithm that can tell who proposed its cases."""

    def emitter_counts(self, cases: Cases) -> dict[str, int]:
        """How many of `cases` each emitter proposed, by its name."""
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

    def credit(self, context: SearchContext, cases: Cases) -> NDArray[np.int64]:
        return _no_rows()

    def state(self) -> dict[str, NDArray[Any]]:
        return {}

    def restore(self, context: SearchContext, state: State) -> None: ...
