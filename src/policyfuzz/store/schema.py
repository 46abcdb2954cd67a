"""The layout of a campaign's SQLite file. docs/campaign-file.md describes it for readers."""

from collections.abc import Iterable, Mapping, Sequence

from policyfuzz.store.columns import Column, columns_of
from policyfuzz.store.records import FailedEpisode, Finding, Progress

FILE_NAME = "campaign.sqlite"
LOCK_NAME = "writer.lock"
#: Tells our files from other SQLite files ("pfuz"); see PRAGMA application_id.
APPLICATION_ID = 0x7066757A
#: Raised when an older file can no longer be read.
FORMAT_VERSION = 5

#: More would exceed SQLite's limit on columns of a table.
MOST_DIMENSIONS = 1900

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


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


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


def _create_table(name: str, columns: Mapping[str, Column]) -> str:
    described = (f"{quoted(key)} {column.kind}" for key, column in columns.items())
    return f"CREATE TABLE {name} ({', '.join(described)})"
