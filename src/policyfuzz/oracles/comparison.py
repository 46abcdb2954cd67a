"""Comparing what an episode showed with a number, in symbols and in words."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import UsageError, unknown_name

Symbol = Literal["<", "<=", ">", ">=", "=="]

_HOLDS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_WORDS: Mapping[str, str] = {"<": "below", "<=": "at most", ">": "above", ">=": "at least", "==": "equal to"}

#: What can stand between a value and a number.
SYMBOLS: tuple[Symbol, ...] = ("<", "<=", ">", ">=", "==")

#: Whole numbers up to here are written without a fraction: all of them are exact as floats.
_LARGEST_WHOLE = 1e15


def require_comparison(symbol: str, number: float) -> None:
    """Raise a UsageError where nothing can be compared like this."""
    if symbol not in _HOLDS:
        raise unknown_name("comparison", symbol, SYMBOLS)
    if not math.isfinite(number):
        raise UsageError(f"an oracle compares with {number}, expected a finite number")


def compare(values: NDArray[np.float64], symbol: Symbol, number: float) -> NDArray[np.bool_]:
    """True where `values` compare so; nowhere for NaN."""
    return np.asarray(_HOLDS[symbol](values, number))


def margin(values: NDArray[np.float64], symbol: Symbol, number: float) -> NDArray[np.float64]:
    """How far `values` are from comparing so; not above zero where they do."""
    if symbol == "==":
        return np.abs(values - number)
    return values - number if symbol.startswith("<") else number - values


def in_words(symbol: Symbol, number: float) -> str:
    """The comparison for a reader: "below 100"."""
    return f"{_WORDS[symbol]} {written(number)}"


def written(number: float) -> str:
    """The shortest text that Python reads as exactly this `number`."""
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) <= _LARGEST_WHOLE else repr(number)
