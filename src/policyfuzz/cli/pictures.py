"""Names of pictures that a user gives."""

from pathlib import Path

from policyfuzz.report.png_files import check_png


def png_path(path: Path | None) -> Path | None:
    """`path` of a PNG file; raises if it has another ending."""
    check_png(path)
    return path
