"""The JSON file that holds a verdict: beside the new policy, and beside the campaign that was repaired from.

A stranger may have written it, so every value is checked.
"""

import json
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.repairing.journal import read_report
from policyfuzz.repairing.verdict import Verdict
from policyfuzz.store.plain_records import from_plain

#: In the folder of a campaign: the verdict on the last repair of its policy.
FILE_NAME = "repair.json"
_HINT = "remove it, and run policyfuzz repair again"


def write_verdict(path: Path, verdict: Verdict) -> None:
    """Write `verdict` into the file at `path`."""
    make_folder_of(path)
    with whole_file(path) as unfinished:
        unfinished.write_text(json.dumps(verdict.summary(), allow_nan=False, indent=1))


def read_verdict(path: Path) -> Verdict:
    """The verdict in the file at `path`."""
    values = read_report(path, _HINT)
    claims = [values.pop("holds", None), values.pop("held", None)]
    try:
        _check_counts(values)
        verdict = from_plain(Verdict, values)
        if claims != [verdict.holds, [one.holds for one in verdict.all_lines]]:
            raise ValueError("it says something else than its numbers do")
        verdict.lines()  # fails where numbers do not fit together
    except (TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError) as error:
        raise CampaignError(f"{path} holds no verdict of a repair: {error!r:.120}", _HINT) from error
    return verdict


def _check_counts(value: Any) -> None:
    """Raises ValueError for a negative whole number and for what is no number, wherever it is in `value`."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _check_counts(one)
    elif (type(value) is int and value < 0) or value in ("NaN", "Infinity", "-Infinity"):
        raise ValueError(f"{value!r:.40} is no count")
