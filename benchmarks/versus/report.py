"""All that is made from raw files: pictures, CSV files and the page."""

import csv
import shutil
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.versus import figures, reference
from benchmarks.versus.contestants import contestant_names
from benchmarks.versus.goals import Goal, check
from benchmarks.versus.kept import FIRST, ORIGIN, KeptTrial, origin_of
from benchmarks.versus.metrics import CURVES, Metrics, curve, mass_curve
from benchmarks.versus.page import BESIDE, beside, write_page
from benchmarks.versus.results import Results
from benchmarks.versus.tables import PAIR
from benchmarks.versus.targets import ENTRIES
from policyfuzz.core.errors import CampaignError, UsageError


@dataclass(frozen=True, slots=True)
class Report:
    """What the raw files say."""

    results: Results
    goals: list[Goal]


def write_report(
    out: Path,
    page: Path | None,
    notes: Path | None,
    targets: Collection[str] = (),
    contestants: Collection[str] = (),
    references: Path = reference.FOLDER,
    earlier: Sequence[KeptTrial] = (),
) -> Report:
    """Write pictures and CSV files into the folder `out`, whose raw files they are made from, and the `page`.

    Tables have the trials of `earlier` runs too, as far as they have no raw file.
    Goals about `targets` and `contestants` are listed even if these did not run; a page lists all goals.
    Failure mass is measured by the reference sets in the folder of `references`.
    A page gets copies of what it shows beside it, so that it can go where the folder does not.
    """
    results = Results.load(out / "raw", references, earlier)
    if page is not None:
        targets, contestants = list(ENTRIES), contestant_names()
    report = Report(results, check(results, targets, contestants))
    _write_trials(results, out / "trials.csv")
    _write_curves(results, out / "curves.csv")
    figures.draw_episodes(results, out / "episodes.png")
    figures.draw_time(results, PAIR, out / "time.png")
    if page is not None:
        text = _read(notes)
        write_page(results, report.goals, page, text)
        for name in BESIDE:
            if (out / name).exists():  # there are no curves over time without the strategies of the paper
                shutil.copyfile(out / name, beside(page, name))
    return report


def _read(notes: Path | None) -> str:
    if notes is None:
        return ""
    try:
        return notes.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read the notes {notes}: {error.strerror or error}") from error


def _write_trials(results: Results, path: Path) -> None:
    """Write the metrics of every trial, whole and at the episodes that slow peers had."""
    names = [field.name for field in fields(Metrics)]
    _write_rows(path, [*FIRST, *names, ORIGIN], _trial_rows(results, names))


def _write_curves(results: Results, path: Path) -> None:
    """Write what is drawn, of every trial over its episodes."""
    heads = [*FIRST, "episodes", *CURVES, "mass_near"]
    _write_rows(path, heads, _curve_rows(results))


def _write_rows(path: Path, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
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
            metrics = results.metrics(trial, episodes)
            if metrics is not None:
                values = [
                    "" if value is None else value for value in (getattr(metrics, name) for name in names)
                ]
                yield [task.label, task.contestant, task.seed, *values, origin_of(trial)]


def _curve_rows(results: Results) -> Iterable[list[Any]]:
    for trial in results.measured:
        task = trial.task
        points = figures.grid(task.episodes)
        curves = [curve(trial, name, points).astype(int).tolist() for name in CURVES]
        covered = results.covered(trial)
        mass = [""] * len(points) if covered is None else mass_curve(covered, points).tolist()
        for episodes, *values in zip(points.astype(int).tolist(), *curves, mass, strict=True):
            yield [task.label, task.contestant, task.seed, episodes, *values]
