"""Comparisons that were kept beside a campaign, by `policyfuzz compare -o` or `--json`: DIR/compare*.json."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.files import names_in, read_regular
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.report.tally import GROUPS, Counts, Tally
from policyfuzz.store.plain_records import from_plain

#: Files that are looked at, and their size: they hold an ending for every case.
_MOST_FILES, _MOST_BYTES = 10, 50_000_000
#: More cases than anybody can run.
_MOST_CASES = 10**12
#: Names in a file by the fields of a tally.
_NAMES = {name: name for name in Tally.__dataclass_fields__} | {"searched": "campaigns"}


@dataclass(frozen=True, slots=True)
class StoredComparison:
    """A file beside a campaign: the comparison in it, or why there is none to show."""

    name: str  #: of the file
    tally: Tally | None
    problem: str = ""


def comparison_names(folder: Path) -> list[str]:
    """The files in `folder` that may hold comparisons, by name."""
    return [one for one in names_in(folder) if one.startswith("compare") and one.endswith(".json")][
        :_MOST_FILES
    ]


def stored_comparisons(folder: Path, config: CampaignConfig) -> list[StoredComparison]:
    """The comparisons beside the campaign in `folder` with its policy as A or B, and why others are none."""
    found = [_read(folder / name) for name in comparison_names(folder)]
    return [
        one
        if one.tally is None or _is_about(one.tally, config.target, config.policy_sha256)
        else StoredComparison(one.name, None, "it is about another target, or about other policies")
        for one in found
    ]


def _is_about(tally: Tally, target: str, policy_sha256: str) -> bool:
    return tally.target == target and policy_sha256 in tally.policy_sha256


def _read(path: Path) -> StoredComparison:
    try:
        if path.is_symlink():
            return StoredComparison(path.name, None, "it is a link, and only files in the campaign are read")
        text = read_regular(path, _MOST_BYTES, CampaignError)
        values = json.loads(text) if text else {}  # empty: a command that prints into it still runs
        if not isinstance(values, dict):
            raise ValueError("it holds no names")
        summary = values.get("summary", values)
        if not values or ("cases" in values and "groups" not in summary):
            return StoredComparison(path.name, None, "the comparison has not come to its end")
        return StoredComparison(path.name, _tally(summary))
    except (ValueError, RecursionError) as error:
        return StoredComparison(path.name, None, f"it holds no comparison: {error!s:.100}")
    except CampaignError as error:
        return StoredComparison(path.name, None, error.message)


def _tally(summary: Any) -> Tally:
    """The counts in a `summary` that a stranger may have written; raises ValueError if they make no sense."""
    if not isinstance(summary, dict):
        raise ValueError("its summary holds no names")
    found = from_plain(Tally, {one: summary[name] for one, name in _NAMES.items() if name in summary})
    if not set(found.groups) <= set(GROUPS) or not all(map(_is_possible, found.groups.values())):
        raise ValueError("its counts contradict each other")
    if not 0 < found.cases <= found.planned <= _MOST_CASES:
        raise ValueError(f"{found.cases:,} of {found.planned:,} cases were run")
    if len(found.policy_sha256) != 2 or len(found.searched) not in (0, 2):
        raise ValueError("it is not about two policies")
    return found


def _is_possible(counts: Counts) -> bool:
    lost = counts.cases - counts.counted
    errors = counts.errors_of_a, counts.errors_of_b
    return min(asdict(counts).values()) >= 0 and max(errors) <= lost <= sum(errors)
