"""The input of a finding beside others: its parent, the nearest input that passes, and a usual one."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.report.outside import own_range_text
from policyfuzz.report.unit_inputs import unit_share
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Finding
from policyfuzz.store.triage_records import Boundary
from policyfuzz.web.words import short, value_text

#: Seeds among which a usual one is looked for.
_USUAL_AMONG = 500
#: Dimensions that a page shows.
_MOST_ROWS = 200
#: Changes smaller than this share of the range are rounding.
_SAME = 1e-12


@dataclass(frozen=True, slots=True)
class Other:
    """An input that a finding is compared with."""

    key: str  #: names its colour
    label: str
    about: str  #: where it comes from
    values: NDArray[np.float64]  #: (d,)


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of one input."""

    key: str
    text: str
    share: float  #: of the range, for a picture
    is_other: bool  #: it differs from the finding's


@dataclass(frozen=True, slots=True)
class Row:
    """One dimension of all inputs."""

    name: str
    unit: str
    low: str
    high: str
    cells: tuple[Cell, ...]  #: the finding's comes first
    own: str  #: what the environment's own reset draws, if that is known


@dataclass(frozen=True, slots=True)
class InputTable:
    """A finding's input beside others."""

    others: tuple[Other, ...]
    rows: tuple[Row, ...]
    hidden: int  #: dimensions that are not shown


def input_table(campaign: CampaignReader, finding: Finding, boundary: Boundary | None) -> InputTable:
    """The input of `finding` beside all that is known of others."""
    others = [*_parent(campaign, finding), *_partner(campaign, boundary), *_usual(campaign)]
    values = np.stack([finding.input, *(one.values for one in others)])
    keys = ["finding", *(one.key for one in others)]
    shown = range(min(len(campaign.dimensions), _MOST_ROWS))
    rows = tuple(_row(campaign, campaign.dimensions[place], keys, values[:, place]) for place in shown)
    return InputTable(tuple(others), rows, len(campaign.dimensions) - len(rows))


def _row(
    campaign: CampaignReader, dimension: Mapping[str, Any], keys: Sequence[str], values: NDArray[np.float64]
) -> Row:
    shares = np.clip(np.nan_to_num(unit_share(dimension, values)), 0.0, 1.0)
    cells = tuple(
        Cell(key, value_text(dimension, float(value)), round(float(share), 4), abs(share - shares[0]) > _SAME)
        for key, value, share in zip(keys, values, shares, strict=True)
    )
    return Row(
        short(dimension["name"], 60),
        short(dimension["unit"], 20),
        value_text(dimension, float(dimension["low"]), 4),
        value_text(dimension, float(dimension["high"]), 4),
        cells,
        short(own_range_text(campaign, str(dimension["name"]), float(values[0]))),
    )


def _parent(campaign: CampaignReader, finding: Finding) -> list[Other]:
    if finding.parent is None:
        return []
    for row in campaign.select("seeds", "id = ?", (finding.parent,), most=1):
        earned = row["return"]
        about = (
            f"seed {finding.parent:,}, return {earned:.4g}"
            if earned is not None
            else f"seed {finding.parent:,}"
        )
        return [Other("parent", "parent", about, _values(campaign, row))]
    return []


def _partner(campaign: CampaignReader, boundary: Boundary | None) -> list[Other]:
    """The nearest input that passes, if `minimize` or triage has found one."""
    passing = () if boundary is None else boundary.passing
    if (
        boundary is None
        or len(passing) != len(campaign.input_columns)
        or not all(map(math.isfinite, passing))
    ):
        return []
    about = f"{boundary.distance:.3g} away in the unit cube"
    return [Other("passing", "nearest that passes", about, np.array(passing, np.float64))]


def _usual(campaign: CampaignReader) -> list[Other]:
    """The random draw that lies nearest to the middle of some that passed."""
    rows = list(campaign.select("seeds", "parent IS NULL AND NOT is_crash", most=_USUAL_AMONG))
    if not rows:
        return []
    inputs = np.array([_values(campaign, row) for row in rows])
    columns = [unit_share(one, values) for one, values in zip(campaign.dimensions, inputs.T, strict=True)]
    unit = np.nan_to_num(np.stack(columns, axis=1))
    nearest = int(np.abs(unit - np.median(unit, axis=0)).sum(axis=1).argmin())
    about = f"seed {rows[nearest]['id']:,}, a random draw that passes, near the middle of {len(rows):,}"
    return [Other("usual", "usual", about, inputs[nearest])]


def _values(campaign: CampaignReader, row: Mapping[str, Any]) -> NDArray[np.float64]:
    return np.array([row[name] for name in campaign.input_columns], np.float64)
