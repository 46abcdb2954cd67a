"""The campaign file on disk: where it is, how it is opened, who may write it, and its tables."""

import os
import shlex
import sqlite3
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from policyfuzz.core.errors import CampaignError
from policyfuzz.store.records import Column, FailedEpisode, Finding, Progress, columns_of

if TYPE_CHECKING:
    from filelock import BaseFileLock


FILE_NAME = "campaign.sqlite"
LOCK_NAME = "writer.lock"
#: What a campaign file is called until it is complete.
UNFINISHED = f"{FILE_NAME}.new"
#: Pictures and films of findings.
PICTURES = "findings"
#: Endings of files that SQLite keeps beside a campaign file. The last is not ours: campaigns use WAL mode.
_SIDE_FILES = ("-wal", "-shm", "-journal")
#: Tells our files from other SQLite files ("pfuz"); see PRAGMA application_id.
APPLICATION_ID = 0x7066757A
#: Raised when an older file can no longer be read.
FORMAT_VERSION = 6
#: Older ones that `migrate` brings up to date.
MIGRATED_FORMATS = (5,)
#: More would exceed SQLite's limit on columns of a table.
MOST_DIMENSIONS = 1900
#: Steps of SQLite's machine between two looks at a statement, looks that are free, and the most steps per
#: byte of the file after these.
_STEPS_BETWEEN_LOOKS, _FREE_LOOKS, _STEPS_PER_BYTE = 1_000_000, 50, 20
#: Since SQLite 3.37, tables can refuse values of another type than that of their column.
_STRICT = " STRICT" if sqlite3.sqlite_version_info >= (3, 37) else ""


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
    _check_side_files(path)
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    has_log = path.with_name(f"{path.name}-wal").exists()
    # readers lock by files beside the database, which cannot be made in a folder that is not writable
    if mode == "ro" and not has_log and (is_at_rest or not os.access(path.parent, os.W_OK)):
        uri += "&immutable=1"
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=30)
        _distrust(connection)
        if mode != "ro":
            # survives a killed process; only a power failure may cost the last batches
            connection.execute("PRAGMA synchronous = NORMAL")
            # pages (of 4 kB); the state is rewritten with every batch, so copying it back rarely saves time
            connection.execute("PRAGMA wal_autocheckpoint = 4000")
    except (sqlite3.Error, UnicodeError) as error:
        raise CampaignError(
            f"cannot read {path}: {error}", hint="it is damaged, is not a campaign, or may not be read"
        ) from error
    return connection


def _check_side_files(path: Path) -> None:
    """Refuse side files that are links, and journals: SQLite would change what is behind them."""
    for ending in _SIDE_FILES:
        side = path.with_name(path.name + ending)
        try:
            is_plain = stat.S_ISREG(side.lstat().st_mode)
        except OSError:
            continue
        if not is_plain or ending == "-journal":
            raise CampaignError(f"{side} is not from policyfuzz", hint="remove it if it is not yours")


def _distrust(connection: sqlite3.Connection) -> None:
    """Let nothing in the file run code."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    defensive = getattr(sqlite3, "SQLITE_DBCONFIG_DEFENSIVE", None)
    if defensive is not None:  # Python 3.12 and later
        connection.setconfig(defensive, True)  # type: ignore[attr-defined, unused-ignore]


class Patience:
    """Ends a statement that takes more steps than any on a sound file of this size could.

    Pages of a damaged file may lead in circles.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._path, self._looks, self._is_writing = path, 0, False
        connection.set_progress_handler(self._look, _STEPS_BETWEEN_LOOKS)

    def renew(self, is_writing: bool = False) -> None:
        """Another statement begins. Those that write only do what we tell them, however long it takes."""
        self._looks, self._is_writing = 0, is_writing

    def _look(self) -> bool:
        self._looks += 1
        if self._looks < _FREE_LOOKS or self._is_writing:
            return False
        log = self._path.with_name(f"{self._path.name}-wal")
        size = sum(file.stat().st_size for file in (self._path, log) if file.exists())
        return (self._looks - _FREE_LOOKS) * _STEPS_BETWEEN_LOOKS > _STEPS_PER_BYTE * size


def format_of(connection: sqlite3.Connection, folder: Path) -> int:
    """The format of a campaign file; refuses one that is no campaign."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise CampaignError(
            f"{folder / FILE_NAME} was not written by policyfuzz", hint="is this the right folder?"
        )
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_format(connection: sqlite3.Connection, folder: Path) -> None:
    """Refuse a file that is not a campaign, or of a format that cannot be read."""
    version = format_of(connection, folder)
    if version != FORMAT_VERSION:
        raise CampaignError(
            f"{folder} has campaign format {version}, this policyfuzz reads {FORMAT_VERSION}",
            hint=f"bring it up to date: policyfuzz migrate {shlex.quote(str(folder))}"
            if version in MIGRATED_FORMATS
            else "use the version of policyfuzz that wrote it",
        )


def lock_for_writing(folder: Path) -> "BaseFileLock":
    """Become the one writer of the campaign in `folder`; the lock ends with the process at the latest."""
    from filelock import FileLock, Timeout

    if (folder / LOCK_NAME).is_symlink():  # older versions of filelock would empty the file behind it
        raise CampaignError(f"{folder / LOCK_NAME} is a link", hint="remove it; it should be a file")
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

    path = folder / LOCK_NAME
    if path.is_symlink() or not path.is_file():  # a reader makes no lock, and opens no pipe
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False  # read-only for us: no writer of ours holds the lock
    lock.release()
    return False


def picture_file(folder: Path, name: str) -> Path:
    """Where the picture or film `name` of the campaign in `folder` goes; a link there is refused."""
    path = folder / PICTURES / name
    for place in (path.parent, path):
        if place.is_symlink():
            raise CampaignError(
                f"{place} is a link: writing there would change what is behind it",
                hint="remove the link, or name the file yourself",
            )
    return path


#: Columns of `seeds`. A seed has no record: the corpus keeps its columns as arrays.
SEED_COLUMNS = {
    "id": Column("INTEGER PRIMARY KEY", "from 0, in the order in which they were kept"),
    "parent": Column("INTEGER", "seed it was mutated from; NULL for a sample"),
    "case_seed": Column("INTEGER NOT NULL", "random seed of its episode; mutants keep it"),
    "return": Column("REAL", "sum of rewards; NULL if it was NaN"),
    "energy": Column("REAL", "weight with which it is chosen; NULL until measured"),
    "log_density": Column("REAL", "of its state sequence; NULL without freshness"),
    "distance": Column("REAL", "from a crash; NULL if the strategy ignores it"),
    "tie_break": Column("REAL", "decides between equal distances; NULL if the strategy ignores it"),
    "is_crash": Column("INTEGER NOT NULL", "1: a finding that the search mutates as well"),
    "niche": Column("INTEGER NOT NULL", "cell of its behaviour; 0 without cells"),
    "root": Column("INTEGER", "number of the draw or import that its lineage began with"),
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
_ABOUT_COLUMNS = {"name": Column("TEXT PRIMARY KEY", "of a fact"), "value": Column("TEXT NOT NULL", "of it")}
_DIMENSION_COLUMNS = {
    "position": Column("INTEGER PRIMARY KEY", "from 0"),
    "name": Column("TEXT NOT NULL", "of the dimension"),
    "column": Column("TEXT NOT NULL", "its name in other tables"),
    "kind": Column("TEXT NOT NULL", "of dimension"),
    "low": Column("REAL NOT NULL", "smallest value"),
    "high": Column("REAL NOT NULL", "largest value"),
    "unit": Column("TEXT NOT NULL", "of its values"),
    "options": Column("TEXT", "of a choice, as JSON"),
}
STATE_COLUMNS = {
    "name": Column("TEXT PRIMARY KEY", "of an array"),
    "dtype": Column("TEXT NOT NULL", "as numpy writes it"),
    "shape": Column("TEXT NOT NULL", "as JSON"),
    "data": Column("BLOB NOT NULL", "its bytes"),
}
#: Tables that are the same in every campaign, and their columns.
COMMON_TABLES = {
    "about": _ABOUT_COLUMNS,
    "dimensions": _DIMENSION_COLUMNS,
    "batches": BATCH_COLUMNS,
    "state": STATE_COLUMNS,
}


def tables_of(columns: Sequence[str]) -> dict[str, dict[str, Column]]:
    """Every table of a campaign with these input `columns`, and its columns."""
    inputs = dict.fromkeys(columns, Column("REAL NOT NULL", "a value of the input"))
    return COMMON_TABLES | {name: columns | inputs for name, columns in INPUT_TABLES.items()}


CREATE_OUTCOME_INDEX = "CREATE INDEX findings_of_outcomes ON findings (outcome)"


def create_statements(dimension_names: Sequence[str]) -> list[str]:
    """SQL that makes an empty campaign with these input columns."""
    tables = tables_of(input_columns(dimension_names))
    return [
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {FORMAT_VERSION}",
        *(_create_table(name, columns) for name, columns in tables.items()),
        # files of earlier versions have none
        "CREATE INDEX errors_of_findings ON errors (finding) WHERE finding IS NOT NULL",
        CREATE_OUTCOME_INDEX,
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
    return f"CREATE TABLE {name} ({', '.join(described)}){_STRICT}"
