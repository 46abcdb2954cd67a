"""Whether the source of a module is still what was imported."""

import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any


def has_changed(module: Any, name: str, file: str, content: bytes) -> bool:
    """True where `module` has functions that `content`, the source in its `file` by now, does not have.

    What only stands outside of functions may differ and not be found out.
    """
    functions = [code for code in _functions_of(module, name) if code.co_filename == file]
    if not functions:
        return False
    try:
        known = set(_codes_in(compile(content, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return True
    return not known.issuperset(functions)


def _functions_of(owner: Any, module: str) -> Iterator[CodeType]:
    """Code of all functions and methods that were written in `module`."""
    for thing in list(vars(owner).values()):
        if getattr(thing, "__module__", None) != module:
            continue
        if inspect.isfunction(thing):
            yield thing.__code__
        elif inspect.isclass(thing) and thing is not owner:
            yield from _functions_of(thing, module)


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)
