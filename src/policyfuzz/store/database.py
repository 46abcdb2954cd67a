"""The campaign file on disk: where it is, how it is opened, who may write it, and its tables."""

import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyfuzz.core.errors import CampaignError
from policyfuzz.store.records import Column, FailedEpisode, Finding, Progress, columns_of

if TYPE_CHECKING:
    from filelock import BaseFileLock


FILE_NAME = "campaign.sqlite"
LOCK_NAME = "writer.lock"
#: Tells our files from other SQLite files ("pfuz"); see PRAGMA application_id.
APPLICATION_ID = 0x7066757A
#: Raised when an older file can no longer be read.
FORMAT_VERSION = 5
#: More would exceed SQLite's limit on columns of a table.
MOST_DIMENSIONS = 1900


def campaign_file(folder: Path) -> Path:
    """The campaign file in `folder`, which must be there."""
    path = folder / FILE_NAME
    if not path.is_file():
        what = "is not a folder" if folder.exists() else "does not exist"
        what = "has no campaign in it" if folder.is_dir() else what
        raise CampaignError(f"{folder} {what}", hint=f"a campaign is a folder with a {FILE_NAME}")
    return path


def connect(path: Path, mode: str, is_at_rest: bool = False) -> sqlite3.Connection:
    """Open the file at `path` to read (ro), to write (rw), or to make it first (rwc).

    A file that `is_at_rest` has no writer, and is read without locks.
    """
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    has_log = path.with_name(f"{path.name}-wal").exists()
    # readers lock by files beside the database, which cannot be made in a folder that is not writable
    if mode == "ro" and not has_log and (is_at_rest or not os.access(path.parent, os.W_OK)):
        uri += "&immutable=1"
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


def check_format(connection: sqlite3.Connection, folder: Path) -> None:
    """Refuse a file that is not a campaign, or of a format that cannot be read."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise CampaignError(
            f"{folder / FILE_NAME} was not written by policyfuzz", hint="is this the right folder?"
        )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != FORMAT_VERSION:
        raise CampaignError(
            f"{folder} has campaign format {version}, this policyfuzz reads {FORMAT_VERSION}",
            hint="use the version of policyfuzz that wrote it",
        )


def lock_for_writing(folder: Path) -> "BaseFileLock":
    """Become the one writer of the campaign in `folder`; the lock ends with the process at the latest."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK_NAME)
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


def is_being_written(folder: Path) -> bool:
    """True if another process runs the campaign in `folder`."""
    from filelock import FileLock, Timeout  # readers of a finished campaign do without

    lock = FileLock(folder / LOCK_NAME)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False  # read-only for us: no writer of ours holds the lock
    lock.release()
    return False


#: Columns of `seeds`. A seed has no record: the corpus keeps its columns as arrays.
SEED_COLUMNS = {
    "id": Column("INTEGER PRIMARY KEY", "from 0, in the order in which they were kept"),
    "parent": Column("INTEGER", "seed it was mutated from; NULL for a sample"),
    "case_seed": Column("INTEGER NOT NULL", "random seed of its episode; mutants keep it"),
    "return": Column("REAL", "sum of rewards; NULL if it was NaN"),
    "energy": Column("REAL", "weight with which it is chosen; NULL until measured"),
    "log_density": Column("REAL", "per state; NULL without freshness"),
    "distance": Column("REAL", "from a crash; NULL if the strategy ignores it"),
    "tie_break": Column("REAL", "decides between equal distances; NULL if the strategy ignores it"),
    "is_crash": Column("INTEGER NOT NULL", "1: a finding that the search mutates as well"),
    "niche": Column("INTEGER NOT NULL", "cell of its behaviour; 0 without cells"),
    "batch": Column("INTEGER NOT NULL", "batch that kept it"),
    "seconds": Column("REAL NOT NULL", "campaign time when it was kept"),
    "origin": Column("TEXT", "instance it was imported from; NULL for the campaign's own"),
}
#: Tables whose rows end with one input, and their columns before it.
INPUT_TABLES = {
    "findings": columns_of(Finding),
    "seeds": SEED_COLUMNS,
    "errors": columns_of(FailedEpisode),
}
BATCH_COLUMNS = columns_of(Progress)


def create_statements(dimension_names: Sequence[str]) -> list[str]:
    """SQL that makes an empty campaign with these input columns."""
    inputs = dict.fromkeys(input_columns(dimension_names), Column("REAL NOT NULL", "a value of the input"))
    return [
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {FORMAT_VERSION}",
        "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE dimensions (position INTEGER PRIMARY KEY, name TEXT, column TEXT, kind TEXT,"
        " low REAL, high REAL, unit TEXT, options TEXT)",
        *(_create_table(name, columns | inputs) for name, columns in INPUT_TABLES.items()),
        _create_table("batches", BATCH_COLUMNS),
        "CREATE TABLE state (name TEXT PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB)",
    ]


def input_columns(dimension_names: Sequence[str]) -> list[str]:
    """Column names of the input; a dimension named like another column gets a prefix."""
    taken = {name for columns in INPUT_TABLES.values() for name in columns}
    columns = []
    for name in dimension_names:
        while name.lower() in taken:
            name = f"input_{name}"
        taken.add(name.lower())
        columns.append(name)
    return columns


def insert_statement(table: str, columns: Iterable[str]) -> str:
    """SQL that inserts one row of these columns."""
    names = [quoted(name) for name in columns]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _create_table(name: str, columns: Mapping[str, Column]) -> str:
    described = (f"{quoted(key)} {column.kind}" for key, column in columns.items())
    return f"CREATE TABLE {name} ({', '.join(described)})"
