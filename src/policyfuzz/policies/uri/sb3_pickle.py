"""Pickles of stable-baselines3, read also where other versions of its packages have written them."""

import io
import pickle
import platform
from typing import Any

import numpy as np

from policyfuzz.errors import PolicyError

#: Where numpy keeps what arrays are pickled with; the name has changed with numpy 2.
_NUMPY_CORE = "numpy._core" if hasattr(np, "_core") else "numpy.core"


def unpickled(content: bytes, what: str, saved_with: str = "") -> Any:
    """What `content` holds; `what` it is, for a reader. Runs whatever code the pickle brings along."""
    try:
        return _Unpickler(io.BytesIO(content)).load()
    except ModuleNotFoundError as error:
        raise PolicyError(
            f"{what} needs the module {error.name!r}, which cannot be imported",
            hint="run from the folder that holds it, put that folder on PYTHONPATH, or install it",
        ) from error
    except Exception as error:  # whatever the pickled classes raise
        made = f"it was saved with Python {saved_with}; " if saved_with else ""
        raise PolicyError(
            f"{what} cannot be read: {type(error).__name__}: {error}",
            hint=f"{made}this is Python {platform.python_version()}."
            " Save it again with this one, or export it to ONNX",
        ) from error


class _Unpickler(pickle.Unpickler):
    """Looks up renamed modules under the names that they have here."""

    def find_class(self, module: str, name: str) -> Any:
        top, _, rest = module.partition(".")
        if module.startswith("numpy.random.") or module == "gym.utils.seeding":
            return _Ignored
        if top == "gym":
            module = f"gymnasium.{rest}" if rest else "gymnasium"
        for core in ("numpy._core", "numpy.core"):
            if module == core or module.startswith(f"{core}."):
                module = _NUMPY_CORE + module.removeprefix(core)
                break
        return super().find_class(module, name)


class _Ignored:
    """Stands for a random generator: no network needs one to act, and other versions cannot be read."""

    def __init__(self, *args: object) -> None: ...

    def __setstate__(self, state: object) -> None: ...
