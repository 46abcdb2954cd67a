"""The area that a mixture of Gaussians covers on a plane: its components as ellipses, and their union."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.settings import DensitySettings
from policyfuzz.density.dynem import OnlineMixture
from policyfuzz.store.coverage_file import Ellipse

#: Standard deviations that an ellipse reaches, and points in it by which its area is measured.
_REACH, _DISC = 2.0, 400


def ellipses_of(points: NDArray[np.float64], seed: int) -> list[Ellipse]:
    """A mixture as freshness learns it, fitted to `points` (n, 2), as ellipses; none without points.

    Components with less than one point in them are left out.
    """
    if len(points) == 0:
        return []
    density = DensitySettings()
    rng = np.random.default_rng(seed)
    fitted = OnlineMixture.fit(points, density.components, density.regularisation, rng)
    found = []
    for weight, mean, covariance in zip(*fitted.moments(), strict=True):
        if weight * len(points) >= 1:
            values, vectors = np.linalg.eigh(covariance)
            short, long = (_REACH * np.sqrt(np.maximum(values, 0.0))).tolist()
            angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
            found.append(Ellipse(float(mean[0]), float(mean[1]), long, short, angle, float(weight)))
    return found


def area_of(ellipses: Sequence[Ellipse]) -> float:
    """The area that at least one of `ellipses` covers.

    Points spread evenly over each of them count for as much as no other one covers, too.
    """
    if not ellipses:
        return 0.0
    turns = np.arange(_DISC) * np.pi * (3 - np.sqrt(5))  # as seeds lie in a sunflower
    radii = np.sqrt((np.arange(_DISC) + 0.5) / _DISC)
    disc = np.stack([radii * np.cos(turns), radii * np.sin(turns)], axis=1)
    centres = np.array([(one.x, one.y) for one in ellipses])
    angles = np.radians([one.angle for one in ellipses])
    along = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    across = np.stack([-np.sin(angles), np.cos(angles)], axis=1)
    halves = np.array([(one.long, one.short) for one in ellipses])
    total = 0.0
    for place in range(len(ellipses)):
        long, short = halves[place]
        points = centres[place] + long * disc[:, :1] * along[place] + short * disc[:, 1:] * across[place]
        apart = points[:, None] - centres
        reached = ((apart * along).sum(axis=2) / halves[:, 0]) ** 2
        reached += ((apart * across).sum(axis=2) / halves[:, 1]) ** 2
        is_covered = reached <= 1
        is_covered[:, place] = True  # whatever rounding says
        total += float(np.pi * long * short * (1 / is_covered.sum(axis=1)).mean())
    return total
