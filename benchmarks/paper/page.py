"""The page of results: what the paper says, what we found, and where they differ."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.paper.results import Result


def write_page(results: Sequence[Result], page: Path, notes: str = "") -> None:
    """Write the page from `results` alone."""
    raise NotImplementedError
