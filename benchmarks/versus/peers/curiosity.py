"""A curious fuzzer, after CureFuzz (He et al., ICSE 2024), in our own words.

Random inputs fill a pool. An input is chosen from it by how novel its states were to a network that learns
them (random network distillation) or by how little it earned, and is changed by small noise. A mutant that
earned less than its parent, or was newer than nearly all recent ones, joins the pool. An input whose mutants
are of no use a few times in a row leaves it; an empty pool is filled with random inputs again. Mutants are
checked as those of our own strategies are.

In two things it differs from the original. There, a parent leaves the pool once it has led to a crash or to a
better input; here it stays. There, the two reasons to choose an input are added up in units of the target;
here they are ranks, and steep ones, because those found the most of several that were tried.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.versus.peers.distillation import Distillation, thin
from benchmarks.versus.trial import Recorder, Trial, draw_samples, draw_seeds, learnable
from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Target
from policyfuzz.search.algorithm import Validator

#: Inputs that the pool starts with at most, and the share of all episodes that they may take.
_SAMPLES, _SAMPLED_SHARE = 1000, 0.2
#: Mutants of no use after which an input leaves the pool.
_PATIENCE = 5
#: How much the first ranks are preferred: half of the choices fall on 4 % of the pool by each reason.
_SHARPNESS = 16
#: Share of recent mutants that count as new, and how many are recent.
_NEW_SHARE, _RECENT = 0.05, 2048


@dataclass(frozen=True, slots=True)
class Curiosity:
    """Curiosity by random network distillation; needs no further package."""

    def __call__(self, target: Target, episodes: int, seed: int) -> Trial:
        search = _Search(Recorder(target, episodes), np.random.default_rng(seed))
        search.sample(min(_SAMPLES, max(int(episodes * _SAMPLED_SHARE), 1)))
        while search.recorder.left > 0:
            search.advance(min(target.batch_size, search.recorder.left))
        return search.recorder.trial()


@dataclass(slots=True)
class Pool:
    """Inputs that may be changed, one row each."""

    inputs: NDArray[np.float64]  #: (n, d)
    seeds: NDArray[np.uint64]  #: (n,) case seeds; a mutant has that of its parent
    returns: NDArray[np.float64]  #: (n,)
    novelty: NDArray[np.float64]  #: (n,) when it was run
    patience: NDArray[np.int64]  #: (n,) mutants of no use that it may still have

    @classmethod
    def empty(cls, dimensions: int) -> "Pool":
        """No inputs."""
        nothing = np.empty(0)
        return cls(np.empty((0, dimensions)), np.empty(0, np.uint64), nothing, nothing, np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.inputs)

    def add(
        self,
        inputs: NDArray[np.float64],
        seeds: NDArray[np.uint64],
        returns: NDArray[np.float64],
        novelty: NDArray[np.float64],
    ) -> None:
        """Put n inputs behind the others."""
        self.inputs = np.concatenate([self.inputs, inputs])
        self.seeds = np.concatenate([self.seeds, seeds])
        self.returns = np.concatenate([self.returns, returns])
        self.novelty = np.concatenate([self.novelty, novelty])
        self.patience = np.concatenate([self.patience, np.full(len(inputs), _PATIENCE, np.int64)])

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Only the inputs where `rows` (n,) is True."""
        self.inputs, self.seeds = self.inputs[rows], self.seeds[rows]
        self.returns, self.novelty, self.patience = (
            self.returns[rows],
            self.novelty[rows],
            self.patience[rows],
        )

    def choose(self, rng: np.random.Generator, count: int) -> NDArray[np.int64]:
        """(count,) Rows, half of them by the rank of their novelty, half by that of their low return."""
        weights = _ranks(self.novelty) ** _SHARPNESS + _ranks(-self.returns) ** _SHARPNESS
        return rng.choice(len(self), count, p=weights / weights.sum())


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) 1 / n for the lowest of `values` (n,), 2 / n for the next, 1 for the highest."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(1, len(values) + 1) / len(values)
    return ranks


@dataclass(slots=True)
class _Search:
    """The loop of one trial."""

    recorder: Recorder
    rng: np.random.Generator
    _pool: Pool = field(init=False)
    _validator: Validator = field(init=False)
    _curiosity: Distillation | None = field(init=False, default=None)
    _recent: NDArray[np.float64] = field(init=False)  #: novelty of the latest mutants

    def __post_init__(self) -> None:
        target = self.recorder.target
        self._pool = Pool.empty(len(target.inputs.dimensions))
        self._validator = Validator(target.inputs, target.solvable)
        self._recent = np.empty(0)

    def sample(self, count: int) -> None:
        """Put `count` random inputs into the pool, those that crash excepted."""
        inputs = draw_samples(self._validator, self.rng, count)
        seeds = draw_seeds(self.rng, count)
        executions = self.recorder.run(inputs, seeds)
        novelty = self._novelty(executions)
        kept = learnable(executions) & ~executions.crashed
        self._pool.add(inputs[kept], seeds[kept], executions.returns[kept], novelty[kept])

    def advance(self, count: int) -> None:
        """Run a batch of `count` mutants, or random inputs where there is nothing to change."""
        if len(self._pool) == 0:
            return self.sample(count)
        space, pool = self.recorder.target.inputs, self._pool

        def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            chosen = pool.choose(self.rng, wanted)
            return chosen, space.perturb(pool.inputs[chosen], self.rng)

        parents, inputs = self._validator.fill(count, draw)
        executions = self.recorder.run(inputs, pool.seeds[parents])
        self._select(parents, inputs, executions)
        return None

    def _select(
        self, parents: NDArray[np.int64], inputs: NDArray[np.float64], executions: Executions
    ) -> None:
        """Let useful mutants join the pool, and parents leave it that have had too many others."""
        pool, novelty = self._pool, self._novelty(executions)
        is_new = novelty > np.quantile(self._recent, 1 - _NEW_SHARE)
        joins = (executions.returns < pool.returns[parents]) | is_new
        joins &= learnable(executions) & ~executions.crashed
        np.subtract.at(pool.patience, parents, 1)
        pool.patience[parents[joins | executions.crashed]] = _PATIENCE
        seeds = pool.seeds[parents[joins]]
        pool.keep(pool.patience > 0)
        pool.add(inputs[joins], seeds, executions.returns[joins], novelty[joins])

    def _novelty(self, executions: Executions) -> NDArray[np.float64]:
        """(n,) Novelty of `executions`, which are learnt then; 0 for what could not be run."""
        novelty = np.zeros(len(executions))
        rows = np.flatnonzero(learnable(executions))
        if len(rows) == 0:
            return novelty
        sequences = thin(executions[rows])
        if self._curiosity is None:
            self._curiosity = Distillation(self.rng)
            self._curiosity.fit_scale(sequences)
            self._curiosity.learn(sequences)  # all are new to it at first, and that says nothing
        novelty[rows] = self._curiosity.novelty(sequences)
        self._curiosity.learn(sequences)
        self._recent = np.concatenate([self._recent, novelty[rows]])[-_RECENT:]
        return novelty
