"""All trials of a bench, ordered and compared."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from benchmarks.versus import kept, raw, reference
from benchmarks.versus.contestants import contestant_names, is_own
from benchmarks.versus.kept import KeptTrial
from benchmarks.versus.metrics import Covered, Metrics, measure
from benchmarks.versus.raw import RawTrial
from benchmarks.versus.reference import ReferenceSet
from benchmarks.versus.targets import ENTRIES
from policyfuzz.core.errors import CampaignError

#: Resamples of a bootstrap, and the seed of their draws: the same numbers give the same interval.
_RESAMPLES, _SEED = 10_000, 7
#: Two-sided, in per cent.
_INTERVAL = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(values: NDArray[np.float64]) -> "Mean":
        """The mean of `values` (n,), n > 0."""
        low, high = bootstrap(values[:, None])
        return Mean(float(values.mean()), float(low[0]), float(high[0]))


@dataclass(frozen=True, slots=True)
class Comparison:
    """How values of one group compare with those of another."""

    ratio: float  #: of the means; NaN where both are zero
    a12: float  #: Vargha and Delaney's: chance that one of the first is larger, ties count half
    p: float  #: of the Mann-Whitney U test, two-sided

    @property
    def is_above(self) -> bool:
        """True where the first group is larger beyond chance."""
        return self.a12 > 0.5 and self.p < 0.05

    @property
    def is_below(self) -> bool:
        """True where the first group is smaller beyond chance."""
        return self.a12 < 0.5 and self.p < 0.05


@dataclass(frozen=True, slots=True)
class Group:
    """One contestant on one target, all seeds, within the same number of episodes."""

    contestant: str
    metrics: tuple[Metrics, ...]

    @property
    def broken_off(self) -> list[Metrics]:
        """Those of trials that the contestant itself ended too early."""
        return [one for one in self.metrics if one.is_broken_off]

    def values(self, name: str) -> NDArray[np.float64]:
        """(n,) one metric of every trial, NaN where nobody knows it."""
        values = (getattr(one, name) for one in self.metrics)
        return np.array([math.nan if value is None else value for value in values], np.float64)

    def knows(self, name: str) -> bool:
        """True if the metric is known of every trial."""
        return bool(self.metrics) and not np.isnan(self.values(name)).any()

    def mean(self, name: str) -> Mean:
        """The mean of one metric."""
        return Mean.of(self.values(name))

    def total(self, name: str) -> int:
        """The sum of a count over all trials."""
        return int(self.values(name).sum())

    def versus(self, other: "Group", name: str) -> Comparison:
        """How this group compares with another in one metric."""
        return compare(self.values(name), other.values(name))


@dataclass(frozen=True, slots=True)
class Contest:
    """All contestants on one target, within the same number of episodes."""

    label: str
    episodes: int
    groups: tuple[Group, ...]
    known_regions: int = 0

    def find(self, contestant: str) -> Group | None:
        """The group of `contestant`, if it took part."""
        return next((group for group in self.groups if group.contestant == contestant), None)


class Results:
    """Trials by target and contestant."""

    def __init__(
        self,
        trials: Iterable[RawTrial | KeptTrial],
        failures: dict[tuple[str, str], str] | None = None,
        references: Mapping[str, ReferenceSet] | None = None,
    ) -> None:
        self.trials = sorted(trials, key=_place)
        self.failures = failures or {}  #: why trials are missing, by target and contestant
        self.references = references or {}  #: random crashes by target, where there are any
        self._check()
        self._covered = {
            trial.task: Covered.of(trial, self.references[trial.task.label])
            for trial in self.trials
            if isinstance(trial, RawTrial) and trial.task.label in self.references
        }

    @classmethod
    def load(
        cls, folder: Path, references: Path = reference.FOLDER, earlier: Sequence[KeptTrial] = ()
    ) -> "Results":
        """What lies in a folder of raw files, with the sets in the folder of `references`.

        Trials that have no raw file there come from `earlier` runs.
        """
        measured = list(raw.load_all(folder))
        trials: list[RawTrial | KeptTrial] = [*measured, *kept.still_valid(earlier, measured)]
        if not trials:
            raise CampaignError(
                f"no raw files in {folder}", "run the bench first, or give its folder with -o"
            )
        known = {label: reference.find(label, references) for label in {one.task.label for one in trials}}
        sets = {label: one for label, one in known.items() if one is not None}
        return cls(trials, raw.failures(folder), sets)

    def _check(self) -> None:
        """Refuse trials of a target that were judged by different rules, or by others than its reference."""
        first: dict[str, raw.Task] = {}
        for task in (trial.task for trial in self.trials):
            if (other := first.setdefault(task.label, task)).judged_by != task.judged_by:
                raise CampaignError(
                    f"trials of {other.contestant} and {task.contestant} on {task.label} were judged by"
                    " different rules",
                    "delete those of the older rules, and run the bench again",
                )
        for label, task in first.items():
            if label in self.references:
                self.references[label].check(task)

    def covered(self, trial: RawTrial) -> Covered | None:
        """When `trial` came near the random crashes of its target; None where there is no reference set."""
        return self._covered.get(trial.task)

    @cached_property
    def labels(self) -> list[str]:
        """All targets, in order."""
        return list(dict.fromkeys(trial.task.label for trial in self.trials))

    @cached_property
    def contestants(self) -> list[str]:
        """All contestants, in order."""
        names = {trial.task.contestant for trial in self.trials}
        return sorted(names, key=_rank(contestant_names()))

    @cached_property
    def _groups(self) -> dict[tuple[str, str], list[RawTrial | KeptTrial]]:
        found: dict[tuple[str, str], list[RawTrial | KeptTrial]] = {}
        for trial in self.trials:
            found.setdefault((trial.task.label, trial.task.contestant), []).append(trial)
        return found

    @property
    def measured(self) -> list[RawTrial]:
        """Trials with a raw file, in order."""
        return [trial for trial in self.trials if isinstance(trial, RawTrial)]

    def drawn(self, label: str, contestant: str) -> list[RawTrial]:
        """Trials of `contestant` on a target that curves can be drawn of."""
        return [trial for trial in self.of(label, contestant) if isinstance(trial, RawTrial)]

    def of(self, label: str, contestant: str) -> list[RawTrial | KeptTrial]:
        """All trials of `contestant` on a target, which have the same number of episodes."""
        found = self._groups.get((label, contestant), [])
        lengths = sorted({trial.task.episodes for trial in found})
        if len(lengths) > 1:
            raise CampaignError(
                f"trials of {contestant} on {label} have {' and '.join(map(str, lengths))} episodes",
                "delete those that are not wanted, and run the bench again",
            )
        return found

    def length(self, label: str, contestant: str) -> int:
        """Episodes that `contestant` had on a target, 0 where it has no trial."""
        return max((trial.task.episodes for trial in self.of(label, contestant)), default=0)

    def contests(self, label: str) -> list[Contest]:
        """The contest over all episodes of a target, then that over what slow peers had, where it is less."""
        lengths = {self.length(label, name) for name in self.contestants} - {0}
        return [self.contest(label, length) for length in sorted(lengths, reverse=True)]

    def contest(self, label: str, episodes: int) -> Contest:
        """The contest of all that had `episodes` on a target.

        Longer trials of our strategies count up to there; a peer plans for the episodes that it is given.
        """
        names = [
            name
            for name in self.contestants
            if self.length(label, name) == episodes or (is_own(name) and self.length(label, name) > episodes)
        ]
        measured = {name: [self.metrics(trial, episodes) for trial in self.of(label, name)] for name in names}
        known_metrics = {name: tuple(filter(None, found)) for name, found in measured.items()}
        groups = tuple(Group(name, found) for name, found in known_metrics.items() if found)
        known = max((trial.known_regions for trial in self.trials if trial.task.label == label), default=0)
        return Contest(label, episodes, groups, known)

    def metrics(self, trial: RawTrial | KeptTrial, episodes: int) -> Metrics | None:
        """What `trial` gave within so many `episodes`; None where nobody kept that."""
        if isinstance(trial, KeptTrial):
            return trial.metrics.get(episodes)
        return measure(trial, episodes, self.covered(trial))


def compare(first: NDArray[np.float64], second: NDArray[np.float64]) -> Comparison:
    """Compare `first` (n,) with `second` (m,)."""
    if np.ptp(np.concatenate([first, second])) == 0:  # the test has no variance to work with
        return Comparison(ratio_of_means(first, second), 0.5, 1.0)
    test = mannwhitneyu(first, second, alternative="two-sided")
    a12 = float(test.statistic) / (len(first) * len(second))
    return Comparison(ratio_of_means(first, second), a12, float(test.pvalue))


def ratio_of_means(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Mean of `first` over that of `second`: infinite where only the latter is 0, NaN where both are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.float64(first.mean()) / np.float64(second.mean()))


def bootstrap(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends (p,) and (p,) of 95 % percentile intervals of the means of `values` (n, p) over n trials."""
    low, high = np.percentile(_weights(len(values)) @ values, _INTERVAL, axis=0)
    return low, high


@cache
def _weights(count: int) -> NDArray[np.float64]:
    """(resamples, count) share of each of so many trials in every resample, all that a mean depends on."""
    rng = np.random.default_rng(_SEED)
    return rng.multinomial(count, np.full(count, 1 / count), _RESAMPLES) / count


def _place(trial: RawTrial | KeptTrial) -> tuple[tuple[int, str], tuple[int, str], int]:
    task = trial.task
    return _rank(tuple(ENTRIES))(task.label), _rank(contestant_names())(task.contestant), task.seed


def _rank(known: Sequence[str]) -> Callable[[str], tuple[int, str]]:
    """Sorts names as in `known`, others behind them."""
    return lambda name: (known.index(name) if name in known else len(known), name)
