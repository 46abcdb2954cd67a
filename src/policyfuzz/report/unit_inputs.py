"""Inputs of a campaign in the unit cube, by the ranges that its file tells."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: What lies farther out than this is clipped; a sound campaign stays within 0 and 1.
_FARTHEST = 10.0


def unit_columns(dimension: Mapping[str, Any], values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """`values` (n,) by their share of the range; an angle as a point on a circle, so that it wraps round."""
    if dimension["kind"] == "angle":
        return [np.cos(values) / 2, np.sin(values) / 2]
    return [unit_share(dimension, values)]


def unit_share(dimension: Mapping[str, Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`values` (n,) by their share of the range, an angle too: a coordinate in the unit cube."""
    low, high = float(dimension["low"]), float(dimension["high"])
    with np.errstate(over="ignore", invalid="ignore"):
        # halves: the range of a stranger's dimension may be larger than any number
        share = (values / 2 - low / 2) / max(high / 2 - low / 2, 1e-300)
    return np.clip(np.nan_to_num(share), -_FARTHEST, _FARTHEST)
