"""Compiled inner loops of the mixtures: whiten by matrix products, then log-sum-exp.

Points come as the columns of a (d, n) array and are worked on in blocks of LANES columns.
"""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.compiled import kernel

#: Points whitened by one matrix product: large enough for BLAS, small enough for the first-level cache.
LANES = 64
#: exp(-40) is below the rounding of a float64 sum, so smaller terms cannot change it.
NEGLIGIBLE = -40.0


@kernel
def log_joint(
    whiteners: NDArray[np.float64],
    offsets: NDArray[np.float64],
    log_norms: NDArray[np.float64],
    columns: NDArray[np.float64],
    joint: NDArray[np.float64],
) -> None:
    """Write log(weight · N) of every component into `joint` (k, n) for points `columns` (d, n).

    `whiteners` (k·d, d) are the inverse Cholesky factors one below the other, `offsets` (k·d,) the
    whitened means, `log_norms` (k,) log weight plus log normaliser.
    """
    dimensions, count = columns.shape
    components = log_norms.shape[0]
    block = np.zeros((dimensions, LANES))
    whitened = np.empty((whiteners.shape[0], LANES))
    distances = np.empty(LANES)
    for start in range(0, count, LANES):
        filled = min(LANES, count - start)
        for axis in range(dimensions):
            block[axis, :filled] = columns[axis, start : start + filled]
        np.dot(whiteners, block, whitened)
        for component in range(components):
            distances[:] = 0.0
            for axis in range(component * dimensions, (component + 1) * dimensions):
                offset = offsets[axis]
                values = whitened[axis]
                for lane in range(LANES):
                    difference = values[lane] - offset
                    distances[lane] += difference * difference
            norm = log_norms[component]
            row = joint[component, start : start + filled]
            for lane in range(filled):
                row[lane] = norm - 0.5 * distances[lane]


@kernel
def log_sum(joint: NDArray[np.float64], sums: NDArray[np.float64]) -> None:
    """Write the log of the sum over components of exp(`joint`) (k, n) into `sums` (n,).

    exp(x) is taken as the Taylor polynomial at x/64, squared six times: off by less than 1e-15 for
    x <= 0, and unlike a library call it is done for many lanes at once.
    """
    components, count = joint.shape
    largest = np.empty(LANES)
    totals = np.empty(LANES)
    for start in range(0, count, LANES):
        filled = min(LANES, count - start)
        largest[:] = -np.inf
        totals[:] = 0.0
        for component in range(components):
            row = joint[component, start : start + filled]
            for lane in range(filled):
                largest[lane] = row[lane] if row[lane] > largest[lane] else largest[lane]
        for component in range(components):
            row = joint[component, start : start + filled]
            counts = False
            for lane in range(filled):
                counts |= row[lane] - largest[lane] > NEGLIGIBLE
            if not counts:
                continue
            for lane in range(filled):
                below = row[lane] - largest[lane]
                x = (below if below > NEGLIGIBLE else NEGLIGIBLE) / 64
                tail = 1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320)))
                power = 1 + x * (1 + x * (1 / 2 + x * (1 / 6 + x * tail)))
                power = power * power
                power = power * power
                power = power * power
                power = power * power
                power = power * power
                totals[lane] += power * power
        for lane in range(filled):
            sums[start + lane] = largest[lane] + np.log(totals[lane])
