"""Tables and lists of a page in Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.paper.results import Result

NOT_RUN = "not run"


def number(value: float) -> str:
    """`value` with a decimal where it matters."""
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:,.1f}"


def listed(numbers: Sequence[int]) -> str:
    """`numbers` one after another."""
    return ", ".join(f"{number:,}" for number in numbers)


def bullets(lines: Iterable[str]) -> str:
    """A list with a point for each of `lines`."""
    return "\n".join(f"- {line}" for line in lines)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; short rows are filled with empty cells."""
    filled = [[*row, *[""] * (len(heads) - len(row))] for row in rows]
    lines = [heads, ["---"] * len(heads), *filled]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def beside(page: Path, name: str) -> Path:
    """Where the picture called `name` lies for a `page`."""
    return page.with_name(f"{page.stem}-{name}.png")


def area(value: float) -> str:
    """An area under a ROC curve, which may not be known."""
    return "-" if np.isnan(value) else f"{value:.3f}"


def left_out(known: Mapping[str, Result | None]) -> str:
    """A line about the scenarios without a result, after a table; empty if there is none."""
    missing = [f"`{label}`" for label, one in known.items() if one is None]
    return f"\n\nNot run: {', '.join(missing)}." if missing else ""
