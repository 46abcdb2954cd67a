"""Numbers of one trial, counted from its raw file."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.versus.diversity import RADII
from benchmarks.versus.judge import Verdict
from benchmarks.versus.raw import RawTrial
from benchmarks.versus.reference import ReferenceSet


@dataclass(frozen=True, slots=True)
class Covered:
    """When a trial came near each of the m random crashes of a reference set; `reference.NEVER` if not."""

    near: NDArray[np.int64]  #: (m,) episodes until a finding was within `Radii.near`
    far: NDArray[np.int64]  #: (m,) the same within `Radii.far`

    @classmethod
    def of(cls, trial: RawTrial, reference: ReferenceSet) -> "Covered":
        """What the findings of `trial` cover of `reference`."""
        found = trial.verdicts == Verdict.FINDING
        unit, numbers = trial.unit[found], trial.numbers[found]
        return cls(*(reference.first_covered(unit, numbers, radius) for radius in (RADII.near, RADII.far)))


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a trial gave within its first `episodes`; None where nobody knows."""

    episodes: int
    episodes_run: int  #: of these; fewer where the contestant broke off by itself
    mass_near: float | None  #: share of random crashes within `Radii.near` of a finding
    mass_far: float | None  #: the same within `Radii.far`
    findings: int  #: valid, solvable, and they crash again, each in an episode of its own
    distinct: int  #: of these, as campaigns count
    packed_close: int  #: of these, apart from all earlier ones by `Radii.close`
    packed_near: int  #: the same by `Radii.near`
    packed_far: int  #: the same by `Radii.far`
    behaviours: int  #: of these, that behave differently from all earlier ones
    courses: int | None  #: that differ in terrain, or in obstacles reached before the fall
    lineages: int | None  #: random draws that the findings descend from
    regions: int | None  #: crash regions with a finding, where the target's are known
    first: int | None  #: the episode of the first finding
    invalid: int  #: claims by what was wrong with them
    unsolvable: int
    not_reproduced: int
    repeated: int
    late: int
    seconds: float  #: of wall time; NaN where only a part of a trial is counted
    cpu_seconds: float
    #: Share of wall time that went neither into episodes nor into judging inputs; NaN if unknown.
    overhead: float

    @property
    def refused(self) -> int:
        """Claims that are no findings."""
        return self.invalid + self.unsolvable + self.not_reproduced + self.repeated + self.late

    @property
    def is_broken_off(self) -> bool:
        """True where the contestant ended before its episodes were used up."""
        return self.episodes_run < self.episodes

    @property
    def first_or_end(self) -> int:
        """Episodes to the first finding; all of them where there is none."""
        return self.episodes if self.first is None else self.first


def measure(trial: RawTrial, episodes: int | None = None, covered: Covered | None = None) -> Metrics:
    """Count what `trial` gave, or what its first `episodes` did; `covered` is all that it came near to."""
    limit = trial.task.episodes if episodes is None else episodes
    within = trial.numbers <= limit
    found = within & (trial.verdicts == Verdict.FINDING)
    is_whole = limit >= trial.task.episodes
    return Metrics(
        episodes=limit,
        episodes_run=min(trial.episodes, limit),
        mass_near=None if covered is None else float((covered.near <= limit).mean()),
        mass_far=None if covered is None else float((covered.far <= limit).mean()),
        findings=int(found.sum()),
        distinct=int((within & trial.distinct).sum()),
        packed_close=int((within & trial.close).sum()),
        packed_near=int((within & trial.near).sum()),
        packed_far=int((within & trial.far).sum()),
        behaviours=int((within & trial.behaviour).sum()),
        courses=_different(trial.courses[found]) if trial.has_courses else None,
        lineages=_different(trial.roots[found]) if trial.has_roots else None,
        regions=_different(trial.regions[found]) if trial.known_regions else None,
        first=int(trial.numbers[found][0]) if found.any() else None,
        invalid=_count(trial, within, Verdict.INVALID),
        unsolvable=_count(trial, within, Verdict.UNSOLVABLE),
        not_reproduced=_count(trial, within, Verdict.NOT_REPRODUCED),
        repeated=_count(trial, within, Verdict.REPEATED),
        late=_count(trial, trial.numbers > limit, Verdict.LATE) if is_whole else 0,
        seconds=trial.seconds if is_whole else math.nan,
        cpu_seconds=trial.cpu_seconds if is_whole else math.nan,
        overhead=1 - trial.simulated_seconds / trial.seconds if is_whole else math.nan,
    )


#: Gives the (c,) moments of a trial at which a curve steps up by one, of a clock.
Steps = Callable[[RawTrial, str], NDArray[np.float64]]


def _steps(flag: str) -> Steps:
    return lambda trial, clock: np.asarray(getattr(trial, clock)[getattr(trial, flag)], np.float64)


def _finding_steps(trial: RawTrial, clock: str) -> NDArray[np.float64]:
    return np.asarray(getattr(trial, clock)[trial.verdicts == Verdict.FINDING], np.float64)


#: What curves count. A clock is "numbers" of episodes, or "cpu_times" in seconds.
CURVES: Mapping[str, Steps] = {
    "findings": _finding_steps,
    "distinct": _steps("distinct"),
    "packed_close": _steps("close"),
    "packed_near": _steps("near"),
    "behaviours": _steps("behaviour"),
}


def curve(
    trial: RawTrial, name: str, points: NDArray[np.float64], clock: str = "numbers"
) -> NDArray[np.float64]:
    """(p,) one of CURVES at `points` (p,) of a `clock`."""
    return _counted(CURVES[name](trial, clock), points)


def mass_curve(covered: Covered, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """(p,) share of random crashes within `Radii.near` of a finding, at `points` (p,) of episodes."""
    return _counted(covered.near, points) / len(covered.near)


def _counted(
    moments: NDArray[np.float64] | NDArray[np.int64], points: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.searchsorted(np.sort(moments), points, side="right").astype(np.float64)


def _different(values: NDArray[np.uint64] | NDArray[np.int64]) -> int:
    return len(np.unique(values))


def _count(trial: RawTrial, within: NDArray[np.bool_], verdict: Verdict) -> int:
    return int((within & (trial.verdicts == verdict)).sum())
