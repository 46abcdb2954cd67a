"""The naive baseline: half of all episodes are random, half are noise on crashes that are known.

It learns nothing and aims at nothing. What it reaches in a column is what that column gives away to anyone
who varies known crashes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.versus.trial import Recorder, Trial, draw_samples, draw_seeds
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.target import Target
from policyfuzz.search.algorithm import Validator

#: Standard deviation of the noise in the unit cube.
_NOISE = 0.05
_CONTINUOUS = ("real", "angle")


@dataclass(frozen=True, slots=True)
class HalfNoise:
    """Random inputs only, until the first crash; needs no further package."""

    def __call__(self, target: Target, episodes: int, seed: int) -> Trial:
        recorder, rng = Recorder(target, episodes), np.random.default_rng(seed)
        validator = Validator(target.inputs, target.solvable)
        known = np.empty((0, len(target.inputs.dimensions)))
        seeds, roots, drawn = np.empty(0, np.uint64), np.empty(0, np.int64), 0
        while recorder.left > 0:
            count = min(target.batch_size, recorder.left)
            fresh = count - count // 2 if len(known) else count
            parents, noisy = _mutants(validator, rng, known, count - fresh)
            inputs = np.concatenate([draw_samples(validator, rng, fresh), noisy])
            # a mutant has the case seed of its parent
            batch_seeds = np.concatenate([draw_seeds(rng, fresh), seeds[parents]])
            batch_roots = np.concatenate([drawn + np.arange(fresh), roots[parents]])
            drawn += fresh
            crashed = recorder.run(inputs, batch_seeds, batch_roots).crashed
            known = np.concatenate([known, inputs[crashed]])
            seeds = np.concatenate([seeds, batch_seeds[crashed]])
            roots = np.concatenate([roots, batch_roots[crashed]])
        return recorder.trial()


def _mutants(
    validator: Validator, rng: np.random.Generator, known: NDArray[np.float64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Rows (count,) of `known` (n, d), and inputs (count, d) near them, valid and solvable."""

    def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        parents = rng.integers(len(known), size=wanted)
        return parents, _noisy(validator.space, known[parents], rng)

    return validator.fill(count, draw)


def _noisy(space: InputSpace, inputs: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """`inputs` (n, d) with noise: whole numbers with the target's own, as so little would not change them."""
    shifted = space.from_unit(space.to_unit(inputs) + rng.normal(0.0, _NOISE, inputs.shape))
    is_continuous = [dimension.kind in _CONTINUOUS for dimension in space.dimensions]
    return np.where(is_continuous, shifted, space.perturb(inputs, rng))
