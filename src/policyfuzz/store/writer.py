"""Writes a campaign: one writer, one transaction per batch."""

import json
import platform
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from filelock import BaseFileLock

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.inputs import Choice, Dimension, InputSpace
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.store import database
from policyfuzz.store.database import UNFINISHED, Patience, campaign_file, connect, lock_for_writing
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import BatchRecord, FailedEpisode, Finding, row_of

_VERSIONS_OF = ("policyfuzz", "numpy", "scipy", "numba")
_NOTHING: Mapping[str, str] = {}


class CampaignWriter(CampaignReader):
    """The one writer of a campaign. Every batch is one transaction."""

    def __init__(self, folder: Path, lock: BaseFileLock | None = None) -> None:
        path = campaign_file(folder)
        self._lock = lock or lock_for_writing(folder)
        try:
            if path.is_symlink():
                raise CampaignError(f"{path} is a link", hint="resume in the folder that it leads to")
            super().__init__(folder)
            self._connection.close()
            self._connection = connect(path, "rw")
            self._patience = Patience(self._connection, path)
            self._identity = _identity(path)
            if "instance" not in self.about:
                self.note("instance", uuid4().hex)
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def create(
        cls, folder: Path, config: CampaignConfig, space: InputSpace, about: Mapping[str, str] = _NOTHING
    ) -> "CampaignWriter":
        """Start a new campaign in `folder`, which must not hold one; `about` it there is more to know."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CampaignError(f"cannot make folder {folder}: {error.strerror}") from error
        lock = lock_for_writing(folder)
        try:
            if (folder / database.FILE_NAME).exists():
                raise CampaignError(
                    f"{folder} already holds a campaign",
                    hint="continue it with --resume (resume=True in Python), or choose another folder",
                )
            _create(folder, config, space, about)
        except BaseException:
            lock.release()
            raise
        return cls(folder, lock)

    def commit(self, record: BatchRecord) -> None:
        """Write everything that a batch has changed, or nothing."""
        with self._writing():
            self._write(record)

    def set_stop_reason(self, reason: str | None) -> None:
        """Say why the campaign has stopped; None while it runs."""
        if reason is not None:
            self.note("stop_reason", reason)
            return
        with self._writing():
            self._connection.execute("DELETE FROM about WHERE name = 'stop_reason'")

    def note(self, name: str, value: str) -> None:
        """Keep a fact about the campaign that readers find in `about`."""
        with self._writing():
            self._connection.execute(
                "INSERT OR REPLACE INTO about (name, value) VALUES (?, ?)", (name, value)
            )
        self.about[name] = value

    def set_starts(self, total: int, crashing: int) -> None:
        """Say that all starts have been tried, and how many there are and crash."""
        self.note("starts", f"{total} {crashing}")

    def close(self) -> None:
        super().close()
        self._lock.release()

    def close_or_discard(self) -> None:
        """Close, and leave nothing behind if nothing was ever stored: the folder may be used again."""
        try:
            is_empty = self.progress().batch == 0 and self.stop_reason() is None
        except CampaignError:
            is_empty = False  # the next reader reports what is wrong
        self.close()
        if is_empty and _identity(self.folder / database.FILE_NAME) == self._identity:
            file = database.FILE_NAME
            for name in (file, f"{file}-wal", f"{file}-shm", database.LOCK_NAME):
                (self.folder / name).unlink(missing_ok=True)
            with suppress(OSError):  # there may be other things in it
                self.folder.rmdir()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One transaction: all of it is stored, or nothing."""
        # the file that is open would go on growing, without a name, until it is closed and gone
        if _identity(self.folder / database.FILE_NAME) != self._identity:
            raise CampaignError(
                f"{self.folder / database.FILE_NAME} was removed or replaced while the campaign ran",
                hint="what was found since the last batch is lost; start the campaign again",
            )
        self._patience.renew(is_writing=True)
        try:
            with self._connection:
                yield
        except (sqlite3.Error, UnicodeError) as error:
            is_disk = isinstance(error, sqlite3.OperationalError)
            hint = "is the disk full? " if is_disk else ""
            raise CampaignError(
                f"cannot write to {self.folder}: {error}",
                hint=f"{hint}All batches before this one are saved; continue with --resume",
            ) from error

    def _write(self, record: BatchRecord) -> None:
        run_many = self._connection.executemany
        self._insert("batches", [row_of(record.progress)])
        self._insert("findings", map(self._row_with_input, record.findings))
        self._insert("errors", map(self._row_with_input, record.failed))
        run_many(
            "UPDATE findings SET status = ?, is_distinct = ?, survived_by = ? WHERE id = ?",
            [(one.status, one.is_distinct, one.survived_by, one.id) for one in record.verdicts],
        )
        run_many(
            "UPDATE findings SET repeats = repeats + 1 WHERE outcome = ?",
            [(outcome,) for outcome in record.repeated],
        )
        run_many(
            "UPDATE findings SET reseeded = ?, reseeded_crashes = ?, is_distinct = ? WHERE id = ?",
            [(one.runs, one.crashes, one.is_distinct, one.id) for one in record.trials],
        )
        if len(record.seed_inputs):
            columns = _seed_columns(record) | dict(
                zip(self.input_columns, record.seed_inputs.T.tolist(), strict=True)
            )
            run_many(database.insert_statement("seeds", columns), zip(*columns.values(), strict=True))
        run_many("UPDATE seeds SET energy = ? WHERE id = ?", record.energies)
        run_many(
            "INSERT OR REPLACE INTO state (name, dtype, shape, data) VALUES (?, ?, ?, ?)",
            [
                (name, array.dtype.str, json.dumps(array.shape), np.ascontiguousarray(array).tobytes())
                for name, array in record.state.items()
            ],
        )

    def _insert(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        rows = list(rows)
        if rows:
            statement = database.insert_statement(table, rows[0])
            self._connection.executemany(statement, [tuple(row.values()) for row in rows])

    def _row_with_input(self, record: Finding | FailedEpisode) -> dict[str, Any]:
        return row_of(record) | dict(zip(self.input_columns, record.input.tolist(), strict=True))


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is at `path`; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _options(dimension: Dimension) -> str | None:
    """The names that a choice is made from, as JSON."""
    return json.dumps(dimension.options) if isinstance(dimension, Choice) else None


def _create(folder: Path, config: CampaignConfig, space: InputSpace, about: Mapping[str, str]) -> None:
    if len(space.dimensions) > database.MOST_DIMENSIONS:
        raise CampaignError(
            f"the input has {len(space.dimensions)} dimensions, at most {database.MOST_DIMENSIONS} fit"
        )
    # made under another name, so that a campaign file is never seen half made
    unfinished = folder / UNFINISHED
    for ending in ("", "-wal", "-shm", "-journal"):  # a process may have died here
        unfinished.with_name(unfinished.name + ending).unlink(missing_ok=True)
    connection = connect(unfinished, "rwc")
    columns = database.input_columns(space.names)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        with connection:
            connection.execute("BEGIN")
            for statement in database.create_statements(space.names):
                connection.execute(statement)
            connection.executemany(
                "INSERT INTO dimensions VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (position, dim.name, column, dim.kind, dim.low, dim.high, dim.unit, _options(dim))
                    for position, (dim, column) in enumerate(zip(space.dimensions, columns, strict=True))
                ],
            )
            connection.executemany(
                "INSERT INTO about VALUES (?, ?)",
                [
                    ("config", config.to_json()),
                    ("instance", uuid4().hex),
                    *_versions().items(),
                    *about.items(),
                ],
            )
    except sqlite3.Error as error:
        raise CampaignError(f"cannot write to {folder}: {error}", hint="is the disk full?") from error
    finally:
        connection.close()
    unfinished.rename(folder / database.FILE_NAME)


def _versions() -> dict[str, str]:
    versions = {f"version.{name}": metadata.version(name) for name in _VERSIONS_OF}
    return versions | {"version.python": platform.python_version(), "machine": platform.machine()}


def _seed_columns(record: BatchRecord) -> dict[str, Iterable[Any]]:
    """All columns of the new seeds by name, but for their inputs."""
    count = len(record.seed_inputs)
    columns: dict[str, Iterable[Any]] = {name: array.tolist() for name, array in record.seed_columns.items()}
    return columns | {
        "id": range(record.first_seed, record.first_seed + count),
        "parent": [None if parent < 0 else parent for parent in record.seed_columns["parent"].tolist()],
        "batch": [record.progress.batch] * count,
        "seconds": [record.progress.seconds] * count,
        "origin": record.seed_origins or [None] * count,
    }
