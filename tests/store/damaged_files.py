"""Ways in which a campaign folder may be damaged, or made by somebody who means harm."""

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from policyfuzz.store.database import FILE_NAME

Edit = Callable[[Path], None]  #: changes the campaign in a folder

_DEEP = "[" * 100_000
_FOR_EVER = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n)"


def loosen(folder: Path) -> None:
    """Let the tables of the campaign in `folder` hold anything, as those of an older or hostile file can."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        for word in (" STRICT", " NOT NULL"):
            connection.execute(
                "UPDATE sqlite_schema SET sql = replace(sql, ?, '') WHERE type = 'table'", (word,)
            )


def sql(*statements: str) -> Edit:
    """Runs `statements` on a campaign whose tables hold anything."""

    def edit(folder: Path) -> None:
        loosen(folder)
        with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    return edit


def flip(folder: Path, place: int, mask: int = 0xFF) -> None:
    """Flip bits of the byte at `place` of the campaign file, counted modulo its size."""
    data = bytearray((folder / FILE_NAME).read_bytes())
    data[place % len(data)] ^= mask
    (folder / FILE_NAME).write_bytes(data)


def set_values(folder: Path, changes: Sequence[tuple[str, str, object]]) -> None:
    """Set columns of tables to values, in one row in three; those that a table does not have are left out."""
    loosen(folder)
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
        for table, column, value in changes:
            with suppress(sqlite3.Error):  # no such column, or another row has this key
                connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE rowid % 3 = 1', (value,))


def with_bytes(change: Callable[[bytes], bytes]) -> Edit:
    """Changes the bytes of the campaign file."""

    def edit(folder: Path) -> None:
        path = folder / FILE_NAME
        path.write_bytes(change(path.read_bytes()))

    return edit


def instead(make: Callable[[Path], object]) -> Edit:
    """Puts something else in the place of the campaign file."""

    def edit(folder: Path) -> None:
        (folder / FILE_NAME).unlink()
        make(folder / FILE_NAME)

    return edit


def beside(ending: str, make: Callable[[Path], object]) -> Edit:
    """Puts something beside the campaign file."""

    def edit(folder: Path) -> None:
        make(folder / f"{FILE_NAME}{ending}")

    return edit


def with_config(**changes: object) -> Edit:
    """Changes the stored configuration."""

    def edit(folder: Path) -> None:
        with closing(sqlite3.connect(folder / FILE_NAME)) as connection, connection:
            (text,) = connection.execute("SELECT value FROM about WHERE name = 'config'").fetchone()
            changed = json.dumps(json.loads(text) | changes)
            connection.execute("UPDATE about SET value = ? WHERE name = 'config'", (changed,))

    return edit


def pages_in_a_circle(folder: Path) -> None:
    """Let all branches of the table of findings lead to the same page."""
    path = folder / FILE_NAME
    with closing(sqlite3.connect(path)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'findings'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    data = bytearray(path.read_bytes())
    page = (root - 1) * size
    assert data[page] == 5, "the table must be larger than a page"
    cells = int.from_bytes(data[page + 3 : page + 5], "big")
    for cell in range(cells):
        start = page + int.from_bytes(data[page + 12 + 2 * cell : page + 14 + 2 * cell], "big")
        data[start : start + 4] = data[page + 8 : page + 12]
    path.write_bytes(data)


def _text(path: Path) -> None:
    path.write_text("something else\n" * 1000)


def _lock_a_link(folder: Path) -> None:
    (folder / "writer.lock").unlink(missing_ok=True)
    (folder / "writer.lock").symlink_to("../precious")


def _view(table: str) -> Edit:
    return sql(f"DROP TABLE {table}", f"CREATE VIEW {table} AS {_FOR_EVER} SELECT i AS id FROM n")


#: What a campaign file may look like. No verb may crash, hang or run code on any of them.
EDITS: dict[str, Edit] = {
    # types
    "text for a step": sql("UPDATE findings SET crash_step = 'soon'"),
    "text for a return": sql("UPDATE findings SET \"return\" = 'much'"),
    "bytes for a kind": sql("UPDATE findings SET kind = x'00ff'"),
    "bytes for a status": sql("UPDATE findings SET status = x'00'"),
    "nothing for a kind": sql("UPDATE findings SET kind = NULL"),
    "nothing for seconds": sql("UPDATE findings SET seconds = NULL"),
    "infinite seconds": sql("UPDATE findings SET seconds = 9e999"),
    "number for an origin": sql("UPDATE findings SET origin = 5"),
    "text for an input": sql("UPDATE findings SET x0 = 'left'"),
    "nothing for an input": sql("UPDATE findings SET x0 = NULL"),
    "infinite input": sql("UPDATE findings SET x0 = 9e999", "UPDATE seeds SET x0 = -9e999"),
    "huge input": sql("UPDATE findings SET x0 = 1e300", "UPDATE seeds SET x0 = -1e300"),
    "negative case seed": sql("UPDATE findings SET case_seed = -1", "UPDATE seeds SET case_seed = -1"),
    "real case seed": sql("UPDATE findings SET case_seed = 1.5"),
    "text for distinct": sql("UPDATE findings SET is_distinct = 'yes'"),
    "unknown status": sql("UPDATE findings SET status = 'maybe'"),
    "all new": sql("UPDATE findings SET status = 'new'"),
    "bad text": sql("UPDATE findings SET kind = CAST(x'fffe' AS TEXT)"),
    "long text": sql("UPDATE findings SET kind = CAST(zeroblob(1000000) AS TEXT) WHERE id < 5"),
    "escapes": sql("UPDATE findings SET kind = char(27) || ']0;owned' || char(7) || char(27) || '[2J'"),
    "negative numbers": sql("UPDATE findings SET id = -id"),
    "huge number": sql("UPDATE findings SET id = 9223372036854775807 WHERE id = 2"),
    "text for an energy": sql("UPDATE seeds SET energy = 'high'"),
    "text for a parent": sql("UPDATE seeds SET parent = 'mother'"),
    "parent out of reach": sql("UPDATE seeds SET parent = 4000000000"),
    "niche out of reach": sql("UPDATE seeds SET niche = 4000000000"),
    "seed missing": sql("DELETE FROM seeds WHERE id = 3"),
    "seeds missing": sql("DELETE FROM seeds"),
    "seed far away": sql("UPDATE seeds SET id = 4000000000000 WHERE id = (SELECT MAX(id) FROM seeds)"),
    "text for a total": sql("UPDATE batches SET executions = 'all'"),
    "nothing for a total": sql("UPDATE batches SET samples = NULL"),
    "negative total": sql("UPDATE batches SET samples = -5"),
    "huge totals": sql("UPDATE batches SET samples = 1 << 62, sample_crashes = 1 << 61"),
    "more crashes than samples": sql("UPDATE batches SET sample_crashes = samples + 1"),
    "infinite time": sql("UPDATE batches SET seconds = 9e999"),
    "batches missing": sql("DELETE FROM batches"),
    "text for a step of an error": sql(
        "INSERT INTO errors SELECT 1, 'raised', 'x', '', '', 1, 1, 1, 1, 1, 1, 1"
    ),
    "empty error": sql("INSERT INTO errors SELECT 1, '', 0, '', '', 1, 1, 1, 1, 1, 1, 1"),
    # facts
    "no configuration": sql("DELETE FROM about WHERE name = 'config'"),
    "no facts": sql("DELETE FROM about"),
    "no instance": sql("DELETE FROM about WHERE name = 'instance'"),
    "configuration cut off": sql("UPDATE about SET value = substr(value, 1, 40) WHERE name = 'config'"),
    "configuration a list": sql("UPDATE about SET value = '[]' WHERE name = 'config'"),
    "configuration a number": sql("UPDATE about SET value = '7' WHERE name = 'config'"),
    "configuration bytes": sql("UPDATE about SET value = x'ff00' WHERE name = 'config'"),
    "configuration deep": sql(f"UPDATE about SET value = '{_DEEP}' WHERE name = 'config'"),
    "stop reason bytes": sql("INSERT OR REPLACE INTO about VALUES ('stop_reason', x'00')"),
    "target a number": with_config(target=5),
    "target a list": with_config(target=["os", "system"]),
    "unknown target": with_config(target="nowhere"),
    "policy a number": with_config(policy=5),
    "seed a text": with_config(seed="first"),
    "seed real": with_config(seed=0.5),
    "seed huge": with_config(seed=10**300),
    "batch huge": with_config(batch_size=10**18),
    "batch truth": with_config(batch_size=True),
    "radius a text": with_config(distinct_radius="wide"),
    "radius infinite": with_config(distinct_radius=float("inf")),
    "unknown strategy": with_config(strategy="guess"),
    "unknown setting": with_config(colour="red"),
    "search a text": with_config(search="everywhere"),
    "search deep": with_config(search={"density": {"components": [[[]]]}}),
    # dimensions
    "no dimensions": sql("DELETE FROM dimensions"),
    "dimension without a name": sql("UPDATE dimensions SET name = NULL"),
    "dimension of another column": sql("UPDATE dimensions SET column = 'kind'"),
    "column with SQL": sql("UPDATE dimensions SET name = 'x0\"; DROP TABLE findings; --', column = name"),
    "column with a null": sql("UPDATE dimensions SET name = 'x' || char(0), column = 'x' || char(0)"),
    "dimensions of one name": sql("UPDATE dimensions SET name = 'x0', column = 'x0'"),
    "dimension upside down": sql("UPDATE dimensions SET low = 2, high = 1"),
    "dimension without a range": sql("UPDATE dimensions SET low = NULL"),
    "dimension infinite": sql("UPDATE dimensions SET high = 9e999"),
    "dimension of bytes": sql("UPDATE dimensions SET unit = x'00'"),
    "dimension of an unknown kind": sql("UPDATE dimensions SET kind = 'colour'"),
    "options broken": sql("UPDATE dimensions SET options = '[', high = 0"),
    "options deep": sql(f"UPDATE dimensions SET options = '{_DEEP}'"),
    "options numbers": sql("UPDATE dimensions SET options = '[1, 2]', low = 0, high = 1"),
    "options too few": sql("UPDATE dimensions SET options = '[\"a\"]', low = 0, high = 5"),
    "options not chosen": sql('UPDATE dimensions SET options = \'["a", "b"]\', low = 0, high = 1'),
    "options that are none": sql("UPDATE dimensions SET options = '{}'"),
    # state
    "state of objects": sql("UPDATE state SET dtype = '|O'"),
    "state of text": sql("UPDATE state SET dtype = '<U8'"),
    "state of records": sql('UPDATE state SET dtype = \'[("a", "O")]\''),
    "state of nonsense": sql("UPDATE state SET dtype = '((((('"),
    "state of half numbers": sql("UPDATE state SET dtype = '<f4', data = substr(data, 1, length(data) / 2)"),
    "state foreign": sql("UPDATE state SET dtype = replace(dtype, '<', '>')"),
    "state of real numbers": sql("UPDATE state SET dtype = '<f8' WHERE dtype = '<i8'"),
    "state negative": sql("UPDATE state SET shape = '[-1]'"),
    "state huge": sql("UPDATE state SET shape = '[1000000000000, 1000000000000]'"),
    "state empty": sql("UPDATE state SET shape = '[0]', data = x''"),
    "state flat": sql("UPDATE state SET shape = '[' || length(data) / 8 || ']'"),
    "state deep": sql(f"UPDATE state SET shape = '{_DEEP}'"),
    "state of a text shape": sql("UPDATE state SET shape = '\"1\"'"),
    "state without data": sql("UPDATE state SET data = NULL"),
    "state of text data": sql("UPDATE state SET data = 'abcdefgh'"),
    "state missing": sql("DELETE FROM state"),
    "state of NaN": sql("UPDATE state SET data = CAST(replace(hex(data), '0', 'f') AS BLOB)"),
    "state all ones": sql(
        "UPDATE state SET shape = '[1]', data = x'ffffffffffffffff' WHERE dtype IN ('<i8', '<u8')"
    ),
    "state of too many in flight": sql(
        "UPDATE state SET data = x'ffffffffffffff7f' WHERE name = 'in_flight'"
    ),
    "second runs unknown": sql("DELETE FROM state WHERE name LIKE 'confirm.%'"),
    # tables
    **{
        f"no table {table}": sql(f"DROP TABLE {table}")
        for table in ("about", "dimensions", "findings", "seeds")
    },
    **{f"no table {table} either": sql(f"DROP TABLE {table}") for table in ("errors", "batches", "state")},
    **{
        f"endless view {table}": _view(table)
        for table in ("about", "dimensions", "findings", "errors", "batches")
    },
    "column missing": sql("ALTER TABLE findings DROP COLUMN kind"),
    "column renamed": sql("ALTER TABLE findings RENAME COLUMN x0 TO y0"),
    "column added": sql("ALTER TABLE findings ADD COLUMN note BLOB", "UPDATE findings SET note = x'00'"),
    "column computed": sql(
        "ALTER TABLE findings DROP COLUMN origin",
        "ALTER TABLE findings ADD COLUMN origin TEXT AS (hex(zeroblob(100000000)))",
    ),
    "trigger": sql("CREATE TRIGGER t AFTER INSERT ON batches BEGIN DELETE FROM findings; END"),
    "view beside": sql(f"CREATE VIEW mine AS {_FOR_EVER} SELECT i FROM n"),
    "search table": sql("DROP TABLE findings", "CREATE VIRTUAL TABLE findings USING fts5(id, kind)"),
    "other application": sql("PRAGMA application_id = 7"),
    "other version": sql("PRAGMA user_version = 99"),
    # bytes
    "pages in a circle": pages_in_a_circle,
    "schema unreadable": with_bytes(lambda data: data.replace(b"CREATE TABLE", b"CREATE \xa2ABLE")),
    "half of it": with_bytes(lambda data: data[: len(data) // 2]),
    "one page": with_bytes(lambda data: data[:4096]),
    "all but a byte": with_bytes(lambda data: data[:-1]),
    "nothing": with_bytes(lambda data: b""),
    "zeros": with_bytes(lambda data: bytes(len(data))),
    "zeros after the first page": with_bytes(lambda data: data[:4096] + bytes(len(data) - 4096)),
    "ones after the first page": with_bytes(lambda data: data[:4096] + b"\xff" * (len(data) - 4096)),
    "pages swapped": with_bytes(lambda data: data[:4096] + data[8192:12288] + data[4096:8192] + data[12288:]),
    "text": instead(_text),
    # other things in its place, and beside it
    "folder": instead(Path.mkdir),
    "pipe": instead(os.mkfifo),
    "link to nothing": instead(lambda path: path.symlink_to("nowhere")),
    "link to itself": instead(lambda path: path.symlink_to(path.name)),
    "link to a device": instead(lambda path: path.symlink_to("/dev/zero")),
    "log of text": beside("-wal", _text),
    "log a pipe": beside("-wal", os.mkfifo),
    "log a link": beside("-wal", lambda path: path.symlink_to("../precious")),
    "index a link": beside("-shm", lambda path: path.symlink_to("../precious")),
    "journal": beside("-journal", _text),
    "lock a link": _lock_a_link,
}
