"""Brings the campaign file of an earlier version up to date. A change of format comes with a step here."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from policyfuzz.core.errors import CampaignError
from policyfuzz.store import checks
from policyfuzz.store.database import (
    COMMON_TABLES,
    CREATE_OUTCOME_INDEX,
    FORMAT_VERSION,
    INPUT_TABLES,
    MIGRATED_FORMATS,
    MOST_DIMENSIONS,
    Patience,
    campaign_file,
    connect,
    format_of,
    input_columns,
    lock_for_writing,
    quoted,
    tables_of,
)


def migrate(folder: Path) -> int:
    """Bring the campaign in `folder` to the present format; return the format that it had.

    All of it happens in one transaction: a process that is killed leaves the file as it was.
    """
    path = campaign_file(folder)
    if path.is_symlink():
        raise CampaignError(f"{path} is a link", hint="migrate the folder that it leads to")
    lock = lock_for_writing(folder)
    try:
        return _migrate(folder, path)
    finally:
        lock.release()


def _migrate(folder: Path, path: Path) -> int:
    with closing(connect(path, "rw")) as connection:
        Patience(connection, path)  # ends what would go on for ever in a damaged file
        connection.isolation_level = None  # transactions begin where we say
        try:
            version = format_of(connection, folder)
            if version not in (*MIGRATED_FORMATS, FORMAT_VERSION):
                known = ", ".join(map(str, MIGRATED_FORMATS))
                raise CampaignError(
                    f"{folder} has campaign format {version}; format {known} can be brought up to date",
                    hint="use the version of policyfuzz that wrote it",
                )
            connection.execute("BEGIN IMMEDIATE")
            for step in range(version, FORMAT_VERSION):
                _STEPS[step](connection)
            if version < FORMAT_VERSION:
                _note(connection, "migrated_from", str(version))
                connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
            connection.execute("COMMIT")
        except (sqlite3.Error, checks.Damage, UnicodeError) as error:
            raise CampaignError(
                f"cannot bring {path} up to date: {error}",
                hint="the file is damaged, or the disk is full; nothing was changed",
            ) from error
    return version


def _note(connection: sqlite3.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO about (name, value) VALUES (?, ?)", (name, value))


#: Columns that format 6 has and format 5 has not, by table, with what SQLite adds them as.
_ADDED_BY_6: Mapping[str, Mapping[str, str]] = {
    "findings": {
        "is_novel": "INTEGER NOT NULL DEFAULT 0",
        "margin": "REAL",
        "outcome": "INTEGER",
        "repeats": "INTEGER NOT NULL DEFAULT 0",
        "root": "INTEGER",
        "behaviour": "TEXT",
        "reseeded": "INTEGER",
        "reseeded_crashes": "INTEGER",
        "survived_by": "TEXT",
    },
    "seeds": {"root": "INTEGER"},
    "batches": dict.fromkeys(
        ("lineages", "repeats", "lucky", "in_trial", "unsolved"), "INTEGER NOT NULL DEFAULT 0"
    ),
}


def _from_5_to_6(connection: sqlite3.Connection) -> None:
    """Margins, outcomes and lineages were not known; what was distinct was novel."""
    names = [row[0] for row in connection.execute("SELECT name FROM dimensions ORDER BY position")]
    if not 0 < len(names) <= MOST_DIMENSIONS or not all(isinstance(name, str) for name in names):
        raise checks.Damage("the names of its dimensions cannot be read")
    old = [row[0] for row in connection.execute('SELECT "column" FROM dimensions ORDER BY position')]
    _check_format_5(connection, old)
    renamed = zip(old, input_columns(names), strict=True)
    # the longest first: a longer name may be in the way of a shorter one that gets a prefix
    for before, after in sorted(renamed, key=lambda pair: len(pair[0]), reverse=True):
        if before != after:  # a dimension that is called like a new column
            for table in INPUT_TABLES:
                connection.execute(f"ALTER TABLE {table} RENAME COLUMN {quoted(before)} TO {quoted(after)}")
            connection.execute('UPDATE dimensions SET "column" = ? WHERE "column" = ?', (after, before))
    for table, columns in _ADDED_BY_6.items():
        for name, kind in columns.items():
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(name)} {kind}")
    connection.execute("UPDATE findings SET is_novel = is_distinct")
    connection.execute(CREATE_OUTCOME_INDEX)


def _check_format_5(connection: sqlite3.Connection, columns: list[str]) -> None:
    """Refuse a file that is not what its format says: views and triggers would run while it is changed."""
    tables = {
        table: {name: column for name, column in known.items() if name not in _ADDED_BY_6.get(table, {})}
        for table, known in (COMMON_TABLES | INPUT_TABLES).items()
    }
    inputs = tables_of(columns)["findings"]
    for table in INPUT_TABLES:
        tables[table] |= {name: inputs[name] for name in columns}
    checks.check_tables(connection, tables)


#: Format to what makes the next one of it.
_STEPS: Mapping[int, Callable[[sqlite3.Connection], None]] = {5: _from_5_to_6}
