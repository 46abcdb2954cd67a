"""Reads a verdict from its JSON file, which a stranger may have written."""

import dataclasses
import math
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from policyfuzz.core.errors import CampaignError
from policyfuzz.repairing.journal import read_report
from policyfuzz.repairing.verdict import Verdict

Record = TypeVar("Record")


def read_verdict(path: Path) -> Verdict:
    """The verdict in the file at `path`."""
    values = read_report(path)
    try:
        verdict = _record(
            Verdict, {name: one for name, one in values.items() if name not in ("holds", "held")}
        )
        if [values.get("holds"), values.get("held")] != [
            verdict.holds,
            [one.holds for one in verdict.all_lines],
        ]:
            raise ValueError("it says something else than its numbers do")
    except (KeyError, TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
        raise CampaignError(
            f"{path} holds no verdict of a repair: {error!r:.120}", "remove it, and run the repair again"
        ) from error
    return verdict


def _record(kind: type[Record], values: Any) -> Record:
    hints = get_type_hints(kind)
    names = {one.name for one in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if not isinstance(values, dict) or values.keys() != names:
        raise ValueError(f"expected {', '.join(sorted(names))}")
    return kind(**{name: _value(hints[name], values[name]) for name in names})


def _value(kind: Any, value: Any) -> Any:
    if dataclasses.is_dataclass(kind):
        return _record(kind, value)  # type: ignore[arg-type]
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise ValueError("a list is missing")
        return tuple(_value(get_args(kind)[0], one) for one in value)
    allowed = get_args(kind) or (kind,)
    if float in allowed and type(value) is int:
        value = float(value)
    if type(value) not in allowed or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{value!r:.40} is not {kind}")
    if type(value) is int and value < 0:
        raise ValueError(f"{value} is no count")
    return value
