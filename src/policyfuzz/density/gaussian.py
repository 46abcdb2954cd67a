"""Gaussian mixtures in log space: Cholesky factors, never inverses or determinants of covariances.

Arrays of points are (n, d); stored column by column (Fortran order) they are scored without a copy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LOG_TWO_PI = float(np.log(2 * np.pi))
#: Eigenvalues this much smaller than the largest are rounding errors, which prevent a factorisation.
_ROUNDING = 1e-12
_NO_AXES = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class GaussianMixture:
    """A mixture of k Gaussians over d dimensions, held in the form that scoring needs."""

    log_weights: NDArray[np.float64]  #: (k,)
    log_diagonals: NDArray[np.float64]  #: (k, d) logs of the diagonals of the Cholesky factors
    whiteners: NDArray[np.float64]  #: (k·d, d) inverse Cholesky factors, one below the other
    offsets: NDArray[np.float64]  #: (k·d,) whitened means

    @classmethod
    def from_moments(
        cls,
        weights: NDArray[np.float64],
        means: NDArray[np.float64],
        covariances: NDArray[np.float64],
        floor: float = 0.0,
    ) -> "GaussianMixture":
        """From weights (k,), means (k, d) and covariances (k, d, d).

        If a covariance is not positive definite, eigenvalues below `floor` are raised to it.
        """
        factors = cholesky(covariances, floor)
        whiteners = np.tril(np.linalg.inv(factors))
        components, dimensions = means.shape
        return cls(
            log_weights=np.log(weights),
            log_diagonals=np.log(np.diagonal(factors, axis1=1, axis2=2)),
            whiteners=np.ascontiguousarray(whiteners.reshape(components * dimensions, dimensions)),
            offsets=np.einsum("kij,kj->ki", whiteners, means).reshape(-1),
        )

    def in_units(self, units: NDArray[np.float64]) -> "GaussianMixture":
        """The same function of points in other `units` (d,): u instead of u / units."""
        return GaussianMixture(self.log_weights, self.log_diagonals, self.whiteners / units, self.offsets)

    def log_density(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) log-density at `points` (n, d)."""
        return self._score(points)[0]

    def log_parts(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(k, n) log of weight times density of every component at `points` (n, d)."""
        return self._score(points, components=True)[2]

    def chain_log_density(
        self, path: NDArray[np.float64], moving: NDArray[np.int64], limits: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) log-density of each point of `path` (n, d) with its increments, and (n,) without them.

        The mixture is over d + m coordinates: those of a point, and the increments of the coordinates
        `moving` (m,) to the next point. The increments of the last point count as zero. Coordinates are
        clipped to `limits` (d,).
        """
        return self._score(path, moving, limits, marginal=path.shape[1])[:2]

    def responsibilities(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, k) share of each component in the density at `points` (n, d); rows sum to one."""
        return self.responsibilities_and_distances(points)[0]

    def responsibilities_and_distances(
        self, points: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n, k) responsibilities, and (n, k) squared Mahalanobis distances."""
        sums, _, joint = self._score(points, components=True)
        log_norms = self.log_norms(self.log_diagonals.shape[1])
        return np.exp(joint - sums).T, 2 * (log_norms - joint.T)

    def _score(
        self,
        points: NDArray[np.float64],
        moving: NDArray[np.int64] = _NO_AXES,
        limits: NDArray[np.float64] | None = None,
        marginal: int = 0,
        components: bool = False,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """(n,) log-density, and if wanted (n,) its marginal and (k, n) the log part of each component."""
        from policyfuzz.density import kernel

        count = len(points)
        sums, marginal_sums = np.empty(count), np.empty(count if marginal else 0)
        joint = np.empty((len(self.log_weights), count if components else 0))
        kernel.score(
            self.whiteners,
            self.offsets,
            self.log_norms(self.log_diagonals.shape[1]),
            self.log_norms(marginal),
            marginal,
            np.ascontiguousarray(points.T, np.float64),
            np.full(points.shape[1], np.inf) if limits is None else limits,
            moving,
            sums,
            marginal_sums,
            joint,
        )
        return sums, marginal_sums, joint

    def log_norms(self, dimensions: int) -> NDArray[np.float64]:
        """(k,) log weight and log normaliser of the first `dimensions` coordinates."""
        log_det = self.log_diagonals[:, :dimensions].sum(axis=1)
        return np.asarray(self.log_weights - 0.5 * dimensions * _LOG_TWO_PI - log_det)


def cholesky(covariances: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """(k, d, d) lower factors; eigenvalues are raised to `floor` if there is no factor otherwise."""
    try:
        return np.asarray(np.linalg.cholesky(covariances), np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariances)
        least = np.maximum(max(floor, np.finfo(np.float64).tiny), _ROUNDING * values[:, -1:])
        rebuilt = (vectors * np.maximum(values, least)[:, None, :]) @ vectors.swapaxes(1, 2)
        return np.asarray(np.linalg.cholesky(rebuilt), np.float64)
