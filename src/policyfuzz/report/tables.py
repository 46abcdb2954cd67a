"""A campaign as plain tables and totals: CSV, JSON or NPZ."""

import csv
import json
import math
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.whole_file import whole_file
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
        "lineages": progress.lineages,
        "repeats": progress.repeats,
        "lucky_findings": progress.lucky,
        "findings_in_trial": progress.in_trial,
        "unsolved_crashes": progress.unsolved,
        "case_seed": campaign.about.get("case_seed"),
        "references": config.references.splitlines(),
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


#: Rows that become columns at once.
_CHUNK = 1000
_TABLES = {"findings": "findings", "errors": "errors", "seeds": "seeds", "history": "batches"}


@dataclass(frozen=True, slots=True)
class Table:
    """Column names, and rows that are read as they are needed."""

    columns: list[str]
    rows: Iterable[Sequence[Any]]
    count: int  #: of the rows, if none were removed


def table_of(campaign: CampaignReader, what: str) -> Table:
    """The findings, errors, seeds or history of `campaign`; input columns carry their unit."""
    name = _TABLES[what]
    units = {
        str(dimension["column"]): f"{dimension['name']} [{dimension['unit']}]"
        for dimension in campaign.dimensions
        if dimension["unit"]
    }
    columns = [units.get(column, column) for column in campaign.columns(name)]
    rows = (row for page in campaign.pages(name) for row in page)
    first, last = next(iter(campaign.select(name, most=1)), None), campaign.last_number(name)
    count = 0 if first is None or last is None else last - int(next(iter(first.values()))) + 1
    return Table(columns, rows, count)


def write_table(table: Table, form: str, path: Path) -> int:
    """Write `table` as csv, json or npz, row by row; return the number of rows.

    The file appears when it is complete.
    """
    writers = {"csv": _write_csv, "json": _write_json, "npz": _write_npz}
    with whole_file(path) as unfinished:
        return writers[form](table, unfinished)


def _write_csv(table: Table, path: Path) -> int:
    count = 0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        for count, row in enumerate(table.rows, start=1):  # noqa: B007 - the count is the result
            writer.writerow(row)
    return count


def _write_json(table: Table, path: Path) -> int:
    """A list of objects, one per line."""
    count = 0
    with path.open("w") as file:
        file.write("[")
        for count, row in enumerate(table.rows, start=1):
            values = dict(zip(table.columns, map(_finite, row), strict=True))
            file.write(f"{',' if count > 1 else ''}\n {json.dumps(values, allow_nan=False)}")
        file.write("\n]\n")
    return count


def _finite(value: Any) -> Any:
    """`value`, or None where it is a number that JSON does not know."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, slots=True)
class _Part:
    """Consecutive values of a column in a spool file."""

    start: int  #: where its bytes begin
    dtype: np.dtype[Any] | None  #: None: all values are missing, and there are no bytes
    count: int


def _write_npz(table: Table, path: Path) -> int:
    """Rows become columns by way of a spool file, so that no column is held as a whole."""
    parts: list[list[_Part]] = [[] for _ in table.columns]
    rows, count = iter(table.rows), 0
    # beside the file, where there is room for it; a device has no room beside it
    with tempfile.TemporaryFile(dir=None if path.exists() else path.parent) as spool:
        while chunk := list(islice(rows, _CHUNK)):
            count += len(chunk)
            for column, values in zip(parts, zip(*chunk, strict=True), strict=True):
                array = _array(values)
                column.append(_Part(spool.tell(), None if array is None else array.dtype, len(values)))
                spool.write(b"" if array is None else array.tobytes())
        # written by hand: numpy.savez takes names as keywords, and a column may be named like its parameter
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, column in zip(table.columns, parts, strict=True):
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    _write_column(file, spool, column, count)
    return count


def _write_column(file: IO[bytes], spool: IO[bytes], parts: Sequence[_Part], count: int) -> None:
    """Write a column as an array: numbers with NaN for what is missing, or text."""
    kinds = {part.dtype for part in parts if part.dtype is not None}
    has_gaps = any(part.dtype is None for part in parts)
    gap = np.array("None" if any(kind.kind == "U" for kind in kinds) else math.nan)
    dtype = np.result_type(*kinds, *([gap] if has_gaps else [])) if kinds or has_gaps else np.dtype(np.int64)
    if dtype.kind == "f":
        dtype = np.dtype(np.float64)
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (count,)}
    np.lib.format.write_array_header_1_0(file, header)
    for part in parts:
        if part.dtype is None:
            array = np.full(part.count, gap)
        else:
            spool.seek(part.start)
            array = np.frombuffer(spool.read(part.count * part.dtype.itemsize), part.dtype)
        file.write(array.astype(dtype).tobytes())


def _array(values: Sequence[Any]) -> NDArray[Any] | None:
    """Numbers with NaN for what is missing, or text; None if all are missing."""
    if all(value is None for value in values):
        return None
    if any(isinstance(value, str) for value in values):
        return np.array(values, np.str_)
    if any(value is None or isinstance(value, float) for value in values):
        return np.array([np.nan if value is None else value for value in values], np.float64)
    return np.array(values, np.int64)
