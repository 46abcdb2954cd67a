"""Trials of earlier runs whose raw files are gone: their numbers, from the CSV file beside the page.

Raw files are large and stay where they were made. The CSV file has a row for each trial and number of
episodes, with all that a table needs; a bench on another machine goes on from there. Curves need raw files.
"""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.versus.contestants import OURS
from benchmarks.versus.metrics import Metrics
from benchmarks.versus.raw import RawTrial, Task, code_digest
from policyfuzz.core.errors import CampaignError, UsageError

#: Columns before the metrics, for readers; and after them, JSON about the trial and how it was run.
FIRST, ORIGIN = ("target", "contestant", "seed"), "origin"


@dataclass(frozen=True, slots=True)
class KeptTrial:
    """The numbers of a trial."""

    task: Task
    known_regions: int  #: of the target, 0 where they are not known
    about: Mapping[str, Any]  #: as in a raw file
    metrics: Mapping[int, Metrics]  #: by the number of episodes


def origin_of(trial: RawTrial | KeptTrial) -> str:
    """What the last column says about a trial."""
    task = asdict(trial.task) | {"policy": None}  # which was a path on the machine that ran it
    facts = {"task": task, "known_regions": trial.known_regions, "about": dict(trial.about)}
    return json.dumps(facts, sort_keys=True)


def load(path: Path) -> list[KeptTrial]:
    """All trials in a CSV file."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(_trials(list(csv.DictReader(file))))
    except OSError as error:
        raise UsageError(f"cannot read the kept trials {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, csv.Error) as error:
        raise CampaignError(
            f"{path} holds no trials of the bench: {error!r}",
            "expected the CSV file that the bench writes beside its page",
        ) from error


def still_valid(kept: Sequence[KeptTrial], measured: Sequence[RawTrial]) -> list[KeptTrial]:
    """Those of `kept` that are not among the `measured`.

    Trials of the default with other code than now are left out on targets on which it was measured anew.
    """
    there = {(one.task.label, one.task.contestant, one.task.seed) for one in measured}
    anew = {one.task.label for one in measured if one.task.contestant == OURS}
    return [
        one
        for one in kept
        if (one.task.label, one.task.contestant, one.task.seed) not in there
        and not (one.task.contestant == OURS and is_outdated(one) and one.task.label in anew)
    ]


def is_outdated(trial: RawTrial | KeptTrial) -> bool:
    """True for the default as it was before our code has changed; only its row is about today's code."""
    return trial.task.contestant == OURS and trial.about.get("code") != code_digest()


def _trials(rows: Sequence[Mapping[str, str]]) -> Iterator[KeptTrial]:
    by_origin: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        by_origin.setdefault(row[ORIGIN], []).append(row)
    for origin, of_trial in by_origin.items():
        facts = json.loads(origin)
        metrics = [_metrics(row) for row in of_trial]
        task = Task(**facts["task"])
        yield KeptTrial(task, facts["known_regions"], facts["about"], {one.episodes: one for one in metrics})


def _metrics(row: Mapping[str, str]) -> Metrics:
    values: dict[str, Any] = {}
    for field in fields(Metrics):
        text, kind = row[field.name], str(field.type)
        values[field.name] = (
            None if not text and "None" in kind else (float if "float" in kind else int)(text)
        )
    return Metrics(**values)
