"""Inputs for a reader."""

import json
from collections.abc import Mapping
from typing import Any


def value_text(dimension: Mapping[str, Any], value: float, number_format: str = "") -> str:
    """The value of an input for a reader: a number, or the name of what was chosen."""
    options = dimension.get("options")  # files of earlier versions have none
    if options:
        return str(json.loads(options)[int(value)])
    return f"{value:.0f}" if dimension["kind"] in ("integer", "seed") else format(float(value), number_format)
