"""Refuses what no campaign of ours can hold: campaign files may come from strangers, or be damaged."""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from operator import lt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.store.records import Column

#: SQL type of a column to the Python type of its values, and its name for a reader.
_TYPES = {
    "INTEGER": (int, "a whole number"),
    "REAL": (float, "a number"),
    "TEXT": (str, "text"),
    "BLOB": (bytes, "bytes"),
}
#: Kinds of arrays that a state is made of: truth values, whole numbers, numbers.
_ARRAY_KINDS = "biuf"


class Damage(Exception):
    """The file holds what no campaign can hold."""


def check_tables(connection: sqlite3.Connection, tables: Mapping[str, Mapping[str, Column]]) -> None:
    """Refuse a file without these ordinary `tables`, or whose columns are missing or of another type.

    A view or a virtual table in their place could run for ever, and so could a computed column. A trigger
    would run whenever we write.
    """
    # views and virtual tables have no pages
    query = "SELECT name, tbl_name, type, rootpage FROM sqlite_master LIMIT 10000"
    found = connection.execute(query).fetchall()
    ordinary = {name for name, _, kind, page in found if kind == "table" and page}
    for name, columns in tables.items():
        if name not in ordinary:
            raise Damage(f"it has no table {name}")
        _check_columns(connection, name, columns)
    triggers = [name for name, table, kind, _ in found if kind == "trigger" and table in tables]
    if triggers:
        raise Damage(f"it has a trigger {triggers[0]!r}, which no campaign has")


def _check_columns(connection: sqlite3.Connection, table: str, columns: Mapping[str, Column]) -> None:
    described = connection.execute("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)", (table,))
    found = {name: (kind, bool(key), hidden) for name, kind, key, hidden in described}
    for name, column in columns.items():
        if name not in found:
            raise Damage(f"table {table} has no column {name!r}")
        if found[name] != (column.kind.split()[0], "PRIMARY KEY" in column.kind, 0):
            raise Damage(f"column {name!r} of table {table} is not {column.kind}")


def check_rows(table: str, columns: Mapping[str, Column], rows: Sequence[Sequence[Any]]) -> None:
    """Refuse `rows` of `table` that hold values of another type, or are not in the order of the first column.

    Whole numbers of a campaign are never negative, and numbers that must be there are finite.
    """
    for (name, column), values in zip(columns.items(), zip(*rows, strict=True), strict=False):
        kind, expected = _TYPES[column.kind.split()[0]]
        is_needed = column.kind != column.kind.split()[0]
        others = set(map(type, values)) - ({kind} if is_needed else {kind, type(None)})
        if others:
            given = "nothing" if type(None) in others else next(iter(others)).__name__
            raise Damage(f"column {name!r} of table {table} holds {given}, expected {expected}")
        if kind is int and min((value for value in values if value is not None), default=0) < 0:
            raise Damage(f"column {name!r} of table {table} holds a negative number")
        if kind is float and is_needed and not all(map(math.isfinite, values)):
            raise Damage(f"column {name!r} of table {table} holds an infinite number")
    keys = [row[0] for row in rows]
    if not all(map(lt, keys, keys[1:])):
        raise Damage(f"the rows of table {table} are not in order")


def check_dimensions(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], most: int) -> None:
    """Refuse `rows` of the table of dimensions that describe no input space with these `columns`."""
    names = [row["name"] for row in rows]
    if not 0 < len(rows) <= most:
        raise Damage(f"it has {len(rows):,} dimensions, expected 1 to {most}")
    if len({name.lower() for name in names}) < len(names):
        raise Damage("two dimensions have the same name")
    if [row["column"] for row in rows] != list(columns) or any("\0" in name for name in columns):
        raise Damage("the columns of its dimensions do not fit their names")
    for row in rows:
        if not row["low"] <= row["high"]:
            raise Damage(f"dimension {row['name']!r} ranges from {row['low']} to {row['high']}")
        if row["options"] is not None:
            options = parsed_json(row["options"])
            is_list = isinstance(options, list) and all(isinstance(option, str) for option in options)
            if not is_list or (row["low"], row["high"]) != (0, len(options) - 1):
                raise Damage(f"the options of dimension {row['name']!r} make no sense")


def check_choices(dimensions: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]], first: int) -> None:
    """Refuse `rows` whose inputs, which start at column `first`, choose what is not among the options."""
    for place, dimension in enumerate(dimensions, first):
        if dimension["options"] is not None and not all(
            0 <= row[place] <= dimension["high"] and row[place] == int(row[place]) for row in rows
        ):
            raise Damage(f"input {dimension['name']!r} chooses what is not among its options")


def parsed_json(text: str) -> Any:
    """The value that `text` holds."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Damage(f"it holds JSON that cannot be read: {error}") from error


def stored_array(name: str, dtype: str, shape: str, data: bytes) -> NDArray[Any]:
    """The array of the state that is stored in this way."""
    try:
        kind, sizes = np.dtype(dtype), parsed_json(shape)
    except (TypeError, ValueError, SyntaxError) as error:
        raise Damage(f"the state {name!r} is of type {dtype!r}") from error
    is_shape = isinstance(sizes, list) and all(type(size) is int and size >= 0 for size in sizes)
    if kind.kind not in _ARRAY_KINDS or not kind.isnative or not is_shape or len(sizes) > 8:
        raise Damage(f"the state {name!r} is no array of numbers")
    if math.prod(sizes) * kind.itemsize != len(data):
        raise Damage(f"the state {name!r} has {len(data):,} bytes, its shape is {shape[:100]}")
    return np.frombuffer(data, kind).reshape(sizes).copy()
