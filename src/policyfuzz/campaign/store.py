"""A campaign on disk: a folder with one SQLite file, one writer, any number of readers."""

import dataclasses
import json
import os
import platform
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout
from numpy.typing import NDArray

from policyfuzz.campaign import schema
from policyfuzz.campaign.config import CampaignConfig
from policyfuzz.campaign.records import BatchRecord, Finding, Progress
from policyfuzz.errors import CampaignError
from policyfuzz.inputs import InputSpace
from policyfuzz.search.corpus import COLUMNS, Corpus

_VERSIONS_OF = ("policyfuzz", "numpy", "scipy", "numba")


class CampaignReader:
    """Reads a campaign; another process may be writing it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._connection = _open(_file_in(folder), "ro")
        try:
            self._read_facts()
        except BaseException:
            self._connection.close()
            raise

    def _read_facts(self) -> None:
        with self._reading():
            _check_format(self._connection, self.folder)
            self.about: dict[str, str] = dict(self._connection.execute("SELECT name, value FROM about"))
            self.dimensions: list[dict[str, Any]] = self.rows("dimensions")
            try:
                self.config = CampaignConfig.from_json(self.about["config"])
            except (KeyError, TypeError, ValueError) as error:
                raise CampaignError(f"the configuration in {self.folder} cannot be read: {error}") from error

    def rows(self, table: str) -> list[dict[str, Any]]:
        """All rows of `table` by column name, in order."""
        return list(self.iterate(table))

    def count(self, table: str) -> int:
        """How many rows `table` has."""
        with self._reading():
            return int(self._connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])

    def iterate(self, table: str, where: str = "1") -> Iterator[dict[str, Any]]:
        """The rows of `table` for which `where` holds by column name, one by one."""
        with self._reading():
            cursor = self._connection.execute(f"SELECT * FROM {table} WHERE {where} ORDER BY 1")
            names = [column[0] for column in cursor.description]
            for row in cursor:
                yield dict(zip(names, row, strict=True))

    def columns(self, table: str) -> list[str]:
        """Column names of `table`."""
        with self._reading():
            cursor = self._connection.execute(f"SELECT * FROM {table} LIMIT 0")
            return [column[0] for column in cursor.description]

    def progress(self) -> Progress:
        """Totals after the last batch."""
        with self._reading():
            cursor = self._connection.execute("SELECT * FROM batches ORDER BY id DESC LIMIT 1")
            row = cursor.fetchone()
            return Progress() if row is None else _progress(row)

    def findings(self) -> list[Finding]:
        """All findings in the order of discovery."""
        columns = [str(dimension["column"]) for dimension in self.dimensions]
        return [_finding(row, columns) for row in self.iterate("findings")]

    def finding(self, number: int) -> Finding:
        """The finding called `number`."""
        columns = [str(dimension["column"]) for dimension in self.dimensions]
        for row in self.iterate("findings", where=f"id = {int(number)}"):
            return _finding(row, columns)
        count = self.count("findings")
        raise CampaignError(
            f"no finding {number} in {self.folder}",
            hint=f"there are findings 1 to {count}" if count else "the campaign has found nothing yet",
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """What the search needs to go on, as of the last batch."""
        with self._reading():
            return {
                name: np.frombuffer(data, dtype).reshape(json.loads(shape)).copy()
                for name, dtype, shape, data in self._connection.execute(
                    "SELECT name, dtype, shape, data FROM state"
                )
            }

    def corpus(self) -> Corpus:
        """The corpus as of the last batch."""
        columns = [str(dimension["column"]) for dimension in self.dimensions]
        names = ", ".join(schema.quoted(name) for name in [*COLUMNS, *columns])
        with self._reading():
            rows = self._connection.execute(f"SELECT {names} FROM seeds ORDER BY id").fetchall()
        corpus = Corpus(len(columns))
        if rows:
            table = np.array(rows, np.float64)  # NULL becomes NaN
            parents = np.where(np.isnan(table[:, 0]), -1, table[:, 0])
            values = dict(zip(COLUMNS, [parents, *table[:, 1 : len(COLUMNS)].T], strict=True))
            corpus.append(table[:, len(COLUMNS) :], values)
        return corpus

    def close(self) -> None:
        """Release the file."""
        self._connection.close()

    def __del__(self) -> None:
        # readers are often thrown away; a connection that is not closed would be warned about
        if hasattr(self, "_connection"):
            self._connection.close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise CampaignError(
                f"cannot read {self.folder / schema.FILE_NAME}: {error}",
                hint="the file is damaged or is not a campaign",
            ) from error


class CampaignWriter(CampaignReader):
    """The one writer of a campaign. Every batch is one transaction."""

    def __init__(self, folder: Path, lock: BaseFileLock | None = None) -> None:
        _file_in(folder)
        self._lock = lock or _lock(folder)
        try:
            super().__init__(folder)
            self._connection.close()
            self._connection = _open(_file_in(folder), "rw")
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def create(cls, folder: Path, config: CampaignConfig, space: InputSpace) -> "CampaignWriter":
        """Start a new campaign in `folder`, which must not hold one."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CampaignError(f"cannot make folder {folder}: {error.strerror}") from error
        lock = _lock(folder)
        try:
            if (folder / schema.FILE_NAME).exists():
                raise CampaignError(
                    f"{folder} already holds a campaign",
                    hint="add --resume to continue it, or choose another folder with -o",
                )
            _create(folder, config, space)
        except BaseException:
            lock.release()
            raise
        return cls(folder, lock)

    def commit(self, record: BatchRecord) -> None:
        """Write all that a batch has changed, or nothing."""
        with self._writing():
            self._write(record)

    def set_stop_reason(self, reason: str | None) -> None:
        """Say why the campaign has stopped; None while it runs."""
        with self._writing():
            self._connection.execute("DELETE FROM about WHERE name = 'stop_reason'")
            if reason is not None:
                self._connection.execute("INSERT INTO about VALUES ('stop_reason', ?)", (reason,))

    def close(self) -> None:
        super().close()
        self._lock.release()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: all of it is stored, or nothing."""
        try:
            with self._connection:
                yield
        except sqlite3.Error as error:
            is_disk = isinstance(error, sqlite3.OperationalError)
            hint = "is the disk full? " if is_disk else ""
            raise CampaignError(
                f"cannot write to {self.folder}: {error}",
                hint=f"{hint}All batches before this one are saved; continue with --resume",
            ) from error

    def _write(self, record: BatchRecord) -> None:
        columns = [str(dimension["column"]) for dimension in self.dimensions]
        run, run_many = self._connection.execute, self._connection.executemany
        # SQLite stores NaN as NULL by itself
        totals = dataclasses.astuple(record.progress)
        run(schema.insert_statement("batches", list(schema.BATCH_COLUMNS)), totals)
        run_many(
            schema.insert_statement("findings", [*schema.FINDING_COLUMNS, *columns]),
            [_finding_row(finding) for finding in record.findings],
        )
        run_many(
            "UPDATE findings SET status = ?, is_distinct = ? WHERE id = ?",
            [(status, is_distinct, number) for number, status, is_distinct in record.verdicts],
        )
        run_many(
            schema.insert_statement("seeds", [*schema.SEED_COLUMNS, *columns]),
            _seed_rows(record),
        )
        run_many("UPDATE seeds SET energy = ? WHERE id = ?", record.energies)
        run_many(
            "INSERT OR REPLACE INTO state VALUES (?, ?, ?, ?)",
            [
                (name, array.dtype.str, json.dumps(array.shape), np.ascontiguousarray(array).tobytes())
                for name, array in record.state.items()
            ],
        )


def is_being_written(folder: Path) -> bool:
    """True where another process is running the campaign in `folder`."""
    lock = FileLock(folder / schema.LOCK_NAME)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False  # not ours to write, so nobody of us is writing it
    lock.release()
    return False


def _create(folder: Path, config: CampaignConfig, space: InputSpace) -> None:
    if len(space.dimensions) > schema.MOST_DIMENSIONS:
        raise CampaignError(
            f"the input has {len(space.dimensions)} dimensions, at most {schema.MOST_DIMENSIONS} fit"
        )
    # made under another name, so that a campaign file is never seen half made
    unfinished = folder / f"{schema.FILE_NAME}.new"
    unfinished.unlink(missing_ok=True)
    connection = _open(unfinished, "rwc")
    columns = schema.input_columns(space.names)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.execute("BEGIN")
            for statement in schema.create_statements(space.names):
                connection.execute(statement)
            connection.executemany(
                "INSERT INTO dimensions VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    (position, dim.name, column, dim.kind, dim.low, dim.high, dim.unit)
                    for position, (dim, column) in enumerate(zip(space.dimensions, columns, strict=True))
                ],
            )
            connection.executemany(
                "INSERT INTO about VALUES (?, ?)",
                [("config", config.to_json()), *_versions().items()],
            )
    except sqlite3.Error as error:
        raise CampaignError(f"cannot write to {folder}: {error}", hint="is the disk full?") from error
    finally:
        connection.close()
    unfinished.rename(folder / schema.FILE_NAME)


def _file_in(folder: Path) -> Path:
    """The campaign file in `folder`, which must be there."""
    path = folder / schema.FILE_NAME
    if not path.is_file():
        what = "is not a folder" if folder.exists() else "does not exist"
        what = "has no campaign in it" if folder.is_dir() else what
        raise CampaignError(f"{folder} {what}", hint=f"a campaign is a folder with a {schema.FILE_NAME}")
    return path


def _open(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    has_log = path.with_name(f"{path.name}-wal").exists()
    if mode == "ro" and not has_log and not os.access(path.parent, os.W_OK):
        uri += "&immutable=1"  # readers lock by a file beside the database, which cannot be made here
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=30)
    except sqlite3.Error as error:
        raise CampaignError(f"cannot open {path}: {error}", hint="is the folder writable?") from error
    if mode != "ro":
        # survives a killed process; only a power failure may cost the last batches
        connection.execute("PRAGMA synchronous = NORMAL")
        # pages (of 4 kB); the state is rewritten with every batch, so copying it back rarely saves time
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
    return connection


def _lock(folder: Path) -> BaseFileLock:
    lock = FileLock(folder / schema.LOCK_NAME)
    try:
        # long enough for a reader that only looks whether there is a writer
        lock.acquire(timeout=0.5)
    except Timeout as error:
        raise CampaignError(
            f"another process is writing the campaign in {folder}",
            hint="wait for it or stop it; status, show and export can read meanwhile",
        ) from error
    except OSError as error:
        raise CampaignError(f"{folder} cannot be written: {error.strerror}") from error
    return lock


def _check_format(connection: sqlite3.Connection, folder: Path) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
        raise CampaignError(
            f"{folder / schema.FILE_NAME} was not written by policyfuzz", hint="is this the right folder?"
        )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != schema.FORMAT_VERSION:
        raise CampaignError(
            f"{folder} has campaign format {version}, this policyfuzz reads {schema.FORMAT_VERSION}",
            hint="use the version of policyfuzz that wrote it",
        )


def _versions() -> dict[str, str]:
    versions = {f"version.{name}": metadata.version(name) for name in _VERSIONS_OF}
    return versions | {"version.python": platform.python_version(), "machine": platform.machine()}


def _progress(row: tuple[Any, ...]) -> Progress:
    values: list[Any] = [float("nan") if value is None else value for value in row]
    return Progress(*values)


def _finding(row: Mapping[str, Any], columns: list[str]) -> Finding:
    return Finding(
        id=row["id"],
        status=row["status"],
        is_distinct=bool(row["is_distinct"]),
        kind=row["kind"],
        crash_step=row["crash_step"],
        episode_return=float("nan") if row["return"] is None else row["return"],
        parent=row["parent"],
        case_seed=row["case_seed"],
        batch=row["batch"],
        execution=row["execution"],
        seconds=row["seconds"],
        input=np.array([row[column] for column in columns], np.float64),
    )


def _finding_row(finding: Finding) -> tuple[Any, ...]:
    *values, row = (getattr(finding, field.name) for field in dataclasses.fields(finding))
    return (*values, *row.tolist())


def _seed_rows(record: BatchRecord) -> Iterable[tuple[Any, ...]]:
    count, columns = len(record.seed_inputs), record.seed_columns
    if count == 0:
        return ()
    return zip(
        range(record.first_seed, record.first_seed + count),
        [None if parent < 0 else parent for parent in columns["parent"].tolist()],
        columns["return"].tolist(),
        columns["energy"].tolist(),
        columns["log_density"].tolist(),
        repeat(record.progress.batch, count),
        repeat(record.progress.seconds, count),
        *record.seed_inputs.T.tolist(),
        strict=True,
    )
