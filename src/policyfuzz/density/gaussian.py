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

    def log_joint(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, k) log of weight times density of each component at `points` (n, d)."""
        from policyfuzz.density import kernel

        joint = np.empty((len(self.log_norms), len(points)))
        columns = np.ascontiguousarray(points.T, np.float64)
        kernel.log_joint(self.whiteners, self.offsets, self.log_norms, columns, joint)
        return joint.T

    def log_density(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) log-density at `points` (n, d)."""
        return log_sum_exp(self.log_joint(points))

    def responsibilities(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, k) share of each component in the density at `points` (n, d); rows sum to one."""
        joint = self.log_joint(points)
        return np.exp(joint - log_sum_exp(joint)[:, None])


def log_sum_exp(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) log of the row sums of exp(`values`) (n, k), without overflow."""
    from policyfuzz.density import kernel

    sums = np.empty(len(values))
    kernel.log_sum(np.ascontiguousarray(values.T), sums)
    return sums


def cholesky(covariances: NDArray[np.float64], floor: float) -> NDArray[np.float64]:
    """(k, d, d) lower factors; eigenvalues are raised to `floor` where that is needed to have one."""
    try:
        return np.asarray(np.linalg.cholesky(covariances), np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariances)
        lifted = np.maximum(values, max(floor, np.finfo(np.float64).tiny))
        rebuilt = (vectors * lifted[:, None, :]) @ vectors.swapaxes(1, 2)
        return np.asarray(np.linalg.cholesky(rebuilt), np.float64)
