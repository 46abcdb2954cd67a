"""PolicyFuzz: blackbox fuzz testing for trained policies.

`__init__.pyi` lists the public names and where they live. Each is imported when it is first used, so that
`import policyfuzz` stays cheap. Nothing else is imported here: `python -m policyfuzz` comes through this file
while Python still searches the current folder first (see `__main__.py`).
"""


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    from importlib import import_module

    module_of = _module_of()
    if name == "__all__":
        return sorted(module_of)
    if name not in module_of:
        raise AttributeError(f"module 'policyfuzz' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module_of[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_module_of()})


def _module_of() -> dict[str, str]:
    """Public name to the module it lives in, as `__init__.pyi` says."""
    import ast
    from pathlib import Path

    if not _MODULE_OF:
        stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text("utf-8"))
        imports = [line for line in stub.body if isinstance(line, ast.ImportFrom)]
        _MODULE_OF.update({alias.name: str(line.module) for line in imports for alias in line.names})
    return _MODULE_OF


#: What `_module_of` has read.
_MODULE_OF: dict[str, str] = {}
