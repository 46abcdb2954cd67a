"""Numbers of one trial, counted from its raw file."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.versus.judge import Verdict
from benchmarks.versus.raw import RawTrial


@dataclass(frozen=True, slots=True)
class Metrics:
    """What a trial gave within its first `episodes`."""

    episodes: int
    episodes_run: int  #: of these; fewer where the contestant broke off by itself
    findings: int  #: valid, solvable, and they crash again
    distinct: int  #: of these, apart from all earlier ones by `diversity.RADII.distinct`
    apart: int  #: the same, far apart
    behaviours: int  #: of these, that behave differently from all earlier ones
    first: int | None  #: episodes when the first finding was made
    area: float  #: distinct findings on average over all episodes
    regions: int | None  #: crash regions with a finding, where the target's are known
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


def measure(trial: RawTrial, episodes: int | None = None) -> Metrics:
    """Count what `trial` gave, or what its first `episodes` did."""
    limit = trial.task.episodes if episodes is None else episodes
    within = trial.numbers <= limit
    found = within & (trial.verdicts == Verdict.FINDING)
    distinct = within & trial.distinct
    is_whole = limit >= trial.task.episodes
    return Metrics(
        episodes=limit,
        episodes_run=min(trial.episodes, limit),
        findings=int(found.sum()),
        distinct=int(distinct.sum()),
        apart=int((within & trial.apart).sum()),
        behaviours=int((within & trial.behaviour).sum()),
        first=int(trial.numbers[found][0]) if found.any() else None,
        area=float((limit - trial.numbers[distinct] + 1).sum() / limit),
        regions=len(np.unique(trial.regions[found])) if trial.known_regions else None,
        invalid=_count(trial, within, Verdict.INVALID),
        unsolvable=_count(trial, within, Verdict.UNSOLVABLE),
        not_reproduced=_count(trial, within, Verdict.NOT_REPRODUCED),
        repeated=_count(trial, within, Verdict.REPEATED),
        late=_count(trial, trial.numbers > limit, Verdict.LATE) if is_whole else 0,
        seconds=trial.seconds if is_whole else math.nan,
        cpu_seconds=trial.cpu_seconds if is_whole else math.nan,
        overhead=1 - trial.simulated_seconds / trial.seconds if is_whole else math.nan,
    )


def findings_over(trial: RawTrial, points: NDArray[np.float64], clock: str = "numbers") -> NDArray[np.int64]:
    """(p,) findings at `points` (p,) of a `clock`: "numbers" of episodes, or "cpu_times" in seconds."""
    return _counted(getattr(trial, clock)[trial.verdicts == Verdict.FINDING], points)


def distinct_over(trial: RawTrial, points: NDArray[np.float64], clock: str = "numbers") -> NDArray[np.int64]:
    """(p,) distinct findings at `points` (p,) of a `clock`."""
    return _counted(getattr(trial, clock)[trial.distinct], points)


def _counted(moments: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.searchsorted(np.sort(moments), points, side="right")


def _count(trial: RawTrial, within: NDArray[np.bool_], verdict: Verdict) -> int:
    return int((within & (trial.verdicts == verdict)).sum())
