"""Numbers as CSV files: one row per trial, and curves."""

import csv
import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.benchmarks.versus.metrics import Metrics, distinct_over, findings_over, measure
from policyfuzz.benchmarks.versus.results import Results
from policyfuzz.core.errors import CampaignError

#: Points of a curve.
POINTS = 100


def grid(episodes: int) -> NDArray[np.float64]:
    """(p,) numbers of episodes at which curves are drawn, 0 included."""
    return np.unique(np.linspace(0, episodes, POINTS + 1).round())


def write_trials(results: Results, path: Path) -> None:
    """Write the metrics of every trial, whole and at the episodes that slow peers had."""
    names = [field.name for field in dataclasses.fields(Metrics)]
    write_rows(path, ["target", "contestant", "seed", *names], _trial_rows(results, names))


def write_curves(results: Results, path: Path) -> None:
    """Write findings and distinct findings of every trial over its episodes."""
    heads = ["target", "contestant", "seed", "episodes", "findings", "distinct"]
    write_rows(path, heads, _curve_rows(results))


def write_rows(path: Path, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(heads)
            writer.writerows(rows)
    except OSError as error:
        raise CampaignError(f"cannot write {path}: {error.strerror or error}") from error


def _trial_rows(results: Results, names: list[str]) -> Iterable[list[Any]]:
    for trial in results.trials:
        task = trial.task
        contests = [one for one in results.contests(task.label) if one.find(task.contestant)]
        for episodes in sorted(contest.episodes for contest in contests):
            metrics = measure(trial, episodes)
            values = [getattr(metrics, name) for name in names]
            yield [task.label, task.contestant, task.seed, *("" if one is None else one for one in values)]


def _curve_rows(results: Results) -> Iterable[list[Any]]:
    for trial in results.trials:
        task = trial.task
        points = grid(task.episodes)
        counts = findings_over(trial, points).tolist(), distinct_over(trial, points).tolist()
        for episodes, findings, distinct in zip(points.astype(int).tolist(), *counts, strict=True):
            yield [task.label, task.contestant, task.seed, episodes, findings, distinct]
