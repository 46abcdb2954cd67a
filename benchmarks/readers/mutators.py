"""Changes of valid files and texts: of bytes, and of what the bytes mean.

They draw from a `random.Random` and not from numpy: Hypothesis can supply one whose draws it shrinks, so that
tests and the long command share every mutator.
"""

import io
import json
import re
import sqlite3
import struct
import zipfile
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

#: Values that readers stumble over, as texts.
TEXTS = (
    "",
    " ",
    "0",
    "-1",
    "1",
    "2",
    "1e309",
    "-0.0",
    "nan",
    "inf",
    "-inf",
    "9" * 25,
    "9" * 5000,
    "1e-400",
    "true",
    "none",
    "None",
    "null",
    "x",
    "é",
    "\u202e",
    "\x1b[31m",
    "\x1b]0;x\x07",
    "\x00",
    "\n",
    "\ud800",
    "..",
    "../..",
    "/",
    "/dev/null",
    "/dev/zero",
    "~",
    "~nouser/x",
    "a" * 300,
    "a" * 10_000,
    "%s",
    "{}",
    "{0.__class__}",
    ":",
    "::",
    "=",
    ";",
    ",",
    "?",
    "&",
    "(",
    "(" * 3000,
    "[" * 3000,
    "'",
    '"',
    "--",
    "-",
    "planted:run",
    "planted.py:run",
    "os:system:command=touch marker",
    "py:planted.py:run",
    "gym:subprocess:getoutput:env.cmd=touch marker",
)
#: The same for places where any JSON may stand.
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**31,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63),
    10**400,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    [],
    {},
    [[]],
    [None] * 3,
    {"a": {}},
    *TEXTS,
)
_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 2**63 - 1, 2**64 - 1)


def bytes_of(rng: Random, content: bytes, other: bytes = b"") -> bytes:
    """`content` with some bytes changed; `other` is another file to take pieces from."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(7):
            case 0 if place < len(data):
                data[place] ^= 1 << rng.randrange(8)
            case 1:
                del data[place:]
            case 2:
                del data[place : place + rng.choice((1, 4, 64))]
            case 3:
                data[place:place] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 8))))
            case 4:
                size = rng.choice((1, 2, 4, 8))
                number = rng.choice(_NUMBERS) % (1 << 8 * size)
                data[place : place + size] = number.to_bytes(size, rng.choice(("little", "big")))
            case 5 if other:
                start = rng.randrange(len(other))
                data[place : place + 64] = other[start : start + rng.choice((16, 256, 4096))]
            case _:
                data[place : place + 16] = bytes(data[:16])
    return bytes(data)


def text_of(rng: Random, text: str, words: tuple[str, ...]) -> str:
    """`text` with some of its words and signs changed for others of the language, or for hostile ones."""
    parts = re.findall(r"\w+|\s+|.", text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(len(parts) + 1)
        chosen = rng.choice(words) if rng.random() < 0.6 else rng.choice(TEXTS)
        match rng.randrange(4):
            case 0:
                parts[place : place + 1] = [chosen]
            case 1:
                parts.insert(place, chosen)
            case 2:
                del parts[place : place + rng.choice((1, 3))]
            case _:
                parts[place:place] = parts[: rng.choice((2, 8))] * rng.choice((1, 2, 40))
    return "".join(parts)


def json_of(rng: Random, content: bytes) -> bytes:
    """JSON with some of its values changed, removed or nested."""
    with suppress(ValueError, RecursionError):
        page = json.loads(content)
        for _ in range(rng.choice((1, 1, 2, 4))):
            page = _changed(rng, page)
        text = json.dumps(page)
        if rng.random() < 0.05:
            text = text.replace("0", "[" * 50_000, 1)
        return text.encode("utf-8", "surrogatepass")
    return bytes_of(rng, content)


def _changed(rng: Random, page: Any) -> Any:
    """`page` with one value changed, at any depth."""
    if isinstance(page, dict) and page and rng.random() < 0.9:
        key = rng.choice(list(page))
        if rng.random() < 0.1:
            return {name: value for name, value in page.items() if name != key}
        if rng.random() < 0.05:
            return page | {rng.choice(TEXTS): rng.choice(VALUES)}
        return page | {key: _changed(rng, page[key])}
    if isinstance(page, list) and page and rng.random() < 0.9:
        place = rng.randrange(len(page))
        return [*page[:place], _changed(rng, page[place]), *page[place + 1 :]]
    if isinstance(page, str) and page.startswith("{") and rng.random() < 0.8:
        return json_of(rng, page.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
    return rng.choice(VALUES)


def npy_of(rng: Random, content: bytes) -> bytes:
    """A .npy file with another header, or other values."""
    if rng.random() < 0.4:
        return bytes_of(rng, content)
    with suppress(ValueError, TypeError, SyntaxError, OverflowError):
        array = np.load(io.BytesIO(content), allow_pickle=False)
        if rng.random() < 0.5:
            data = io.BytesIO()
            np.save(data, _other_array(rng, array), allow_pickle=False)
            return data.getvalue()
    shapes = (
        "()",
        "(-1,)",
        "(0,)",
        "(4611686018427387904, 8)",
        "(1000000000,)",
        "('a',)",
        "None",
        "(2,",
        "(1.5,)",
    )
    kinds = ("<f8", "<i8", ">u8", "|O", "<U2000000000", "<f2", "<c16", "M8[s]", "nonsense", "|V0")
    header = f"{{'descr': '{rng.choice(kinds)}', 'fortran_order': False, 'shape': {rng.choice(shapes)}, }}"
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + content[128:]


def _other_array(rng: Random, array: Any) -> Any:
    match rng.randrange(5):
        case 0 if array.size and array.dtype.kind in "fiu":
            changed = array.copy().ravel()
            values = (
                (np.nan, np.inf, 1e300, -1, 0)
                if array.dtype.kind == "f"
                else (0, 1, np.iinfo(array.dtype).max)
            )
            changed[rng.randrange(changed.size)] = rng.choice(values)
            return changed.reshape(array.shape)
        case 1:
            return array.astype(rng.choice(("<f4", "<i8", "<u8", "<U4", "?")))
        case 2:
            return array.ravel()[: rng.randrange(array.size + 1)]
        case 3:
            return array[None]
        case _:
            return np.resize(array, rng.choice(((0,), (1,), (3, 3), (2, 2, 2), (1000,))))


def zip_of(rng: Random, content: bytes) -> bytes:
    """A zip with a member changed, removed, renamed, doubled or packed otherwise; or with bytes changed."""
    if rng.random() < 0.4:
        return bytes_of(rng, content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place = rng.randrange(len(members))
    name, member = members[place]
    match rng.randrange(8):
        case 0:
            del members[place]
        case 1:
            members[place] = (
                rng.choice((*TEXTS[:-4], "data", "W9.npy", "sizes.npy", "../../x.npy"))[:200] or "x",
                member,
            )
        case 2:
            members.append((f"{name}2", member))
        case 3:
            members[place] = (name, bytes(rng.choice((0, 100, 3_000_000))))
        case _:
            change = (
                npy_of if member.startswith(b"\x93NUMPY") else json_of if member[:1] == b"{" else bytes_of
            )
            members[place] = (name, change(rng, member))
    data = io.BytesIO()
    way = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with zipfile.ZipFile(data, "w", way) as archive, suppress(UnicodeEncodeError):
        for name, member in members:
            archive.writestr(name.replace("\0", "") or "x", member)
    return data.getvalue()


#: Values that SQL can hold where another type is expected.
_SQL_VALUES = (
    None,
    0,
    -1,
    1,
    2**62,
    2**63 - 1,
    -(2**63),
    1.5,
    1e308,
    float("inf"),
    float("-inf"),
    b"",
    b"\xff" * 9,
    *TEXTS,
)


def sqlite_of(rng: Random, path: Path) -> None:
    """Change the campaign file at `path`: by statements, or by bytes."""
    if rng.random() < 0.25:
        path.write_bytes(bytes_of(rng, path.read_bytes()))
        return
    with closing(sqlite3.connect(path, isolation_level=None)) as connection, suppress(sqlite3.Error):
        connection.execute("PRAGMA writable_schema = ON")
        for _ in range(rng.choice((1, 1, 2, 3))):
            with suppress(sqlite3.Error, UnicodeEncodeError, OverflowError):
                connection.execute(*_statement(rng, connection))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _statement(rng: Random, connection: sqlite3.Connection) -> tuple[str, tuple[Any, ...]]:
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    table = rng.choice(tables)
    columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
    column, value = rng.choice(columns or ["rowid"]), rng.choice(_SQL_VALUES)
    some = rng.choice(("", f' WHERE rowid IN (SELECT rowid FROM "{table}" LIMIT 1)'))
    match rng.randrange(12):
        case 0:
            return f'DROP TABLE "{table}"', ()
        case 1:
            return f'DELETE FROM "{table}"{some}', ()
        case 2:
            return f'ALTER TABLE "{table}" DROP COLUMN "{column}"', ()
        case 3:
            return f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{rng.choice(columns)}_"', ()
        case 4:
            endless = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x AS id FROM r"
            connection.execute(f'DROP TABLE "{table}"')
            return f'CREATE VIEW "{table}" AS {endless}', ()
        case 5 | 6:
            row = connection.execute("SELECT value FROM about WHERE name = 'config'").fetchone()
            config = json_of(rng, row[0].encode()) if row and isinstance(row[0], str) else b"{}"
            text = config.decode("utf-8", "replace")
            return "UPDATE about SET value = ? WHERE name = 'config'", (text,)
        case 7:
            return f'INSERT INTO "{table}" SELECT * FROM "{table}" LIMIT 3', ()
        case 8:
            return f"PRAGMA user_version = {rng.choice((0, 4, 6, 2**31 - 1))}", ()
        case _:
            return f'UPDATE OR IGNORE "{table}" SET "{column}" = ?{some}', (value,)
