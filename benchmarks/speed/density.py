"""How fast is freshness? Against SciPy point by point, and against distances to stored sequences."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from threadpoolctl import threadpool_limits

from benchmarks.measurement import Measurement, Track, best_seconds
from policyfuzz.core.settings import DensitySettings
from policyfuzz.density.sequence import SequenceDensity

STEPS, DIMENSIONS, COMPONENTS = 100, 17, 10
_SEQUENCES = 256
_STORED = 1000

#: Weights (k,), means (k, d) and covariances (k, d, d) of a mixture.
Moments = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def run(track: Track) -> list[Measurement]:
    """Measure scoring and learning of sequences of 100 states of 17 coordinates, 10 components."""
    rng = np.random.default_rng(0)
    walks = rng.normal(size=(_SEQUENCES, STEPS, DIMENSIONS)).cumsum(axis=1)
    states = 0.1 * walks + rng.normal(size=(_SEQUENCES, 1, DIMENSIONS))
    lengths = np.full(_SEQUENCES, STEPS)
    with threadpool_limits(1):
        density = SequenceDensity(DensitySettings(components=COMPONENTS))
        density.learn(states, lengths, rng)
        density.mean_log_density(states, lengths)
        moments = _both_moments(density)
        naive = min(
            best_seconds(lambda: _by_scipy(moments, states[0]), 1)
            for _ in track(range(3), "SciPy, point by point")
        )
        stored = rng.normal(size=(_STORED, STEPS, DIMENSIONS))
        distance = best_seconds(lambda: np.linalg.norm(stored - states[0], axis=(1, 2)).min(), 10)
        batch = best_seconds(lambda: density.mean_log_density(states, lengths), 10) / _SEQUENCES
        single = best_seconds(lambda: density.mean_log_density(states[:1], lengths[:1]), 30)
        both = best_seconds(lambda: _score_and_learn(density, states[:1], lengths[:1], rng), 30)
        both_batch = best_seconds(lambda: _score_and_learn(density, states, lengths, rng), 5) / _SEQUENCES
    loop, corpus = "SciPy multivariate_normal loop", f"distance to {_STORED:,} stored sequences"
    return [
        Measurement(loop, naive * 1e3, "ms per sequence"),
        Measurement(corpus, distance * 1e3, "ms per sequence"),
        _against("score, in batches", batch, loop, naive, 1000),
        _against("score, one at a time", single, loop, naive, 1000),
        _against("score and learn, in batches", both_batch, loop, naive, 300),
        _against("score and learn, one at a time", both, loop, naive, 300),
        _against("score, in batches", batch, corpus, distance, None),
        _against("score and learn, in batches", both_batch, corpus, distance, None),
    ]


def _against(what: str, seconds: float, baseline: str, other: float, goal: int | None) -> Measurement:
    ratio = other / seconds
    met = None if goal is None else ratio >= goal
    text = "" if goal is None else f">= {goal:,} x"
    return Measurement(what, seconds * 1e3, "ms per sequence", baseline, ratio, text, met)


def _score_and_learn(
    density: SequenceDensity,
    states: NDArray[np.float64],
    lengths: NDArray[np.int64],
    rng: np.random.Generator,
) -> None:
    density.mean_log_density(states, lengths)
    density.learn(states, lengths, rng)


def _both_moments(density: SequenceDensity) -> list[Moments]:
    """Moments of the mixture over single states, and of the one over pairs."""
    weights, means, covariances = density.pairs.moments()
    single = weights, means[:, :DIMENSIONS], covariances[:, :DIMENSIONS, :DIMENSIONS]
    return [single, (weights, means, covariances)]


def _by_scipy(moments: list[Moments], states: NDArray[np.float64]) -> float:
    """The same sum with one library call per state and component, as it is usually written."""
    singles, pairs = moments
    after = np.concatenate([states[:-1], np.diff(states, axis=0)], axis=1)
    total = _log_density(singles, states[0])
    for state, pair in zip(states[:-1], after, strict=True):
        total += _log_density(pairs, pair) - _log_density(singles, state)
    return total


def _log_density(moments: Moments, point: NDArray[np.float64]) -> float:
    terms = [
        np.log(weight) + multivariate_normal.logpdf(point, mean, covariance)
        for weight, mean, covariance in zip(*moments, strict=True)
    ]
    return float(logsumexp(terms))
