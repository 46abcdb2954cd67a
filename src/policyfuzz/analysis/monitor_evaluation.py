"""How good the scores of a monitor are: episodes, lineages, leads and alarms, not frames."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.analysis.monitor_episodes import NONE, Episodes
from policyfuzz.core.intervals import exact_interval
from policyfuzz.monitors.detectors import Detector
from policyfuzz.store.monitor_record import MOST_LEADS, MOST_POINTS, Auc, Count, CrashWarnings, Curve

#: Lineages below which an AUC means nothing.
LEAST_LINEAGES = 10
#: Times that lines are drawn again for an interval.
_RESAMPLES = 1000


def frame_scores(detector: Detector, given: str, episodes: Episodes) -> NDArray[np.float64]:
    """(f,) the score of every frame of `episodes`; NaN, which is an alarm, counts as infinite."""
    rows = np.ascontiguousarray(episodes.frames[given], np.float64)
    if not len(rows):
        return np.empty(0)
    scores = detector.scores(rows, np.concatenate([rows[:1], rows[:-1]]))
    scores = np.where(np.isnan(scores), np.inf, scores)
    if detector.needs_previous:
        scores[episodes.starts[:-1][_has_frames(episodes)]] = -np.inf  # no way leads to the first
    return scores


def episode_scores(scores: NDArray[np.float64], episodes: Episodes, lead: int = 1) -> NDArray[np.float64]:
    """(n,) the largest score of each episode, of crashes up to `lead` steps before; -inf if there is none."""
    found = np.full(len(episodes), -np.inf)
    has_frames = _has_frames(episodes)
    if has_frames.any():
        known = np.where(episodes.leads >= lead, scores, -np.inf)
        found[has_frames] = np.maximum.reduceat(known, episodes.starts[:-1][has_frames])
    return found


def first_alarms(scores: NDArray[np.float64], episodes: Episodes, threshold: float) -> NDArray[np.int64]:
    """(n,) the decision at which each episode has its first score above `threshold`, NONE without one."""
    never = np.iinfo(np.int64).max
    first = np.full(len(episodes), never)
    has_frames = _has_frames(episodes)
    if has_frames.any():
        steps = np.where(scores > threshold, episodes.steps, never)
        first[has_frames] = np.minimum.reduceat(steps, episodes.starts[:-1][has_frames])
    return np.where(first == never, NONE, first)


def _has_frames(episodes: Episodes) -> NDArray[np.bool_]:
    """(n,) False for crashes before the first decision."""
    return np.diff(episodes.starts) > 0


def lineage_auc(
    crashes: NDArray[np.float64],
    lineages: NDArray[np.uint64],
    passing: NDArray[np.float64],
    rng: np.random.Generator,
) -> Auc:
    """How often scores of `crashes` (n,) exceed those of `passing` ones (m,), mean over `lineages` (n,)."""
    if not len(crashes) or not len(passing):
        return Auc()
    ordered = np.sort(passing)
    below = np.searchsorted(ordered, crashes, "left")
    not_above = np.searchsorted(ordered, crashes, "right")
    wins = (below + not_above) / (2 * len(passing))
    _, places = np.unique(lineages, return_inverse=True)
    means = np.bincount(places, wins) / np.bincount(places)
    drawn = means[rng.integers(0, len(means), (_RESAMPLES, len(means)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Auc(float(means.mean()), float(low), float(high))


def roc_curve(
    negatives: str,
    crashes: NDArray[np.float64],
    lineages: NDArray[np.uint64],
    passing: NDArray[np.float64],
) -> Curve:
    """The curve whose area is `lineage_auc`, at some points."""
    _, places, counts = np.unique(lineages, return_inverse=True, return_counts=True)
    weights = 1 / counts[places] / len(counts)
    levels = np.unique(np.concatenate([crashes, passing]))[::-1]
    if len(levels) > MOST_POINTS - 2:
        # evenly along the curve, which is where the levels of both kinds lie
        levels = levels[np.linspace(0, len(levels) - 1, MOST_POINTS - 2).astype(np.int64)]
    false_alarms = [0.0, *((passing >= level).mean() for level in levels), 1.0]
    detected = [0.0, *(weights[crashes >= level].sum() for level in levels), 1.0]
    return Curve(negatives, tuple(map(float, false_alarms)), tuple(min(1.0, float(one)) for one in detected))


@dataclass(frozen=True, slots=True)
class Threshold:
    """A level for alarms, and what it was calibrated on."""

    value: float
    calibration: Count
    is_promised: bool  #: the interval of the rate lies below what was wanted


def calibrated(nominal: NDArray[np.float64], wanted_rate: float) -> Threshold:
    """The lowest threshold at which the rate of false alarms is below `wanted_rate` with 97.5 % confidence.

    `nominal` (n,) are scores of nominal episodes. With too few of them for that, it is their largest score.
    """
    ordered = np.sort(nominal)[::-1]
    alarms = 0
    while alarms + 1 < len(ordered) and exact_interval(alarms + 1, len(ordered))[1] <= wanted_rate:
        alarms += 1
    while alarms > 0 and ordered[alarms] == ordered[alarms - 1]:
        alarms -= 1  # equal scores are alarms together
    value = float(ordered[alarms]) if len(ordered) else math.inf
    if not math.isfinite(value):
        value = math.copysign(1e300, value)
    count = counted(int((ordered > value).sum()), len(ordered))  # infinite scores are alarms
    return Threshold(value, count, count.high <= wanted_rate)


def counted(count: int, of: int) -> Count:
    """So many of so many with their interval."""
    return Count(int(count), int(of), *exact_interval(int(count), int(of)))


def warnings_of(
    alarms: NDArray[np.int64],
    crash_steps: NDArray[np.int64],
    last_chances: NDArray[np.int64],
    lead: int,
) -> CrashWarnings:
    """Which of n crashes had their first of `alarms` (n,) at least `lead` steps ahead."""
    is_warned = alarms != NONE
    leads = np.where(is_warned, crash_steps - alarms, 0)
    is_known = last_chances != NONE
    ahead = np.where(is_warned, last_chances - alarms, -np.maximum(crash_steps, 1))[is_known]
    total = len(alarms)
    return CrashWarnings(
        counted(int((leads >= lead).sum()), total),
        counted(int(is_warned.sum()), total),
        _some(leads),
        counted(int((ahead >= 0).sum()), int(is_known.sum())),
        _some(ahead),
    )


def _some(values: NDArray[np.int64]) -> tuple[int, ...]:
    places = np.linspace(0, len(values) - 1, min(len(values), MOST_LEADS)).astype(np.int64)
    return tuple(values[places].tolist())
