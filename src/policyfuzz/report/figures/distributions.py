"""How the findings of a campaign are spread: returns, depth beyond the threshold, and steps to the crash."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.report.figures.sample import FindingSample

#: Bars of a histogram at most.
_MOST_BARS = 40
#: Larger numbers are clipped: a range must be finite.
_LARGEST = 1e100
#: Values that differ by less than this share of their size are equal but for rounding.
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often values lie in each of k ranges."""

    label: str
    edges: tuple[float, ...]  #: (k + 1,) of the bars
    counts: tuple[int, ...]  #: (k,)
    missing: int  #: findings without a value
    findings: int  #: confirmed ones, of which these are some


def histograms(sample: FindingSample) -> list[Histogram]:
    """Of returns, severities and crash steps of the findings; none of what no finding has."""
    columns = {
        "return": sample.returns,
        "severity: depth beyond the threshold": -sample.margins,
        "step of the crash": sample.crash_steps.astype(np.float64),
    }
    made = [_histogram(label, values, sample.total) for label, values in columns.items()]
    return [one for one in made if sum(one.counts)]


def _histogram(label: str, values: NDArray[np.float64], findings: int) -> Histogram:
    known = np.clip(values[~np.isnan(values)], -_LARGEST, _LARGEST)
    if not len(known):
        return Histogram(label, (), (), len(values), findings)
    counts, edges = np.histogram(known, _edges(known))
    return Histogram(label, tuple(edges.tolist()), tuple(counts.tolist()), len(values) - len(known), findings)


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k + 1,) edges of bars for `values`; whole numbers get bars of whole width."""
    low, high = float(values.min()), float(values.max())
    size = max(abs(low), abs(high))
    if high - low <= _EQUAL * size or high == low:
        width = max(size / 100, 0.5)
        return np.array([low - width, high + width])
    if high - low <= _MOST_BARS and (values == np.rint(values)).all():
        return np.arange(low - 0.5, high + 1.0)
    bars = int(np.clip(np.ceil(2 * np.cbrt(len(values))), 5, _MOST_BARS))  # the rule of Rice
    return np.linspace(low, high, bars + 1)
