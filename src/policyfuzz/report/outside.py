"""How far the inputs of a campaign lie outside of what the environment's own reset draws."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.own_reset import OwnReset, crash_counts
from policyfuzz.store.reader import CampaignReader


def own_reset_of(campaign: CampaignReader) -> OwnReset | None:
    """What the own reset draws; None where the campaign does not say."""
    return _parsed(campaign.about.get("own_reset", ""))


@lru_cache(maxsize=8)
def _parsed(text: str) -> OwnReset | None:
    return OwnReset.from_json(text)


def own_crashes_of(campaign: CampaignReader) -> dict[str, int] | None:
    """Crashes and episodes from the own reset; None where the campaign does not say."""
    counts = list(crash_counts(campaign.about.get("own_crashes")))
    return dict(zip(("crashes", "episodes"), counts, strict=True)) if counts else None


def excesses(campaign: CampaignReader, row: NDArray[np.float64]) -> dict[str, float] | None:
    """Name to how far an input (d,) lies outside, the farthest first; None where that is not known."""
    own, names = own_reset_of(campaign), _names(campaign)
    if own is None or not own.ranges:
        return None
    return own.excesses(dict(zip(names, row.tolist(), strict=True)))


def outside_text(campaign: CampaignReader, row: NDArray[np.float64]) -> str:
    """The same in a few words: "theta by 0.08 rad", "inside", or empty where it is not known."""
    own, found = own_reset_of(campaign), excesses(campaign, row)
    if own is None or found is None:
        return ""
    if not found:
        return "inside" if own.knows_all(_names(campaign)) else "inside, where known"
    name, by = next(iter(found.items()))
    more = f", {len(found) - 1} more" if len(found) > 1 else ""
    return f"{name}{_amount(campaign, own, name, by)}{more}"


def own_range_text(campaign: CampaignReader, name: str, value: float) -> str:
    """What the own reset draws of one dimension, and how far `value` is outside; empty if not known."""
    own = own_reset_of(campaign)
    if own is None or name not in own.ranges or _kind(campaign, name) == "seed":
        return ""
    own_range = own.ranges[name]
    if _kind(campaign, name) == "choice":
        return "" if own_range.excess(value) == 0 else "the environment's own reset never draws this"
    drawn = f"own reset: {own_range.text}"
    by = own_range.excess(value)
    return f"{drawn}, outside{_amount(campaign, own, name, by)}" if by else drawn


def _amount(campaign: CampaignReader, own: OwnReset, name: str, by: float) -> str:
    if _kind(campaign, name) == "choice":
        return ""
    return f" by {abs(by):.2g} {own.ranges[name].unit}".rstrip()


def _names(campaign: CampaignReader) -> list[str]:
    return [str(dimension["name"]) for dimension in campaign.dimensions]


def _kind(campaign: CampaignReader, name: str) -> str:
    found: Mapping[str, Any] = next((one for one in campaign.dimensions if one["name"] == name), {})
    return str(found.get("kind", "real"))
