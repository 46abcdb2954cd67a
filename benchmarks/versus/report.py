"""All that is made from raw files: pictures, CSV files and the page."""

import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.benchmarks.versus import csv_files, figures
from policyfuzz.benchmarks.versus.contestants import contestant_names
from policyfuzz.benchmarks.versus.freshness import PAIR
from policyfuzz.benchmarks.versus.goals import Goal, check
from policyfuzz.benchmarks.versus.page import BESIDE, beside, write_page
from policyfuzz.benchmarks.versus.results import Results
from policyfuzz.benchmarks.versus.targets import ENTRIES
from policyfuzz.core.errors import UsageError


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
) -> Report:
    """Write pictures and CSV files into the folder `out`, whose raw files they are made from, and the `page`.

    Goals about `targets` and `contestants` are told even where these did not run; on a page, all are.
    A page gets copies of what it shows beside it, so that it can go where the folder does not.
    """
    results = Results.load(out / "raw")
    if page is not None:
        targets, contestants = list(ENTRIES), contestant_names()
    report = Report(results, check(results, targets, contestants))
    csv_files.write_trials(results, out / "trials.csv")
    csv_files.write_curves(results, out / "curves.csv")
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
