"""Conditions that make an episode a crash: on its end, its return, its signals, its errors."""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.interfaces import NUMBERS, RAISED
from policyfuzz.core.oracle import NONE, Composable, Oracle, Trajectories, Verdicts, smallest

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


def at_first(fired: NDArray[np.bool_], margins: NDArray[np.float64] | None = None) -> Verdicts:
    """The verdicts of an oracle with one kind that fires at the first True of each row of `fired` (n, t)."""
    crashed = fired.any(axis=1)
    return Verdicts(
        kinds=np.where(crashed, 0, NONE),
        steps=np.where(crashed, fired.argmax(axis=1), NONE),
        margins=np.empty(0) if margins is None else margins,
    )


def at_end(
    trajectories: Trajectories, fired: NDArray[np.bool_], margins: NDArray[np.float64] | None = None
) -> Verdicts:
    """The verdicts of an oracle with one kind that fires in the last state where `fired` (n,).

    It stays silent on episodes that an error ended: nobody knows how they would have gone on.
    """
    crashed = fired & trajectories.sound
    return Verdicts(
        kinds=np.where(crashed, 0, NONE),
        steps=np.where(crashed, trajectories.lengths - 1, NONE),
        margins=np.empty(0) if margins is None else margins,
    )


@dataclass(frozen=True)
class Terminated(Composable):
    """Fires when the environment ends the episode before the time limit does.

    Both at one step is no early end: some environments call their time limit a termination as well.
    """

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("terminated",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        ended, cut = trajectories.signal("terminated"), trajectories.signal("truncated")
        return at_first(trajectories.counted & (ended > 0) & ~(cut > 0))


@dataclass(frozen=True)
class Truncated(Composable):
    """Fires in the last state of an episode that a time limit or the horizon cut before anything ended it."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("truncated",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        ended = trajectories.counted & (trajectories.signal("terminated") > 0)
        return at_end(trajectories, ~np.asarray(ended.any(axis=1)))


@dataclass(frozen=True)
class Return(Composable):
    """Fires in the last state where the sum of all rewards compares so with a number."""

    symbol: Symbol
    number: float

    def __post_init__(self) -> None:
        require_comparison(self.symbol, self.number)

    @property
    def kinds(self) -> tuple[str, ...]:
        return (f"return {in_words(self.symbol, self.number)}",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        rewards = np.where(trajectories.counted, trajectories.rewards, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            # one after another: a plain sum rounds differently when longer neighbours add padding
            returns = np.add.accumulate(rewards, axis=1)[:, -1]
        fired = compare(returns, self.symbol, self.number)
        return at_end(trajectories, fired, margin(returns, self.symbol, self.number))


def info_signal(key: str) -> str:
    """The name of the signal that holds `info[key]` as a number, NaN where it is missing."""
    return f"info.{key}"


@dataclass(frozen=True)
class Reward(Composable):
    """Fires at the first step whose reward compares so with a number; the initial state has none."""

    symbol: Symbol
    number: float

    def __post_init__(self) -> None:
        require_comparison(self.symbol, self.number)

    @property
    def kinds(self) -> tuple[str, ...]:
        return (f"reward {in_words(self.symbol, self.number)}",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        counted = trajectories.counted
        counted[:, 0] = False
        return _compared(trajectories.rewards, self.symbol, self.number, counted)


@dataclass(frozen=True)
class Info(Composable):
    """Fires at the first step at which `info[key]` compares so with a number; never while it is missing."""

    key: str
    symbol: Symbol
    number: float

    def __post_init__(self) -> None:
        require_comparison(self.symbol, self.number)

    @property
    def kinds(self) -> tuple[str, ...]:
        return (f"{info_signal(self.key)} {in_words(self.symbol, self.number)}",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        values = trajectories.signal(info_signal(self.key))
        return _compared(values, self.symbol, self.number, trajectories.counted)


@dataclass(frozen=True)
class InfoTrue(Composable):
    """Fires at the first step at which `info[key]` is true, which is any number but zero."""

    key: str

    @property
    def kinds(self) -> tuple[str, ...]:
        return (info_signal(self.key),)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return at_first(_is_true(trajectories, self.key))


@dataclass(frozen=True)
class InfoNeverTrue(Composable):
    """Fires in the last state of an episode in which `info[key]` was false or missing throughout."""

    key: str

    @property
    def kinds(self) -> tuple[str, ...]:
        return (f"never {info_signal(self.key)}",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return at_end(trajectories, ~np.asarray(_is_true(trajectories, self.key).any(axis=1)))


@dataclass(frozen=True)
class OutOfSpace(Composable):
    """Fires at the first observation that is outside of the space that the environment declares."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("out of space",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return at_first(trajectories.counted & (trajectories.signal("out_of_space") > 0))


def _compared(
    values: NDArray[np.float64], symbol: Symbol, number: float, counted: NDArray[np.bool_]
) -> Verdicts:
    """Fires at the first of `values` (n, t) that are `counted` (n, t) and compare so with `number`."""
    fired = counted & compare(values, symbol, number)
    return at_first(fired, smallest(margin(values, symbol, number), counted))


def _is_true(trajectories: Trajectories, key: str) -> NDArray[np.bool_]:
    """(n, t) True where `info[key]` is."""
    values = trajectories.signal(info_signal(key))
    return np.asarray(trajectories.counted & (values != 0) & ~np.isnan(values))


@dataclass(frozen=True)
class NotANumber(Composable):
    """Fires where a reward or an observation is NaN."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("NaN",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return _with_error(trajectories, NUMBERS)


@dataclass(frozen=True)
class Raised(Composable):
    """Fires where an exception came out of the environment."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("exception",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return _with_error(trajectories, RAISED)


def _with_error(trajectories: Trajectories, kind: str) -> Verdicts:
    """Fires at the step of an error of this `kind`."""
    steps = np.full(len(trajectories.lengths), NONE)
    for row, error in trajectories.errors.items():
        if error.kind == kind:
            steps[row] = error.step
    return Verdicts(kinds=np.where(steps == NONE, NONE, 0), steps=steps)


@dataclass(frozen=True)
class Named(Composable):
    """Fires when `oracle` does; whatever it finds is one kind, called `kind`."""

    oracle: Oracle
    kind: str

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.kind,)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        verdicts = self.oracle.judge(trajectories)
        return Verdicts(np.where(verdicts.crashed, 0, NONE), verdicts.steps, verdicts.margins)
