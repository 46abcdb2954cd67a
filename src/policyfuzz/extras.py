"""Optional packages: imported where they are used, and asked for by name where they are missing."""

import importlib
from typing import Any

from policyfuzz.errors import MissingExtra


def load(module: str, extra: str) -> Any:
    """The `module` of an optional package; `extra` is the extra of PolicyFuzz that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module.split(".")[0]:
            raise  # the package is there, and something that it needs is not
        raise MissingExtra(module.split(".")[0], extra) from error
