import json
import math
from dataclasses import dataclass

import pytest

from policyfuzz.store.plain_records import from_plain, to_plain


@dataclass(frozen=True, slots=True)
class Part:
    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    count: int
    part: Part | None = None
    parts: tuple[Part, ...] = ()
    by_name: dict[str, int] | None = None
    is_true: bool = False


WHOLE = Whole(3, Part("a", (1.5, math.inf)), (Part("b", ()),), {"x": 1}, True)


def test_records_go_through_json_and_back():
    assert from_plain(Whole, json.loads(json.dumps(to_plain(WHOLE), allow_nan=False))) == WHOLE


def test_nan_comes_back():
    assert math.isnan(from_plain(Part, to_plain(Part("", (math.nan,)))).values[0])


def test_missing_fields_have_their_defaults():
    assert from_plain(Whole, {"count": 1}) == Whole(1)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"count": True},
        {"count": "1"},
        {"count": 1.0},
        {"count": 1, "other": 2},
        {"count": 1, "part": {"name": "a"}},
        {"count": 1, "part": {"name": "a", "values": [1, "Nan"]}},
        {"count": 1, "part": {"name": "a", "values": [10**400]}},
        {"count": 1, "parts": {"name": "a"}},
        {"count": 1, "by_name": {"x": "1"}},
        {"count": 1, "is_true": 1},
    ],
)
def test_what_is_no_record_is_refused(value):
    with pytest.raises(ValueError):  # noqa: PT011 - any reason is right
        from_plain(Whole, value)


def test_numbers_that_no_file_of_ours_holds_are_refused():
    for value in (10**400, -(10**30)):
        with pytest.raises(ValueError, match="too large"):
            from_plain(Whole, {"count": value})
