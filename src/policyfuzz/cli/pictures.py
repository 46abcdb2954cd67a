"""Names of pictures that a user gives."""

from pathlib import Path

from policyfuzz.core.errors import UsageError


def png_path(path: Path | None) -> Path | None:
    """`path` of a PNG file; raises if it has another ending."""
    if path is not None and path.suffix.lower() != ".png":
        raise UsageError(f"cannot draw into {path.name!r}", "name a file that ends in .png")
    return path
