"""The density of the published code, for comparison: two separate mixtures that learn point by point.

    log p = log s(S_0) + sum over t of min(0, log c(S_t, S_t+1) - log s(S_t))

`s` is a mixture over single states and `c` another one over pairs, both in raw units. Every component counts
for at least 1e-5, and no ratio for more than one. Of a sequence that is learnt, the first state moves `s`,
and the least likely tenth of its pairs moves `c`, one after another at a constant rate, so that what was
learnt fades within some ten sequences.

The published code multiplies these densities until they underflow. Here they are added up as logarithms; a
comparison with a threshold comes out the same.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.density.dynem import statistics
from policyfuzz.density.gaussian import GaussianMixture

#: Successive points whose mean is the first mean of a component. Component i begins with point i.
_FIRST_POINTS = 15
#: Least density of a component, times its weight.
_LOG_FLOOR = float(np.log(1e-5))
#: Least eigenvalue of a covariance, in whatever units the states have.
_LEAST_VARIANCE = 1e-3
#: One in so many pairs of a sequence is learnt, the least likely ones.
_LEARNT_PAIRS = 10
#: Larger coordinates are clipped to this, so that their squares stay finite.
_LIMIT = 1e100


class FadingMixture:
    """A Gaussian mixture in raw units that moves towards every point it learns, at one `rate`."""

    def __init__(
        self,
        mass: NDArray[np.float64],
        first: NDArray[np.float64],
        second: NDArray[np.float64],
        rate: float,
        has_learnt: bool,
    ) -> None:
        """From statistics `mass` (k,), `first` (k, d) and `second` (k, d, d)."""
        self.mass, self.first, self.second = mass, first, second
        self.rate, self.has_learnt = rate, has_learnt
        self._mixture = GaussianMixture.from_moments(self.mass, *self._means_and_covariances())

    @classmethod
    def begin(cls, points: NDArray[np.float64], components: int, rate: float) -> "FadingMixture":
        """Equal components around the first `points` (n, d), with unit covariances until it learns."""
        starts = np.minimum(np.arange(components), len(points) - 1)
        windows = [points[start : start + _FIRST_POINTS] for start in starts]
        mass = np.full(components, 1 / components)
        first = np.stack([window.mean(axis=0) for window in windows]) / components
        second = np.stack([window.T @ window / len(window) for window in windows]) / components
        return cls(mass, first, second, rate, has_learnt=False)

    def log_parts(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(k, n) log of weight times density of every component at `points` (n, d), with the floor. Pure."""
        return np.asarray(np.logaddexp(self._mixture.log_parts(points), _LOG_FLOOR))

    def learn(self, points: NDArray[np.float64], log_parts: NDArray[np.float64]) -> None:
        """Move towards `points` (m, d), one after another; `log_parts` (k, m) are theirs before."""
        count = len(points)
        if count == 0:
            return
        shares = np.exp(log_parts - np.logaddexp.reduce(log_parts, axis=0)).T
        # what the later points leave of the step towards each
        steps = self.rate * (1 - self.rate) ** np.arange(count - 1, -1, -1)
        mass, first, second = statistics(points, shares * (count * steps[:, None]))
        kept = (1 - self.rate) ** count
        self.mass = np.maximum(kept * self.mass + mass, np.finfo(np.float64).tiny)
        self.first, self.second = kept * self.first + first, kept * self.second + second
        self.has_learnt = True
        self._mixture = GaussianMixture.from_moments(self.mass, *self._means_and_covariances())

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed, as arrays."""
        return {
            "mass": self.mass,
            "first": self.first,
            "second": self.second,
            "has_learnt": np.array([self.has_learnt]),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]], rate: float) -> "FadingMixture":
        """The mixture that had this `state`; it continues identically."""
        return cls(state["mass"], state["first"], state["second"], rate, bool(state["has_learnt"][0]))

    def _means_and_covariances(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Means (k, d) and covariances (k, d, d), whose eigenvalues are raised to the least variance."""
        means = self.first / self.mass[:, None]
        if not self.has_learnt:
            return means, np.tile(np.eye(means.shape[1]), (len(means), 1, 1))
        covariances = self.second / self.mass[:, None, None] - means[:, :, None] * means[:, None, :]
        values, vectors = np.linalg.eigh(covariances)
        values = np.maximum(values, _LEAST_VARIANCE)
        return means, (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2)


class PublishedDensity:
    """Log-density of whole state sequences, scored and learnt one at a time."""

    def __init__(self, components: int, rate: float) -> None:
        self.components, self.rate = components, rate
        self.learnt_sequences = 0
        self._singles: FadingMixture | None = None
        self._pairs: FadingMixture | None = None

    def log_density(self, states: NDArray[np.float64]) -> float:
        """Of the sequence `states` (t, d). Pure once there was a first sequence; NaN if it holds a NaN."""
        return self.consider(states, -np.inf)

    def consider(self, states: NDArray[np.float64], learnt_below: float) -> float:
        """The log-density of the sequence `states` (t, d), which is then learnt if that is `learnt_below`.

        The very first sequence places the components; it is scored with these.
        """
        if np.isnan(states).any():
            return np.nan
        states = np.clip(states, -_LIMIT, _LIMIT)
        pairs = np.hstack([states[:-1], states[1:]])
        if self._singles is None or self._pairs is None:
            first_pairs = pairs if len(pairs) else np.hstack([states, states])
            self._singles = FadingMixture.begin(states, self.components, self.rate)
            self._pairs = FadingMixture.begin(first_pairs, self.components, self.rate)
        single_parts, pair_parts = self._singles.log_parts(states), self._pairs.log_parts(pairs)
        single_logs, pair_logs = (np.logaddexp.reduce(parts, axis=0) for parts in (single_parts, pair_parts))
        log_density = float(single_logs[0] + np.minimum(pair_logs - single_logs[:-1], 0.0).sum())
        if log_density < learnt_below:
            self._singles.learn(states[:1], single_parts[:, :1])
            least = np.argsort(pair_logs, kind="stable")[: len(pairs) // _LEARNT_PAIRS]
            self._pairs.learn(pairs[least], pair_parts[:, least])
            self.learnt_sequences += 1
        return log_density

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that learning has changed, as arrays."""
        if self._singles is None or self._pairs is None:
            return {}
        mixtures = {"singles.": self._singles, "pairs.": self._pairs}
        arrays = {
            prefix + name: array
            for prefix, mixture in mixtures.items()
            for name, array in mixture.state().items()
        }
        return arrays | {"learnt_sequences": np.array([self.learnt_sequences])}

    @classmethod
    def from_state(
        cls, state: Mapping[str, NDArray[Any]], components: int, rate: float
    ) -> "PublishedDensity":
        """The density that had this `state`; it continues identically."""
        density = cls(components, rate)
        if state:
            density.learnt_sequences = int(state["learnt_sequences"][0])
            density._singles, density._pairs = (
                FadingMixture.from_state(
                    {name[len(prefix) :]: array for name, array in state.items() if name.startswith(prefix)},
                    rate,
                )
                for prefix in ("singles.", "pairs.")
            )
        return density
