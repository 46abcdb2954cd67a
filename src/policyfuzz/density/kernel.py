"""Compiled inner loops of the mixtures: whiten by matrix products, then log-sum-exp.

Points come as the columns of a (d, n) array and are worked on in blocks of LANES columns. A mixture
comes as `whiteners` (k·d, d), the inverse Cholesky factors one below the other, `offsets` (k·d,), the
whitened means, and `log_norms` (k,), log weight plus log normaliser. Loops over lanes are written out:
assigning slices costs more here than the arithmetic.
"""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.compiled import kernel

#: Points whitened by one matrix product: large enough for BLAS, small enough for the first-level cache.
LANES = 64
#: exp(-40) is below the rounding of a float64 sum, so smaller terms cannot change it.
NEGLIGIBLE = -40.0


@kernel
def _block_log_joint(
    whiteners: NDArray[np.float64],
    offsets: NDArray[np.float64],
    log_norms: NDArray[np.float64],
    block: NDArray[np.float64],
    whitened: NDArray[np.float64],
    joint: NDArray[np.float64],
) -> None:
    """Write log(weight · N) of every component into `joint` (k, LANES) for `block` (d, LANES)."""
    dimensions = block.shape[0]
    np.dot(whiteners, block, whitened)
    for component in range(log_norms.shape[0]):
        row = joint[component]
        for lane in range(LANES):
            row[lane] = 0.0
        for axis in range(component * dimensions, (component + 1) * dimensions):
            offset = offsets[axis]
            values = whitened[axis]
            for lane in range(LANES):
                difference = values[lane] - offset
                row[lane] += difference * difference
        norm = log_norms[component]
        for lane in range(LANES):
            row[lane] = norm - 0.5 * row[lane]


@kernel
def _block_log_sum(
    joint: NDArray[np.float64], largest: NDArray[np.float64], sums: NDArray[np.float64]
) -> None:
    """Write the log of the sum over components of exp(`joint`) (k, LANES) into `sums` (LANES,).

    exp(x) is taken as the Taylor polynomial at x/64, squared six times: off by less than 1e-15 for
    x <= 0, and unlike a library call it is done for many lanes at once.
    """
    for lane in range(LANES):
        largest[lane] = joint[0, lane]
        sums[lane] = 0.0
    for component in range(1, joint.shape[0]):
        row = joint[component]
        for lane in range(LANES):
            largest[lane] = row[lane] if row[lane] > largest[lane] else largest[lane]
    for component in range(joint.shape[0]):
        row = joint[component]
        counting = 0
        for lane in range(LANES):
            counting += 1 if row[lane] - largest[lane] > NEGLIGIBLE else 0
        if counting == 0:
            continue
        for lane in range(LANES):
            below = row[lane] - largest[lane]
            x = (below if below > NEGLIGIBLE else NEGLIGIBLE) / 64
            tail = 1 / 24 + x * (1 / 120 + x * (1 / 720 + x * (1 / 5040 + x / 40320)))
            power = 1 + x * (1 + x * (1 / 2 + x * (1 / 6 + x * tail)))
            power = power * power
            power = power * power
            power = power * power
            power = power * power
            power = power * power
            sums[lane] += power * power
    for lane in range(LANES):
        sums[lane] = largest[lane] + np.log(sums[lane])


@kernel
def score(
    whiteners: NDArray[np.float64],
    offsets: NDArray[np.float64],
    log_norms: NDArray[np.float64],
    columns: NDArray[np.float64],
    sums: NDArray[np.float64],
    joint: NDArray[np.float64],
) -> None:
    """Write the log-density of points `columns` (d, n) into `sums` (n,).

    Where `joint` is (k, n) and not (k, 0), write log(weight · N) of every component there as well.
    """
    dimensions, count = columns.shape
    components = log_norms.shape[0]
    block = np.zeros((dimensions, LANES))
    whitened = np.empty((whiteners.shape[0], LANES))
    block_joint = np.empty((components, LANES))
    block_sums, largest = np.empty(LANES), np.empty(LANES)
    for start in range(0, count, LANES):
        filled = min(LANES, count - start)
        for axis in range(dimensions):
            for lane in range(filled):
                block[axis, lane] = columns[axis, start + lane]
        _block_log_joint(whiteners, offsets, log_norms, block, whitened, block_joint)
        _block_log_sum(block_joint, largest, block_sums)
        for lane in range(filled):
            sums[start + lane] = block_sums[lane]
        if joint.shape[1]:
            for component in range(components):
                for lane in range(filled):
                    joint[component, start + lane] = block_joint[component, lane]
