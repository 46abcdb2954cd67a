"""Quality diversity: CMA-ME of the package ribs (Fontaine et al. 2020), over the unit cube of inputs.

It starts from random episodes, and from them takes what it calls measures: the two directions in which their
behaviour (mean and last state, standardised) varies most. The archive is a grid over these, and the objective
of a cell the lowest return. Emitters are those that ribs makes by default, with its two-stage ranking by
improvement, five of 36 as in its tutorials.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.versus.diversity import BehaviourScale
from benchmarks.versus.trial import Recorder, Trial, draw_samples, draw_seeds, learnable
from policyfuzz.core import extras
from policyfuzz.core.errors import UnhealthyTarget
from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.target import Target
from policyfuzz.search.algorithm import Validator
from policyfuzz.search.behaviour import behaviour_of

#: Random episodes that the archive starts from, and the share of all episodes that they may take.
_SAMPLES, _SAMPLED_SHARE = 500, 0.2
_EMITTERS, _PROPOSALS = 5, 36
_CELLS = 100  #: in each of the two measures, as in the tutorials of ribs; 20 and 50 find less
_STEP_SIZE = 0.1  #: sigma0: first standard deviation of proposals, in the unit cube
#: Share of a generation that is always run: random inputs step in where too few proposals are good.
_FEWEST_RUN = 0.1
#: What the archive covers beyond the measures of the samples, as a share of their range on each side.
_MARGIN = 0.25


@dataclass(frozen=True, slots=True)
class Measures:
    """Two numbers for the behaviour of an episode: its first principal components."""

    scale: BehaviourScale
    axes: NDArray[np.float64]  #: (size of scale, 2)

    @classmethod
    def of(cls, executions: Executions) -> "Measures":
        """The measures along which `executions` differ most."""
        scale = BehaviourScale.of(behaviour_of(executions[learnable(executions)]))
        _, _, directions = np.linalg.svd(scale(executions), full_matrices=False)
        axes = np.zeros((scale.size, 2))
        axes[:, : min(2, len(directions))] = directions[:2].T
        return cls(scale, axes)

    def __call__(self, executions: Executions) -> NDArray[np.float64]:
        """(n, 2) measures of n executions."""
        return self.scale(executions) @ self.axes


@dataclass(frozen=True, slots=True)
class CmaMe:
    """CMA-ME; proposals that are invalid or unsolvable are not run, and count as the worst."""

    def __post_init__(self) -> None:
        _compile()  # takes seconds, which are no part of any trial

    def __call__(self, target: Target, episodes: int, seed: int) -> Trial:
        search = _Search(Recorder(target, episodes), seed)
        search.start(min(_SAMPLES, max(int(episodes * _SAMPLED_SHARE), 1)))
        while search.recorder.left > 0:
            search.advance()
        return search.recorder.trial()


class _Search:
    """The loop of one trial."""

    def __init__(self, recorder: Recorder, seed: int) -> None:
        self.recorder = recorder
        self._target = recorder.target
        self._validator = Validator(self._target.inputs, self._target.solvable)
        self._rng = np.random.default_rng(seed)
        self._worst = np.inf  #: lowest objective so far

    def start(self, samples: int) -> None:
        """Run random `samples`, and build archive and emitters on what they show."""
        inputs = draw_samples(self._validator, self._rng, samples)
        executions = self.recorder.run(inputs, draw_seeds(self._rng, len(inputs)))
        if not learnable(executions).any():
            raise UnhealthyTarget(
                f"none of {len(executions)} random episodes of {self._target.name} could be run to its end",
                hint=f"policyfuzz check {self._target.name} says why",
            )
        self._measures = Measures.of(executions)
        self._archive = _new_archive(inputs.shape[1], self._measures(executions), self._rng)
        self._add(inputs, executions)
        self._scheduler = _new_scheduler(self._archive, self._rng)

    def advance(self) -> None:
        """One generation."""
        inputs = from_solutions(self._target.inputs, self._scheduler.ask())
        good = self._is_good(inputs)
        rows = np.flatnonzero(good)[: self.recorder.left]
        missing = int(len(inputs) * _FEWEST_RUN) - len(rows)
        objectives, measures = self._as_bad_as_any(len(inputs))
        if len(rows):
            executions = self.recorder.run(inputs[rows], draw_seeds(self._rng, len(rows)))
            known = learnable(executions)
            objectives[rows[known]] = -executions.returns[known]
            measures[rows[known]] = self._measures(executions)[known]
            self._worst = min(self._worst, float(objectives[rows].min()))
        self._scheduler.tell(objectives, measures)
        if missing > 0 and self.recorder.left > 0:
            inputs = draw_samples(self._validator, self._rng, min(missing, self.recorder.left))
            self._add(inputs, self.recorder.run(inputs, draw_seeds(self._rng, len(inputs))))

    def _add(self, inputs: NDArray[np.float64], executions: Executions) -> None:
        """Put what was not proposed by an emitter into the archive."""
        known = learnable(executions)
        if known.any():
            objectives = -executions.returns[known]
            self._worst = min(self._worst, float(objectives.min()))
            solutions = self._target.inputs.to_unit(inputs[known])
            self._archive.add(solutions, objectives, self._measures(executions)[known])

    def _is_good(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where an input is valid and solvable."""
        good = self._target.inputs.is_valid(inputs)
        if self._target.solvable is not None and good.any():
            good[good] = self._target.solvable(inputs[good])
        return good

    def _as_bad_as_any(self, count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Objectives (count,) and measures (count, 2) that no emitter takes for a success.

        They fall into the cell of the best elite, which they cannot improve.
        """
        best = self._archive.best_elite["measures"]
        return np.full(count, self._worst), np.tile(best, (count, 1)).astype(np.float64)


def _new_archive(dimensions: int, measures: NDArray[np.float64], rng: np.random.Generator) -> Any:
    """A grid over the range of `measures` (n, 2) and some more."""
    low, high = measures.min(axis=0), measures.max(axis=0)
    margin = np.where(high > low, _MARGIN * (high - low), 1.0)
    return extras.load("ribs.archives", "versus").GridArchive(
        solution_dim=dimensions,
        dims=(_CELLS, _CELLS),
        ranges=list(zip(low - margin, high + margin, strict=True)),
        seed=int(rng.integers(2**31)),
    )


def _new_scheduler(archive: Any, rng: np.random.Generator) -> Any:
    """Emitters that start from elites of `archive`."""
    emitters = [
        extras.load("ribs.emitters", "versus").EvolutionStrategyEmitter(
            archive,
            x0=archive.sample_elites(1)["solution"][0],
            sigma0=_STEP_SIZE,
            ranker="2imp",
            batch_size=_PROPOSALS,
            seed=int(rng.integers(2**31)),
        )
        for _ in range(_EMITTERS)
    ]
    return extras.load("ribs.schedulers", "versus").Scheduler(archive, emitters)


def _compile() -> None:
    """Go through all of ribs that is used once, so that it is compiled."""
    rng = np.random.default_rng(0)
    points = rng.random((2, 2))
    archive = _new_archive(2, points, rng)
    archive.add(points, points[:, 0], points)
    scheduler = _new_scheduler(archive, rng)
    for _ in range(2):
        solutions = scheduler.ask()
        scheduler.tell(solutions[:, 0], solutions)


def from_solutions(space: InputSpace, solutions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inputs (n, d) at `solutions` (n, d), which may lie outside of the unit cube.

    They go round where a dimension is periodic and are reflected at the bounds elsewhere: drawing again
    until all of many coordinates are inside, which is what ribs has for bounds, may never end.
    """
    reflected = 1.0 - np.abs(solutions % 2.0 - 1.0)
    return space.from_unit(np.where(space.periods > 0, solutions % 1.0, reflected))
