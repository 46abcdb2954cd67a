"""An estimate that was kept beside a campaign: what `policyfuzz estimate --json` printed."""

import json
import math
from dataclasses import fields
from pathlib import Path

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.files import read_regular
from policyfuzz.store.plain_records import from_plain
from policyfuzz.store.reader import CampaignReader
from policyfuzz.triage.estimate import Estimate

FILE_NAME = "estimate.json"
_MOST_BYTES = 1_000_000


def estimate_path(folder: Path) -> Path:
    """Where the estimate of the campaign in `folder` is looked for."""
    return folder / FILE_NAME


def stored_estimate(campaign: CampaignReader) -> Estimate | None:
    """The estimate beside `campaign`, None if there is none, or one of another target or policy."""
    path = estimate_path(campaign.folder)
    if not path.is_file():
        return None
    try:
        values = json.loads(read_regular(path, _MOST_BYTES, CampaignError))
        numbers = {one.name for one in fields(Estimate) if one.type is float}
        if isinstance(values, dict):  # JSON has no NaN, null stands for it
            values |= {name: math.nan for name in numbers if values.get(name, 0) is None}
        found = from_plain(Estimate, values)
        if not 0 <= found.low <= found.probability <= found.high <= 1 or found.episodes < 0:
            raise ValueError("its numbers are no probabilities")
    except (ValueError, RecursionError) as error:
        raise CampaignError(
            f"cannot read {path}: {error!r:.100}", "remove it, and run policyfuzz estimate again"
        ) from error
    config = campaign.config
    is_same = (found.target, found.policy_sha256) == (config.target, config.policy_sha256)
    return found if is_same else None
