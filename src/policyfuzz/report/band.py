"""The band that passing episodes stay in, and which numbers of another episode leave it, and when."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Share of passing episodes that stay inside from their start to their end.
INSIDE = 0.9
#: There is no band where fewer episodes than this still run, and less than this share of them.
_FEWEST, _RUNNING = 4, 1 / 3
#: The edges of most episodes at one time, before the band is made wide enough for whole episodes.
_EDGE = 0.05
#: A band that is narrow at some time is at least this share of its mean width.
_NARROWEST = 0.1
#: Differences below this, as a share of the numbers, are rounding.
_ROUNDING = 1e-9

#: Never left; the order of `Departures.steps` depends on it being negative.
NEVER = -1


@dataclass(frozen=True, slots=True)
class Departures:
    """When q numbers of an episode leave a band, up to a last step."""

    steps: NDArray[
        np.int64
    ]  #: (q,) since when it is outside for good; NEVER if it is inside at the last step
    depths: NDArray[
        np.float64
    ]  #: (q,) how far it was outside at most, in widths of the band; negative: inside

    @property
    def order(self) -> NDArray[np.int64]:
        """(q,) positions: what leaves for good, the first first; then what came farthest out, or near it."""
        is_gone = self.steps != NEVER
        return np.lexsort((-self.depths, np.where(is_gone, self.steps, 0), ~is_gone))


@dataclass(frozen=True, slots=True)
class Band:
    """The lower and upper edge of q numbers at t times; NaN where too few episodes still run.

    It is wide enough that nine of ten passing episodes stay inside all the time, number by number, so that
    leaving it once means something. Edges that hold nine of ten at each time are left by most episodes.
    """

    low: NDArray[np.float64]  #: (t, q)
    high: NDArray[np.float64]  #: (t, q)

    @classmethod
    def of(cls, passing: NDArray[np.float64]) -> "Band":
        """The band of `passing` episodes (n, t, q), NaN after their end."""
        is_known = np.isfinite(passing)
        counts = is_known.sum(axis=0)
        ordered = np.sort(np.where(is_known, passing, np.nan), axis=0)  # NaN comes last
        bottom, middle, top = (_ranked(ordered, counts, share) for share in (_EDGE, 0.5, 1 - _EDGE))
        enough = counts >= max(_FEWEST, _RUNNING * len(passing))
        below, above = (_width(part, enough) for part in (middle - bottom, top - middle))
        away = np.where(passing > middle, (passing - middle) / above, (middle - passing) / below)
        farthest = np.where(is_known & enough, away, 0.0).max(axis=1, initial=0.0)  # (n, q)
        factor = np.maximum(np.quantile(farthest, INSIDE, axis=0, method="higher"), 1.0)
        least = np.where(is_known, passing, np.inf).min(axis=(0, 1))
        most = np.where(is_known, passing, -np.inf).max(axis=(0, 1))
        return cls(
            np.where(enough, np.maximum(middle - factor * below, least), np.nan),
            np.where(enough, np.minimum(middle + factor * above, most), np.nan),
        )

    def departures(self, values: NDArray[np.float64], last: int) -> Departures:
        """When `values` (t', q) of an episode leave the band, up to and including step `last`."""
        time = min(last + 1, len(values), len(self.low))
        values, low, high = values[:time], self.low[:time], self.high[:time]
        outside = np.nan_to_num(np.maximum(values - high, low - values), nan=-np.inf)
        is_outside = outside > _ROUNDING * (1 + np.maximum(np.abs(low), np.abs(high)))
        # the first step after the last one inside, if there is any step left
        steps = time - np.cumprod(is_outside[::-1], axis=0).sum(axis=0)
        width = np.where(np.isfinite(high - low), high - low, 0.0).mean(axis=0) if time else np.zeros(0)
        depths = outside.max(axis=0, initial=-np.inf) / np.where(width > 0, width, 1.0)
        return Departures(np.where(steps < time, steps, NEVER), depths)


def _ranked(ordered: NDArray[np.float64], counts: NDArray[np.int64], share: float) -> NDArray[np.float64]:
    """(t, q) the value below which a `share` of the first `counts` (t, q) of `ordered` (n, t, q) lie."""
    place = np.rint(share * np.maximum(counts - 1, 0)).astype(np.int64)
    return np.asarray(np.take_along_axis(ordered, place[None], axis=0)[0])


def _width(part: NDArray[np.float64], enough: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(t, q) the half of a band, nowhere nearly zero."""
    known = np.where(enough, part, 0.0)
    mean = known.sum(axis=0) / np.maximum(enough.sum(axis=0), 1)
    return np.asarray(np.maximum(np.maximum(known, _NARROWEST * mean), np.finfo(np.float64).tiny))
