"""What learning has changed, as named arrays: the form in which a search is stored and restored."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

#: Everything that learning has changed, as named arrays.
State = Mapping[str, NDArray[Any]]


def prefixed(prefix: str, state: State) -> dict[str, NDArray[Any]]:
    """`state` with `prefix` before every name."""
    return {prefix + name: array for name, array in state.items()}


def substate(prefix: str, state: State) -> dict[str, NDArray[Any]]:
    """The part of `state` whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in state.items() if name.startswith(prefix)}
