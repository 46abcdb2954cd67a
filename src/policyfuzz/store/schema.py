"""The layout of a campaign's SQLite file. docs/campaign-file.md describes it for readers."""

from collections.abc import Sequence

FILE_NAME = "campaign.sqlite"
LOCK_NAME = "writer.lock"
#: Tells our files from other SQLite files ("pfuz"); see PRAGMA application_id.
APPLICATION_ID = 0x7066757A
#: Raised when an older file can no longer be read.
FORMAT_VERSION = 5

#: More would exceed SQLite's limit on columns of a table.
MOST_DIMENSIONS = 1900

#: Columns of `findings`, `errors` and `seeds` before the input; dimension names follow as further columns.
FINDING_COLUMNS = {
    "id": "INTEGER PRIMARY KEY",  # from 1, in the order of discovery
    "status": "TEXT NOT NULL",  # new, confirmed or flaky
    "is_distinct": "INTEGER NOT NULL",  # 1: no earlier distinct finding within the radius
    "kind": "TEXT NOT NULL",
    "crash_step": "INTEGER NOT NULL",
    "return": "REAL",  # NULL where it was NaN
    "parent": "INTEGER",  # seed it was changed from, NULL for a sample
    "case_seed": "INTEGER NOT NULL",
    "batch": "INTEGER NOT NULL",
    "execution": "INTEGER NOT NULL",  # how many episodes had been run when it was found
    "seconds": "REAL NOT NULL",  # campaign time when it was found
    "origin": "TEXT",  # instance it was taken from, NULL for what was found here
}
ERROR_COLUMNS = {
    "id": "INTEGER PRIMARY KEY",  # from 1
    "kind": "TEXT NOT NULL",  # raised, numbers, endless, hung, state or crashed
    "step": "INTEGER NOT NULL",  # 0: the reset
    "text": "TEXT NOT NULL",  # the traceback, or what was wrong
    "purpose": "TEXT NOT NULL",  # what the episode was run for
    "finding": "INTEGER",  # that it is (the oracle calls it a crash), or was to confirm
    "case_seed": "INTEGER NOT NULL",
    "batch": "INTEGER NOT NULL",
    "execution": "INTEGER NOT NULL",
    "seconds": "REAL NOT NULL",
}
SEED_COLUMNS = {
    "id": "INTEGER PRIMARY KEY",  # from 0, in the order in which they were kept
    "parent": "INTEGER",
    "case_seed": "INTEGER NOT NULL",  # what is changed from this seed keeps it
    "return": "REAL",  # NULL where it was NaN, as it may be of a finding
    "energy": "REAL",
    "log_density": "REAL",
    "distance": "REAL",  # how far it stayed from a crash, NULL where the search does not look
    "tie_break": "REAL",  # counts where distances are equal
    "is_crash": "INTEGER NOT NULL",  # 1: a finding that the search goes on from
    "niche": "INTEGER NOT NULL",  # cell of its behaviour
    "batch": "INTEGER NOT NULL",
    "seconds": "REAL NOT NULL",
    "origin": "TEXT",  # instance it was taken from, NULL for what was kept here
}
#: One row per batch; all but `workers`, `workers_ready` and the last two are totals since the start.
BATCH_COLUMNS = {
    "id": "INTEGER PRIMARY KEY",
    "seconds": "REAL NOT NULL",
    "executions": "INTEGER NOT NULL",
    "samples": "INTEGER NOT NULL",
    "sample_crashes": "INTEGER NOT NULL",
    "mutants": "INTEGER NOT NULL",
    "mutant_crashes": "INTEGER NOT NULL",
    "imports": "INTEGER NOT NULL",  # episodes of what other instances found
    "findings": "INTEGER NOT NULL",  # confirmed
    "distinct_findings": "INTEGER NOT NULL",
    "imported_findings": "INTEGER NOT NULL",  # confirmed, taken from other instances
    "flaky": "INTEGER NOT NULL",
    "unconfirmed": "INTEGER NOT NULL",
    "errors": "INTEGER NOT NULL",  # episodes that could not be run to their end; the next two count apart
    "hangs": "INTEGER NOT NULL",  # episodes that gave no answer
    "simulator_crashes": "INTEGER NOT NULL",  # episodes that took their worker process with them
    "corpus": "INTEGER NOT NULL",
    "drawn": "INTEGER NOT NULL",
    "invalid": "INTEGER NOT NULL",
    "unsolvable": "INTEGER NOT NULL",
    "simulate_seconds": "REAL NOT NULL",
    "validate_seconds": "REAL NOT NULL",
    "density_seconds": "REAL NOT NULL",
    "search_seconds": "REAL NOT NULL",
    "store_seconds": "REAL NOT NULL",
    "workers": "INTEGER NOT NULL",  # that were asked for
    "workers_ready": "INTEGER NOT NULL",  # of these when the batch was done
    "worker_seconds": "REAL NOT NULL",  # that workers were there for
    "busy_seconds": "REAL NOT NULL",  # of these that they ran episodes
    "restarts": "INTEGER NOT NULL",  # workers that had to be replaced
    "fresh_share": "REAL",  # of this batch
    "fresh_threshold": "REAL",  # log-density per state
}


def quoted(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def create_statements(dimension_names: Sequence[str]) -> list[str]:
    """SQL that makes an empty campaign with these input columns."""
    inputs = dict.fromkeys(input_columns(dimension_names), "REAL NOT NULL")
    return [
        f"PRAGMA application_id = {APPLICATION_ID}",
        f"PRAGMA user_version = {FORMAT_VERSION}",
        "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE dimensions (position INTEGER PRIMARY KEY, name TEXT, column TEXT, kind TEXT,"
        " low REAL, high REAL, unit TEXT, options TEXT)",
        _table("findings", FINDING_COLUMNS | inputs),
        _table("seeds", SEED_COLUMNS | inputs),
        _table("errors", ERROR_COLUMNS | inputs),
        _table("batches", BATCH_COLUMNS),
        "CREATE TABLE state (name TEXT PRIMARY KEY, dtype TEXT, shape TEXT, data BLOB)",
    ]


def input_columns(dimension_names: Sequence[str]) -> list[str]:
    """Column names of the input; marked where a dimension is called like one of our own columns."""
    taken = {*FINDING_COLUMNS, *SEED_COLUMNS, *ERROR_COLUMNS}
    columns = []
    for name in dimension_names:
        while name.lower() in taken:
            name = f"input_{name}"
        taken.add(name.lower())
        columns.append(name)
    return columns


def insert_statement(table: str, columns: Sequence[str]) -> str:
    """SQL that inserts one row of these columns."""
    names = ", ".join(quoted(name) for name in columns)
    return f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})"


def _table(name: str, columns: dict[str, str]) -> str:
    return f"CREATE TABLE {name} ({', '.join(f'{quoted(key)} {kind}' for key, kind in columns.items())})"
