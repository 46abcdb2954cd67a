"""Many estimates of one known probability: how often the interval holds, and how far the estimate is off."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.intervals import exact_interval
from policyfuzz.core.oracle import NONE, Verdicts
from policyfuzz.core.target import Run, Runner, Target, number, split_options
from policyfuzz.targets.registry import load_target
from policyfuzz.targets.ripple.target import Pond
from policyfuzz.triage.estimate import REPLICATES, EstimateSettings, combined
from policyfuzz.triage.estimation import Estimation

#: Estimates whose replicates run at once. Replicates share nothing, so any ten of them are an estimate, and a
#: thousand at once cost less than a hundred times ten.
_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Repeats:
    """What n estimates of one probability have shown."""

    target: str
    truth: float
    estimates: NDArray[np.float64]  #: (n, 3) probability, and the ends of its interval
    episodes: float  #: of one of them, on average

    @property
    def covered(self) -> int:
        """Intervals that hold the truth."""
        _, low, high = self.estimates.T
        return int(np.count_nonzero((low <= self.truth) & (self.truth <= high)))

    @property
    def coverage(self) -> float:
        """Share of these."""
        return self.covered / len(self.estimates)

    @property
    def coverage_interval(self) -> tuple[float, float]:
        """Its own 95 % interval."""
        return exact_interval(self.covered, len(self.estimates))

    @property
    def ratios(self) -> NDArray[np.float64]:
        """(n,) estimates, as multiples of the truth."""
        return np.asarray(self.estimates[:, 0] / self.truth)

    @property
    def error(self) -> float:
        """Root of the mean squared relative error."""
        return float(np.sqrt(np.mean((self.ratios - 1) ** 2)))

    @property
    def width(self) -> float:
        """Median of upper end by lower end."""
        return float(np.median(self.estimates[:, 2] / np.maximum(self.estimates[:, 1], 1e-300)))


def repeat(target: Target, run: Run, truth: float, count: int, seed: int) -> Repeats:
    """`count` estimates, one after another."""
    found = [estimated(target, run, EstimateSettings(seed + number)).estimate for number in range(count)]
    values = np.array([(one.probability, one.low, one.high) for one in found])
    return Repeats(target.name, truth, values, float(np.mean([one.episodes for one in found])))


def repeat_at_once(target: Target, run: Run, truth: float, count: int, seed: int) -> Repeats:
    """`count` estimates of a rare failure with the default number of replicates, many of them at once."""
    values: list[tuple[float, float, float]] = []
    episodes, number, at_once = 0, 0, min(count, _AT_ONCE)
    while len(values) < count:
        settings = EstimateSettings(seed + number, at_once * REPLICATES)
        estimation = estimated(target, run, settings)
        number += 1
        climb = estimation.climb
        assert climb is not None  # it is rare
        assert climb.has_failures.all()
        episodes += estimation.counts.episodes
        values += [combined(shares) for shares in np.split(climb.probabilities, at_once)]
    return Repeats(target.name, truth, np.array(values[:count]), episodes / len(values))


def estimated(target: Target, run: Run, settings: EstimateSettings) -> Estimation:
    """An estimation that is done."""
    estimation = Estimation.begin(target, run, settings)
    while not estimation.is_done:
        estimation.advance()
    return estimation


def plain_episodes(probability: float, error: float) -> float:
    """Random draws that estimate `probability` with this relative standard `error`."""
    return (1 - probability) / (probability * error**2)


def plain_error(target: Target, run: Run, truth: float, draws: int, repeats: int, seed: int) -> float:
    """Root of the mean squared relative error of plain sampling, measured by really sampling."""
    rng = np.random.default_rng([seed, draws])
    found = []
    for _ in range(repeats):
        inputs = target.inputs.sample(rng, draws)
        found.append(run(inputs, np.zeros(draws, np.uint64)).crashed.mean())
    return float(np.sqrt(np.mean((np.array(found) / truth - 1) ** 2)))


def ripple(name: str) -> tuple[Target, Run, float]:
    """A ripple target, what runs it, and its exact probability.

    Its episodes are not stepped: verdict and margin have a closed form, which is compared with real episodes
    first. That saves hours.
    """
    target = load_target(name)
    options = split_options(name)[1]
    regions = number(options, "regions", 1, int, 1, 100)
    each = number(options, "probability", 1e-3, float, 1e-12, 0.5)
    pond = Pond.make(len(target.inputs.dimensions), regions, each)

    def run(inputs: NDArray[np.float64], _seeds: NDArray[np.uint64]) -> Executions:
        margins, count = pond.nearest(inputs)[1] - pond.half_width, len(inputs)
        verdicts = Verdicts(np.where(margins < 0, 0, NONE), np.where(margins < 0, 1, NONE), margins)
        return Executions(np.zeros(count), np.ones(count, np.int64), np.zeros((count, 1, 1)), verdicts)

    _compare(target, run, pond)
    return target, run, regions * each


def _compare(target: Target, run: Run, pond: Pond) -> None:
    """Raise unless `run` and real episodes agree, far from the centres and near them."""
    rng = np.random.default_rng(1)
    inputs = target.inputs.sample(rng, 2000)
    active = pond.centres.shape[1]
    near = pond.centres[rng.integers(len(pond.centres), size=1000)]
    inputs[:1000, :active] = np.clip(near + rng.uniform(-2, 2, near.shape) * pond.half_width, 0, 1)
    seeds = np.zeros(len(inputs), np.uint64)
    real, closed = Runner(target)(inputs, seeds), run(inputs, seeds)
    np.testing.assert_array_equal(real.crashed, closed.crashed)
    passed = ~real.crashed
    np.testing.assert_allclose(real.verdicts.margins[passed], closed.verdicts.margins[passed], atol=1e-12)
