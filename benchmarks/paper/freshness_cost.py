"""What a question for freshness costs, against comparing with a corpus of four sizes (paper, table 2)."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.paper.published import FRESHNESS_COSTS
from benchmarks.speed.density import COMPONENTS, DIMENSIONS, STEPS
from policyfuzz.core.settings import DensitySettings
from policyfuzz.density.published import PublishedDensity
from policyfuzz.density.sequence import SequenceDensity

#: Folders of the package that are measured.
CODE = ("density",)
#: Sequences that are scored at once, and times that everything is repeated.
_BATCH, _REPEATS = 256, 7


def measure() -> tuple[dict[str, Any], dict[str, Any]]:
    """Sizes that are compared, and seconds of CPU time for one sequence as long and wide as the paper's."""
    rng = np.random.default_rng(0)
    largest = max(row.corpus for row in FRESHNESS_COSTS)
    states = 0.1 * rng.normal(size=(_BATCH, STEPS, DIMENSIONS)).cumsum(axis=1)
    stored = 0.1 * rng.normal(size=(largest, STEPS, DIMENSIONS)).cumsum(axis=1)
    lengths = np.full(_BATCH, STEPS)
    density, published = SequenceDensity(DensitySettings(COMPONENTS)), PublishedDensity(COMPONENTS, 0.1)
    with threadpool_limits(1):
        density.learn(states, lengths, rng)
        for one in states[:20]:
            published.consider(one, np.inf)
        distances = {
            str(row.corpus): _least_seconds(partial(_distance, stored[: row.corpus], states[0]))
            for row in FRESHNESS_COSTS
        }
        costs: dict[str, Any] = {
            "distance": distances,
            "mixture_alone": _least_seconds(lambda: density.least_log_density(states[:1], lengths[:1])),
            "mixture_in_batch": _least_seconds(lambda: density.least_log_density(states, lengths)) / _BATCH,
            "published_score": _least_seconds(lambda: published.log_density(states[0])),
            "published_score_and_learn": _least_seconds(lambda: published.consider(states[0], np.inf)),
        }
    found = {
        "corpora": [row.corpus for row in FRESHNESS_COSTS],
        "steps": STEPS,
        "dimensions": DIMENSIONS,
        "components": COMPONENTS,
        "batch": _BATCH,
    }
    return found, costs


def _distance(stored: NDArray[np.float64], sequence: NDArray[np.float64]) -> float:
    """From `sequence` (t, d) to the nearest of `stored` (n, t, d)."""
    return float(np.linalg.norm(stored - sequence, axis=(1, 2)).min())


def _least_seconds(action: Callable[[], object]) -> float:
    """CPU seconds of the quickest of some runs, after one that does not count."""
    action()
    taken = []
    for _ in range(_REPEATS):
        started = time.process_time()
        action()
        taken.append(time.process_time() - started)
    return min(taken)
