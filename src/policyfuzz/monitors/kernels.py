"""The compiled loops of detectors: one row, and rows one after another.

Nothing is fused or reordered (`exact_kernel`), so a row gets the same bits alone and in a batch. To be quick
all the same, inner loops run over sums that do not wait for each other: over axes, centres and components.
Whole numbers lie among the packed ones with their own bits.
"""

import math

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.compiled import exact_kernel

Numbers = NDArray[np.float64]


@exact_kernel
def linear(row: Numbers, packed: Numbers) -> float:
    """The sum of `row` weighted: bias and weights."""
    first, second, third, fourth = packed[0], 0.0, 0.0, 0.0
    whole = row.shape[0] // 4 * 4
    for place in range(0, whole, 4):
        first += packed[1 + place] * row[place]
        second += packed[2 + place] * row[place + 1]
        third += packed[3 + place] * row[place + 2]
        fourth += packed[4 + place] * row[place + 3]
    for place in range(whole, row.shape[0]):
        first += packed[1 + place] * row[place]
    return float((first + second) + (third + fourth))


@exact_kernel
def linear_rows(rows: Numbers, packed: Numbers) -> Numbers:
    """(n,) `linear` of each of `rows` (n, width)."""
    scores = np.empty(rows.shape[0])
    for row in range(rows.shape[0]):
        scores[row] = linear(rows[row], packed)
    return scores


@exact_kernel
def clusters(row: Numbers, packed: Numbers) -> float:
    """Distance of `row` to the nearest normal centre less that to the nearest abnormal one."""
    sizes = packed[:3].view(np.int64)
    axes, normal, abnormal = sizes[0], sizes[1], sizes[2]
    location = packed[3:]
    directions = location[row.shape[0] :]
    centres = directions[row.shape[0] * axes :]
    point = np.zeros(axes)
    _project(row, location, directions, point)
    score = _nearest(point, centres, normal) - _nearest(point, centres[normal * axes :], abnormal)
    total = 0.0
    for axis in range(axes):
        total += point[axis]
    return np.nan if math.isnan(total) else score


@exact_kernel
def clusters_rows(rows: Numbers, packed: Numbers) -> Numbers:
    """(n,) `clusters` of each of `rows` (n, width)."""
    scores = np.empty(rows.shape[0])
    for row in range(rows.shape[0]):
        scores[row] = clusters(rows[row], packed)
    return scores


@exact_kernel
def _project(row: Numbers, location: Numbers, directions: Numbers, point: Numbers) -> None:
    """Add the coordinates of `row` to `point` (d,); `directions` (width, d) lie one after another."""
    count, width = point.shape[0], row.shape[0]
    whole = width // 4 * 4
    for place in range(0, whole, 4):
        a, b = row[place] - location[place], row[place + 1] - location[place + 1]
        c, d = row[place + 2] - location[place + 2], row[place + 3] - location[place + 3]
        along = directions[place * count : (place + 4) * count]
        first, second, third, fourth = along[:count], along[count:], along[2 * count :], along[3 * count :]
        for axis in range(count):
            point[axis] += (first[axis] * a + second[axis] * b) + (third[axis] * c + fourth[axis] * d)
    for place in range(whole, width):
        away = row[place] - location[place]
        along = directions[place * count : (place + 1) * count]
        for axis in range(count):
            point[axis] += along[axis] * away


@exact_kernel
def _nearest(point: Numbers, centres: Numbers, count: int) -> float:
    """The distance of `point` (p,) to the nearest of `centres` (p, count), which lie one after another."""
    squares = np.zeros(count)
    for axis in range(point.shape[0]):
        along = centres[axis * count : (axis + 1) * count]
        for centre in range(count):
            away = point[axis] - along[centre]
            squares[centre] += away * away
    least = np.inf
    for centre in range(count):
        least = min(least, squares[centre])
    return math.sqrt(least)


@exact_kernel
def trees(row: Numbers, packed: Numbers) -> float:
    """The sum over trees: of each the leaf to which `row` leads."""
    words = packed.view(np.int64)
    count, depth = words[0], words[1]
    total = packed[2]
    roots = words[3:]
    nodes, numbers = roots[count:], packed[3 + count :]
    for tree in range(count):
        node = roots[tree]
        for _ in range(depth):
            # as scikit-learn compares
            is_right = not (np.float32(row[nodes[4 * node]]) <= numbers[4 * node + 3])
            node = nodes[4 * node + 1 + is_right]
        total += numbers[4 * node + 3]
    for place in range(row.shape[0]):
        if math.isnan(row[place]):
            total = np.nan
    return float(total)


@exact_kernel
def trees_rows(rows: Numbers, packed: Numbers) -> Numbers:
    """(n,) `trees` of each of `rows` (n, width)."""
    scores = np.empty(rows.shape[0])
    for row in range(rows.shape[0]):
        scores[row] = trees(rows[row], packed)
    return scores


@exact_kernel
def transitions(row: Numbers, previous: Numbers, packed: Numbers) -> float:
    """Minus the log of the density of `row` after the `previous` one."""
    sizes = packed[:3].view(np.int64)
    dimensions, moving_count, components = sizes[0], sizes[1], sizes[2]
    both = dimensions + moving_count
    location = packed[4:]
    directions = location[row.shape[0] :]
    limits = directions[row.shape[0] * dimensions :]
    resting = limits[dimensions:]
    moving = resting[dimensions : dimensions + moving_count].view(np.int64)
    log_norms = resting[dimensions + moving_count :]
    marginal_log_norms = log_norms[components:]
    offsets = marginal_log_norms[components:]
    whiteners = offsets[both * components :]
    point, now = np.zeros(both), np.zeros(dimensions)
    _project(previous, location, directions, point[:dimensions])
    _project(row, location, directions, now)
    penalty = 0.0
    for axis in range(dimensions):
        limit = limits[axis]
        # NaN passes both comparisons
        point[axis] = limit if point[axis] > limit else (-limit if point[axis] < -limit else point[axis])
        value = limit if now[axis] > limit else (-limit if now[axis] < -limit else now[axis])
        now[axis] = value - point[axis]
        penalty += resting[axis] * now[axis] * now[axis]
    for place in range(moving_count):
        point[dimensions + place] = now[moving[place]]
    # all components side by side
    total = both * components
    whitened = np.zeros(total)
    for place in range(both):
        # from its own axis on: above the diagonal there are zeros
        first, value = place * components, point[place]
        column = whiteners[place * total + first : (place + 1) * total]
        below = whitened[first:]
        for one in range(column.shape[0]):
            below[one] += column[one] * value
    squares, marginal = np.zeros(components), np.zeros(components)
    for axis in range(both):
        first = axis * components
        along, means = whitened[first : first + components], offsets[first : first + components]
        for component in range(components):
            value = along[component] - means[component]
            squares[component] += value * value
        if axis == dimensions - 1:
            for component in range(components):
                marginal[component] = marginal_log_norms[component] - 0.5 * squares[component]
    for component in range(components):
        squares[component] = log_norms[component] - 0.5 * squares[component]
    return float(_log_sum(marginal) - _log_sum(squares) + penalty - packed[3])


@exact_kernel
def transitions_rows(rows: Numbers, previous: Numbers, packed: Numbers) -> Numbers:
    """(n,) `transitions` of each of `rows` (n, width) after those of `previous` (n, width)."""
    scores = np.empty(rows.shape[0])
    for row in range(rows.shape[0]):
        scores[row] = transitions(rows[row], previous[row], packed)
    return scores


@exact_kernel
def _log_sum(logs: Numbers) -> float:
    """The log of the sum of exp(`logs`)."""
    largest = logs[0]
    for one in logs:
        largest = one if one > largest else largest
    total = 0.0
    for one in logs:
        total += math.exp(one - largest)
    return float(largest + math.log(total))
