"""All of a campaign that must be the same whenever, wherever and by whom it was run."""

from pathlib import Path
from typing import Any

from policyfuzz import CampaignReader

#: Columns that tell of time and of who ran episodes; the rest must be equal.
_OTHERWISE = ("seconds", "workers", "workers_ready", "restarts")


def tables(folder: Path | str) -> dict[str, list[dict[str, Any]]]:
    """Rows of findings, seeds, errors and batches, without what may differ."""
    reader = CampaignReader(folder)
    return {
        name: [_lasting(row) for row in reader.iterate(name)]
        for name in ("findings", "seeds", "errors", "batches")
    }


def _lasting(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if not name.endswith(_OTHERWISE)}
    if row.get("kind") in ("crashed", "hung"):
        del kept["text"]  # numbers of processes and places in memory
    return kept
