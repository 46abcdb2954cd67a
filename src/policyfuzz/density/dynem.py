"""Online expectation-maximisation of a Gaussian mixture (DynEM in the paper; Cappé and Moulines 2009).

The state is the expected complete sufficient statistics of each component: mass, first and second
moment. Learning moves them by a step size towards the statistics of the batch; nothing grows.

Plain online EM can forget: points far from all components widen the nearest one, which then catches the
next far points and moves away with them. So points far from all components get a new component; to make
room, the two most similar components are merged.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from policyfuzz.density.gaussian import GaussianMixture

#: Least mass of a component: without data its mass falls, but its mean and covariance stay computable.
_SMALLEST_MASS = 1e-12
#: Batch steps of the first fit. On every target we ship, the likelihood levels off well before.
_FIRST_FIT_STEPS = 10
#: A point is far from a component if its squared Mahalanobis distance exceeds the expected one by this
#: many standard deviations.
_FAR = 10.0
#: Most points used for the first fit; more would cost time and change little.
_FIRST_FIT_POINTS = 5000


class OnlineMixture:
    """A Gaussian mixture that learns from batches of points at constant cost and memory."""

    def __init__(
        self,
        mass: NDArray[np.float64],
        first: NDArray[np.float64],
        second: NDArray[np.float64],
        regularisation: float,
    ) -> None:
        """From statistics `mass` (k,), `first` (k, d), `second` (k, d, d), each a mean over points."""
        self.mass, self.first, self.second = mass, first, second
        self.regularisation = regularisation
        self.mixture = self._mixture()

    @classmethod
    def fit(
        cls, points: NDArray[np.float64], components: int, regularisation: float, rng: np.random.Generator
    ) -> "OnlineMixture":
        """Start from `points` (n, d): random distinct centres, then a few steps of batch EM."""
        chosen = rng.permutation(len(points))[:_FIRST_FIT_POINTS]
        points = points[chosen]
        components = min(components, len(points))
        nearest = _spread_centres(points, components, rng)
        shares = np.zeros((len(points), components))
        shares[np.arange(len(points)), nearest] = 1.0
        online = cls(*statistics(points, shares), regularisation)
        for _ in range(_FIRST_FIT_STEPS):
            online.learn(points, step=1.0)
        return online

    def log_density(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) log-density at `points` (n, d). Pure."""
        return self.mixture.log_density(points)

    def learn(self, points: NDArray[np.float64], step: float) -> None:
        """Move the statistics by `step` in (0, 1] towards those of `points` (n, d): plain online EM."""
        self._move(points, self.mixture.responsibilities(points), step)

    def learn_new(self, points: NDArray[np.float64], step: float) -> None:
        """As `learn`, but `points` (n, d) far from all components get a new one."""
        shares, distances = self.mixture.responsibilities_and_distances(points)
        dimensions = points.shape[1]
        is_far = distances.min(axis=1) > dimensions + _FAR * np.sqrt(2 * dimensions)
        if is_far.any() and len(self.mass) > 1:
            kept, freed = self._most_similar()
            shares[:, kept] += shares[:, freed]
            shares[:, freed] = 0.0
            shares[is_far] = 0.0
            shares[is_far, freed] = 1.0
            self.mass = _merged(self.mass, kept, freed)
            self.first = _merged(self.first, kept, freed)
            self.second = _merged(self.second, kept, freed)
        self._move(points, shares, step)

    def _move(self, points: NDArray[np.float64], shares: NDArray[np.float64], step: float) -> None:
        mass, first, second = statistics(points, shares)
        self.mass = (1 - step) * self.mass + step * mass
        self.first = (1 - step) * self.first + step * first
        self.second = (1 - step) * self.second + step * second
        self.mixture = self._mixture()

    def _most_similar(self) -> tuple[int, int]:
        """The two components whose merger changes the mixture least (Runnalls' bound, 2007)."""
        weights, means, covariances = self.moments()
        first, second = np.triu_indices(len(weights), 1)
        mass = weights[first] + weights[second]
        share = (weights[first] / mass)[:, None, None]
        apart = means[first] - means[second]
        merged = share * covariances[first] + (1 - share) * covariances[second]
        merged += share * (1 - share) * apart[:, :, None] * apart[:, None, :]
        log_det = 2 * self.mixture.log_diagonals.sum(axis=1)
        cost = mass * np.linalg.slogdet(merged)[1]
        cost -= weights[first] * log_det[first] + weights[second] * log_det[second]
        best = int(cost.argmin())
        return int(first[best]), int(second[best])

    def with_axes(self, axes: NDArray[np.int64], dimensions: int) -> "OnlineMixture":
        """The same mixture over `dimensions` coordinates: its own become `axes` (d,), the rest are 0."""
        first = np.zeros((len(self.mass), dimensions))
        first[:, axes] = self.first
        second = np.zeros((len(self.mass), dimensions, dimensions))
        second[:, axes[:, None], axes] = self.second
        return OnlineMixture(self.mass, first, second, self.regularisation)

    def state(self) -> dict[str, NDArray[np.float64]]:
        """Everything that learning has changed, as arrays."""
        return {"mass": self.mass, "first": self.first, "second": self.second}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.float64]], regularisation: float) -> "OnlineMixture":
        """The mixture that had this `state`; it continues identically."""
        return cls(state["mass"], state["first"], state["second"], regularisation)

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Weights (k,), means (k, d) and regularised covariances (k, d, d)."""
        means = self.first / self.mass[:, None]
        covariances = self.second / self.mass[:, None, None] - means[:, :, None] * means[:, None, :]
        covariances += self.regularisation * np.eye(means.shape[1])
        return self.mass / self.mass.sum(), means, covariances

    def _mixture(self) -> GaussianMixture:
        self._raise_small_masses()
        return GaussianMixture.from_moments(*self.moments(), floor=self.regularisation)

    def _raise_small_masses(self) -> None:
        """Raise tiny masses and their moments; a component without mass gets the shape of all data."""
        if (self.mass >= _SMALLEST_MASS).all():
            return
        total = self.mass.sum()
        empty = self.mass < np.finfo(np.float64).tiny
        scale = np.maximum(1.0, _SMALLEST_MASS / np.where(empty, 1.0, self.mass))
        self.mass = np.where(empty, _SMALLEST_MASS, self.mass * scale)
        share = _SMALLEST_MASS / total
        self.first = np.where(empty[:, None], share * self.first.sum(axis=0), self.first * scale[:, None])
        scale = scale[:, None, None]
        self.second = np.where(empty[:, None, None], share * self.second.sum(axis=0), self.second * scale)


def statistics(
    points: NDArray[np.float64], shares: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mass (k,), first (k, d) and second moment (k, d, d) of `points` (n, d) with `shares` (n, k)."""
    count = len(points)
    columns, parts = points.T, shares.T
    second = np.stack([(columns * part) @ points for part in parts]) / count
    return parts.sum(axis=1) / count, parts @ points / count, second


def _merged(moments: NDArray[np.float64], kept: int, freed: int) -> NDArray[np.float64]:
    """`moments` (k, ...) with those of component `freed` added to those of component `kept`."""
    merged = moments.copy()
    merged[kept] += merged[freed]
    merged[freed] = 0.0
    return merged


def _spread_centres(
    points: NDArray[np.float64], components: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """(n,) index of the nearest of `components` random centres that are far apart (k-means++)."""
    distance = np.full(len(points), np.inf)
    nearest = np.zeros(len(points), np.intp)
    for component in range(components):
        weights = np.where(np.isfinite(distance), distance, 1.0)
        total = weights.sum()
        centre = points[rng.choice(len(points), p=weights / total if total > 0 else None)]
        squared = ((points - centre) ** 2).sum(axis=1)
        closer = squared < distance
        nearest[closer] = component
        distance = np.minimum(distance, squared)
    return nearest
