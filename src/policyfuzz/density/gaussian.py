"""Gaussian mixtures in log space: Cholesky factors, never inverses or determinants of covariances.

Arrays of points are (n, d); stored column by column (Fortran order) they are scored without a copy.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LOG_TWO_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, slots=True)
class GaussianMixture:
    """A mixture of k Gaussians over d dimensions, held in the form that scoring needs."""

    log_norms: NDArray[np.float64]  #: (k,) log weight - d/2 log 2pi - log det of the Cholesky factor
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

        Eigenvalues below `floor` are raised to it where a covariance is not positive definite.
        """
        factors = cholesky(covariances, floor)
        whiteners = np.asarray(np.linalg.inv(factors), np.float64)
        log_det = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        components, dimensions = means.shape
        return cls(
            log_norms=np.log(weights) - 0.5 * dimensions * _LOG_TWO_PI - log_det,
            whiteners=whiteners.reshape(components * dimensions, dimensions),
            offsets=np.einsum("kij,kj->ki", whiteners, means).reshape(-1),
        )

    def in_units(self, units: NDArray[np.float64]) -> "GaussianMixture":
        """The same function of points that are given in other `units` (d,): u instead of u / units."""
        return GaussianMixture(self.log_norms, self.whiteners / units, self.offsets)

    def log_density(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) log-density at `points` (n, d)."""
        return self._score(points, components=False)[0]

    def responsibilities(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, k) share of each component in the density at `points` (n, d); rows sum to one."""
        sums, joint = self._score(points, components=True)
        return np.exp(joint - sums).T

    def _score(
        self, points: NDArray[np.float64], components: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(n,) log-density, and (k, n) its log parts by component if wanted, else (k, 0)."""
        from policyfuzz.density import kernel

        sums = np.empty(len(points))
        joint = np.empty((len(self.log_norms), len(points) if components else 0))
        columns = np.ascontiguousarray(points.T, np.float64)
        kernel.score(self.whiteners, self.offsets, self.log_norms, columns, sums, joint)
        return sums, joint


def cholesky(covariances: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """(k, d, d) lower factors; eigenvalues are raised to `floor` where that is needed to have one."""
    try:
        return np.asarray(np.linalg.cholesky(covariances), np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariances)
        lifted = np.maximum(values, max(floor, np.finfo(np.float64).tiny))
        rebuilt = (vectors * lifted[:, None, :]) @ vectors.swapaxes(1, 2)
        return np.asarray(np.linalg.cholesky(rebuilt), np.float64)
