"""An estimate that was kept beside a campaign, by `policyfuzz estimate -o` or `--json`."""

import json
import math
from dataclasses import fields
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.files import read_regular
from policyfuzz.core.zip_files import DamagedZip
from policyfuzz.store.plain_records import from_plain
from policyfuzz.store.reader import CampaignReader
from policyfuzz.triage.estimate import Estimate
from policyfuzz.triage.estimate_file import known_estimate

#: What `--json` printed, and the file that an estimation goes on from.
FILE_NAMES = ("estimate.json", "estimate.npz")
_MOST_BYTES = 50_000_000


def estimate_path(folder: Path) -> Path:
    """Where the estimate of the campaign in `folder` is kept best: it goes on from there after a stop."""
    return folder / FILE_NAMES[1]


def stored_estimate(campaign: CampaignReader) -> Estimate | None:
    """The estimate beside `campaign` of the most episodes; None without one of the same target and policy."""
    config = campaign.config
    found = [_read(campaign.folder / name) for name in FILE_NAMES]
    same = [
        one
        for one in found
        if one is not None and (one.target, one.policy_sha256) == (config.target, config.policy_sha256)
    ]
    return max(same, key=lambda one: one.episodes, default=None)


def estimate_or_problem(campaign: CampaignReader) -> tuple[Estimate | None, str]:
    """The estimate beside `campaign`, and what is wrong with its file, from which no page may suffer."""
    try:
        return stored_estimate(campaign), ""
    except CampaignError as error:
        return None, f"{error.message}; {error.hint}"


def _read(path: Path) -> Estimate | None:
    """The estimate in the file at `path`; None without one, or while a command prints into it."""
    if not path.is_file():
        return None
    try:
        content = read_regular(path, _MOST_BYTES, CampaignError)
        values = known_estimate(content) if path.suffix == ".npz" else json.loads(content or b"null")
        return None if values is None else _checked(values)
    except (DamagedZip, KeyError, TypeError, ValueError, RecursionError) as error:
        raise CampaignError(
            f"cannot read {path}: {error!r:.100}", "remove it, and run policyfuzz estimate again"
        ) from error


def _checked(values: Any) -> Estimate:
    """The estimate that `values` of a stranger are."""
    numbers = {one.name for one in fields(Estimate) if one.type is float}
    if isinstance(values, dict):  # JSON has no NaN, null stands for it
        values |= {name: math.nan for name in numbers if values.get(name, 0) is None}
    found = from_plain(Estimate, values)
    if not 0 <= found.low <= found.probability <= found.high <= 1 or found.episodes < 0:
        raise ValueError("its numbers are no probabilities")
    return found
