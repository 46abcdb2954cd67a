"""PolicyFuzz: blackbox fuzz testing for trained policies.

`__init__.pyi` lists the public names and where they live. Each is imported when it is first used, so that
`import policyfuzz` stays cheap.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any


def _read_public_names() -> dict[str, str]:
    """Public name to the module it lives in."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
    return {alias.name: str(line.module) for line in imports for alias in line.names}


_MODULE_OF = _read_public_names()
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'policyfuzz' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
