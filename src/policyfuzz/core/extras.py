"""Optional packages: imported where they are used; the error for a missing one says how to install it."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from policyfuzz.core.errors import MissingExtra

#: The last Python that the package of an extra supports, if that is not the newest.
_NEWEST_PYTHON = {"metadrive": (3, 11), "carla": (3, 12)}


def load(module: str, extra: str) -> Any:
    """The `module` of an optional package; `extra` is the extra of PolicyFuzz that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise  # the package is installed, and something that it needs is not
        raise MissingExtra(package, install_hint(extra)) from error


def install_hint(extra: str) -> str:
    """How to install `extra` on this Python."""
    newest = _NEWEST_PYTHON.get(extra)
    hint = _install_line(extra)
    if newest is not None and sys.version_info[:2] > newest:
        here = ".".join(map(str, sys.version_info[:2]))
        return f"{hint} with Python {'.'.join(map(str, newest))} or older; this is {here}"
    return hint


def _install_line(extra: str) -> str:
    """The command that adds `extra` to PolicyFuzz as installed here: from a checkout, a wheel or an index."""
    checkout = Path(__file__).parents[3]
    if (checkout / "pyproject.toml").is_file() and (checkout / "constraints.txt").is_file():
        return f"pip install -c constraints.txt -e '.[{extra}]' in {checkout}"
    return f"pip install '{_wheel() or 'policyfuzz'}[{extra}]'"


def _wheel() -> str:
    """The wheel that PolicyFuzz was installed from; empty if it came from an index."""
    from importlib.metadata import PackageNotFoundError, distribution  # slow to import, and seldom needed
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        source = json.loads(distribution("policyfuzz").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return ""
    url = urlsplit(str(source.get("url", "")))
    return url2pathname(url.path) if url.scheme == "file" else ""
