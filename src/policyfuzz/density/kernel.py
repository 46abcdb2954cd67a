"""Compiled inner loops of the mixtures: whiten by matrix products, then log-sum-exp.

Points are the columns of a (d, n) array, processed in blocks of LANES columns. A mixture is given
as `whiteners` (k·d, d), the inverse Cholesky factors one below the other, and `offsets` (k·d,), the
whitened means. The factors are lower triangular, so the first rows of each also whiten the marginal over
the first coordinates. Loops over lanes are written out: assigning slices costs more than the arithmetic.
"""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.compiled import kernel

#: Points whitened by one matrix product: large enough for BLAS, small enough to stay in the cache.
LANES = 128
#: exp(-37) is below the rounding of a float64 sum, so smaller terms cannot change it.
NEGLIGIBLE = -37.0
_LOG_TWO = float(np.log(2.0))
#: The bits of sqrt(1/2), so that mantissas come out around one.
_SQRT_HALF_BITS = int(np.array(np.sqrt(0.5)).view(np.int64))


@kernel
def _add_squares(
    whitened: NDArray[np.float64],
    offsets: NDArray[np.float64],
    first: int,
    last: int,
    squares: NDArray[np.float64],
) -> None:
    """Add the squared distances along axes `first` to `last` to `squares` (LANES,)."""
    for axis in range(first, last - 1, 2):  # two at a time: half the traffic of the running sum
        for lane in range(LANES):
            one = whitened[axis, lane] - offsets[axis]
            two = whitened[axis + 1, lane] - offsets[axis + 1]
            squares[lane] += one * one + two * two
    if (last - first) % 2:
        for lane in range(LANES):
            one = whitened[last - 1, lane] - offsets[last - 1]
            squares[lane] += one * one


@kernel
def _finish(
    squares: NDArray[np.float64], log_norm: float, row: NDArray[np.float64], largest: NDArray[np.float64]
) -> None:
    """Turn `squares` (LANES,) into log parts of one component, and keep the `largest` of all components."""
    for lane in range(LANES):
        value = log_norm - 0.5 * squares[lane]
        row[lane] = value
        largest[lane] = largest[lane] if largest[lane] > value else value


@kernel
def _log_sum(
    joint: NDArray[np.float64],
    largest: NDArray[np.float64],
    exponents: NDArray[np.int64],
    sums: NDArray[np.float64],
) -> None:
    """Write the log of the sum over components of exp(`joint`) (k, LANES) into `sums` (LANES,).

    `largest` (LANES,) is the maximum over components.

    exp(x) is taken as the Taylor polynomial at x/64, squared six times. Of log(x), x = 2^e m, the part
    log(m) is 2 artanh((m - 1) / (m + 1)) as a series, 0.7 < m < 1.5. Both are off by less than 1e-15 in
    that range, and unlike library calls they vectorise over lanes.
    """
    for lane in range(LANES):
        sums[lane] = 0.0
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
    bits = sums.view(np.int64)
    for lane in range(LANES):
        exponents[lane] = (bits[lane] - _SQRT_HALF_BITS) >> 52
        bits[lane] -= exponents[lane] << 52
    for lane in range(LANES):
        z = (sums[lane] - 1) / (sums[lane] + 1)
        y = z * z
        tail = 1 / 13 + y * (1 / 15 + y * (1 / 17 + y * (1 / 19 + y / 21)))
        series = 1 + y * (1 / 3 + y * (1 / 5 + y * (1 / 7 + y * (1 / 9 + y * (1 / 11 + y * tail)))))
        sums[lane] = largest[lane] + exponents[lane] * _LOG_TWO + 2 * z * series


@kernel
def score(
    whiteners: NDArray[np.float64],
    offsets: NDArray[np.float64],
    log_norms: NDArray[np.float64],
    marginal_log_norms: NDArray[np.float64],
    marginal: int,
    columns: NDArray[np.float64],
    limits: NDArray[np.float64],
    moving: NDArray[np.int64],
    sums: NDArray[np.float64],
    marginal_sums: NDArray[np.float64],
    joint: NDArray[np.float64],
) -> None:
    """Write the log-density of points `columns` (d, n) into `sums` (n,).

    The mixture is over d + m coordinates: those of a point, and the increments of the coordinates `moving`
    (m,) to the next column; those of the last column are zero. Values are clipped to `limits` (d,), so that
    squares of extreme ones stay finite; NaN stays NaN. `log_norms` (k,) are log weight plus log normaliser.
    If `marginal` is not 0, write the log-density of the first `marginal` coordinates alone into
    `marginal_sums` (n,). If `joint` is (k, n) and not (k, 0), write the log of weight times density of
    every component there.
    """
    given, count = columns.shape
    dimensions = given + moving.shape[0]
    components = log_norms.shape[0]
    block = np.zeros((dimensions, LANES))
    whitened = np.empty((whiteners.shape[0], LANES))
    block_joint, block_marginal = np.empty((components, LANES)), np.empty((components, LANES))
    squares, block_sums = np.empty(LANES), np.empty(LANES)
    largest, largest_marginal = np.empty(LANES), np.empty(LANES)
    exponents = np.empty(LANES, np.int64)
    for start in range(0, count, LANES):
        filled = min(LANES, count - start)
        for axis in range(given):
            limit = limits[axis]
            for lane in range(filled):
                value = columns[axis, start + lane]
                value = limit if value > limit else value
                block[axis, lane] = -limit if value < -limit else value
        followed = min(filled, count - 1 - start)
        for number in range(moving.shape[0]):
            axis, row = moving[number], given + number
            limit = limits[axis]
            for lane in range(followed):
                value = columns[axis, start + lane + 1]
                value = limit if value > limit else value
                value = -limit if value < -limit else value
                block[row, lane] = value - block[axis, lane]
            for lane in range(followed, filled):
                block[row, lane] = 0.0
        np.dot(whiteners, block, whitened)
        for lane in range(LANES):
            largest[lane] = largest_marginal[lane] = -np.inf
        for component in range(components):
            first = component * dimensions
            for lane in range(LANES):
                squares[lane] = 0.0
            if marginal:
                _add_squares(whitened, offsets, first, first + marginal, squares)
                _finish(squares, marginal_log_norms[component], block_marginal[component], largest_marginal)
            _add_squares(whitened, offsets, first + marginal, first + dimensions, squares)
            _finish(squares, log_norms[component], block_joint[component], largest)
        _log_sum(block_joint, largest, exponents, block_sums)
        for lane in range(filled):
            sums[start + lane] = block_sums[lane]
        if marginal:
            _log_sum(block_marginal, largest_marginal, exponents, block_sums)
            for lane in range(filled):
                marginal_sums[start + lane] = block_sums[lane]
        if joint.shape[1]:
            for component in range(components):
                for lane in range(filled):
                    joint[component, start + lane] = block_joint[component, lane]
