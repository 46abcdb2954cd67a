"""A campaign as plain tables and totals: CSV, JSON or NPZ."""

import csv
import json
import math
import zipfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from policyfuzz.core.errors import CampaignError
from policyfuzz.report.outside import own_crashes_of
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress


def totals(campaign: CampaignReader, progress: Progress, stop_reason: str | None) -> dict[str, Any]:
    """The totals that matter, for programs."""
    config = campaign.config
    return {
        "target": config.target,
        "policy": config.policy,
        "strategy": config.strategy,
        "seed": config.seed,
        "executions": progress.executions,
        "findings": progress.findings,
        "distinct_findings": progress.distinct_findings,
        "imported_findings": progress.imported_findings,
        "flaky_findings": progress.flaky,
        "unconfirmed_findings": progress.unconfirmed,
        "completed": progress.completed,
        "errors": progress.errors,
        "hangs": progress.hangs,
        "simulator_crashes": progress.simulator_crashes,
        "workers": progress.workers,
        "workers_ready": progress.workers_ready,
        "utilisation": progress.utilisation,
        "restarts": progress.restarts,
        "valid_rate": progress.valid_rate,
        "seconds": progress.seconds,
        "executions_per_second": progress.executions_per_second,
        "time_split": progress.time_split,
        "samples": progress.samples,
        "sample_crashes": progress.sample_crashes,
        "failure_probability": asdict(
            FailureProbability.of_campaigns([progress], campaign.is_solvability_tested)
        ),
        "own_reset": own_crashes_of(campaign),
        "corpus": progress.corpus,
        "stop_reason": stop_reason,
        "campaign": str(campaign.folder),
    }


_TABLES = {"findings": "findings", "errors": "errors", "seeds": "seeds", "history": "batches"}


@dataclass(frozen=True, slots=True)
class Table:
    """Column names, and rows that are read as they are needed."""

    columns: list[str]
    rows: Iterable[list[Any]]
    count: int  #: of the rows


def table_of(campaign: CampaignReader, what: str) -> Table:
    """The findings, errors, seeds or history of `campaign`; input columns carry their unit."""
    name = _TABLES[what]
    units = {
        str(dimension["column"]): f"{dimension['name']} [{dimension['unit']}]"
        for dimension in campaign.dimensions
        if dimension["unit"]
    }
    columns = [units.get(column, column) for column in campaign.columns(name)]
    rows = (list(row.values()) for row in campaign.iterate(name))
    return Table(columns, rows, campaign.count(name))


def write_table(table: Table, form: str, path: Path) -> int:
    """Write `table` as csv, json or npz; return the number of rows."""
    try:
        if form == "csv":
            return _write_csv(table, path)
        rows = list(table.rows)
        if form == "json":
            listing = [dict(zip(table.columns, map(_finite, row), strict=True)) for row in rows]
            path.write_text(json.dumps(listing, indent=1, allow_nan=False))
        else:
            _write_npz(table.columns, rows, path)
        return len(rows)
    except OSError as error:
        raise CampaignError(f"cannot write {path}: {error.strerror}") from error


def _finite(value: Any) -> Any:
    """`value`, or None where it is a number that JSON does not know."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_csv(table: Table, path: Path) -> int:
    count = 0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        for count, row in enumerate(table.rows, start=1):  # noqa: B007 - the count is the result
            writer.writerow(row)
    return count


def _write_npz(columns: list[str], rows: list[list[Any]], path: Path) -> None:
    values = zip(*rows, strict=True) if rows else iter([()] * len(columns))
    arrays = {name: _array(list(column)) for name, column in zip(columns, values, strict=True)}
    # written by hand: numpy.savez takes names as keywords, and a column may be named like its parameter
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def _array(values: list[Any]) -> Any:
    """Numbers with NaN for what is missing, or text."""
    if any(isinstance(value, str) for value in values):
        return np.array(values, np.str_)
    if any(value is None or isinstance(value, float) for value in values):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return np.array(values, np.int64)
