"""Frozen records of plain values as JSON and back, every value checked: the file may be a stranger's."""

import dataclasses
import math
import types
from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Record = TypeVar("Record")

#: No count, step or number of a finding is larger.
_LARGEST = 2**62
#: NaN and infinite numbers, which JSON does not know.
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_plain(value: Any) -> Any:
    """`value`, a record or what a field of one may hold, as JSON knows it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): to_plain(one) for key, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return next(name for name, number in _NUMBERS.items() if str(number) == str(value))
    return value


def from_plain(kind: type[Record], value: Any) -> Record:
    """The record of this `kind` that `value` is; raises ValueError if it is none.

    Fields are int, float, str, bool, None, records, tuples of one kind, dictionaries by text, or unions of
    these. A field that is missing has its default.
    """
    found: Record = _restored(kind, value)
    return found


def _restored(kind: Any, value: Any) -> Any:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _one_of(get_args(kind), value)
    if origin is tuple:
        return _restored_tuple(get_args(kind)[0], _expect(list, value))
    if origin is dict:
        return {key: _restored(get_args(kind)[1], one) for key, one in _expect(dict, value).items()}
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _record(kind, _expect(dict, value))
    if kind is float:
        return _number(value)
    return _expect(type(None) if kind is None else kind, value)


def _restored_tuple(kind: Any, values: list[Any]) -> tuple[Any, ...]:
    # a mode may have a hundred thousand members: whole numbers are checked all at once
    if kind is int and set(map(type, values)) <= {int} and max(map(abs, values), default=0) <= _LARGEST:
        return tuple(values)
    return tuple(_restored(kind, one) for one in values)


def _record(kind: type[Any], given: dict[str, Any]) -> Any:
    hints = _hints(cast(Hashable, kind))
    if unknown := given.keys() - hints.keys():
        raise ValueError(f"{kind.__name__} has no {sorted(unknown)[0]!r:.50}")
    try:
        return kind(**{name: _restored(hints[name], one) for name, one in given.items()})
    except TypeError as error:  # something is missing
        raise ValueError(str(error)) from error


def _number(value: Any) -> float:
    if isinstance(value, str) and value in _NUMBERS:
        return _NUMBERS[value]
    try:
        return float(value if type(value) is int else _expect(float, value))
    except OverflowError as error:
        raise ValueError(f"{value!r:.50} is too large") from error


def _one_of(kinds: tuple[Any, ...], value: Any) -> Any:
    for kind in kinds:
        try:
            return _restored(kind, value)
        except ValueError:
            continue
    raise ValueError(f"{value!r:.50} is not allowed here")


def _expect(kind: type, value: Any) -> Any:
    if kind is int and type(value) is int and abs(value) > _LARGEST:
        raise ValueError(f"{value!r:.50} is too large")
    if type(value) is not kind:
        raise ValueError(f"{value!r:.50} is not allowed here, expected {kind.__name__}")
    return value


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)
