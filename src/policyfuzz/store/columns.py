"""Columns of the tables in a campaign file, described once: by the fields of the record that a row stores.

A field `x: Annotated[int, Column("INTEGER NOT NULL", "what it means")]` is stored in column `x`. The tables
of the file, the rows that are written and the records that are read all follow from such fields, by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar, get_type_hints


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    kind: str  #: its SQL type with constraints
    meaning: str  #: for readers of the file; docs/campaign-file.md repeats it
    name: str | None = None  #: where it differs from the name of the field


class IsDataclass(Protocol):
    """Any record."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Record = TypeVar("Record", bound=IsDataclass)


def columns_of(record: type[IsDataclass]) -> dict[str, Column]:
    """Name to column of all fields of `record` that are stored in columns, in order."""
    return {name: column for name, (_, _, column) in _stored_fields(record).items()}


def row_of(record: IsDataclass) -> dict[str, Any]:
    """The row that stores `record`. SQLite itself stores NaN as NULL."""
    return {name: getattr(record, field) for name, (field, _, _) in _stored_fields(type(record)).items()}


def record_of(kind: type[Record], row: Mapping[str, Any], **others: Any) -> Record:
    """The record of this `kind` that `row` stores; `others` are fields that have no column."""
    stored = _stored_fields(kind).items()
    return kind(**{field: _restored(type_, row[name]) for name, (field, type_, _) in stored}, **others)


@cache
def _stored_fields(record: type[IsDataclass]) -> dict[str, tuple[str, Any, Column]]:
    """Column name to the name, the type and the column of each field that has one."""
    stored = {}
    hints = get_type_hints(record, include_extras=True)
    for field in fields(record):
        for column in getattr(hints[field.name], "__metadata__", ()):
            stored[column.name or field.name] = field.name, hints[field.name].__origin__, column
    return stored


def _restored(kind: Any, value: Any) -> Any:
    """`value` as the field had it: SQLite knows neither NaN nor truth values."""
    if kind is float and value is None:
        return float("nan")
    return bool(value) if kind is bool else value
