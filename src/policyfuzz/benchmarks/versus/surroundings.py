"""Where a trial was run: machine, versions, and which code of ours."""

import hashlib
import os
import platform
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

_PACKAGES = ("policyfuzz", "numpy", "scipy", "numba", "gymnasium", "mdpfuzz", "ribs", "torch")
#: Folders of the package that the findings of its strategies come from.
_SEARCHES = ("search", "density", "core", "campaign")


def surroundings() -> dict[str, Any]:
    """Machine, versions and date, as plain data."""
    return {
        "machine": _machine(),
        "python": platform.python_version(),
        "versions": _versions(),
        "code": code_digest(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def code_digest() -> str:
    """The first digits of a hash of all code that decides what our strategies find."""
    digest = hashlib.sha256()
    for folder in _SEARCHES:
        for file in _sources(resources.files("policyfuzz").joinpath(folder)):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _sources(folder: Traversable) -> list[Traversable]:
    return sorted(
        (file for file in folder.iterdir() if file.name.endswith(".py")), key=lambda file: file.name
    )


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue  # an optional one
    return found


@cache
def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_processor()}, {cores} cores, {platform.system()} {platform.machine()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"
