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
from policyfuzz.core.oracle import (
    NONE,
    Composable,
    Oracle,
    Trajectories,
    Verdicts,
    accumulated_kinds,
    at_first,
    smallest,
)

Symbol = Literal["<", "<=", ">", ">=", "=="]

#: What can stand between a value and a number.
SYMBOLS: tuple[Symbol, ...] = ("<", "<=", ">", ">=", "==")

_HOLDS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_IN_WORDS: Mapping[str, str] = {
    "<": "below",
    "<=": "at most",
    ">": "above",
    ">=": "at least",
    "==": "equal to",
}

#: Whole numbers up to here are written without a fraction: all of them are exact as floats.
_LARGEST_WHOLE = 1e15


@dataclass(frozen=True)
class Terminated(Composable):
    """Fires when the environment ends the episode before the time limit does.

    Both at one step is no early end: some environments call their time limit a termination as well.
    """

    kinds = ("terminated",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        ended, cut = trajectories.signal("terminated"), trajectories.signal("truncated")
        return at_first(trajectories.counted & (ended > 0) & ~(cut > 0))


@dataclass(frozen=True)
class Truncated(Composable):
    """Fires in the last state of an episode that a time limit or the horizon cut before anything ended it."""

    kinds = ("truncated",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        ended = trajectories.counted & (trajectories.signal("terminated") > 0)
        return _at_end(trajectories, ~np.asarray(ended.any(axis=1)))


@dataclass(frozen=True)
class OutOfSpace(Composable):
    """Fires at the first observation outside the space that the environment declares."""

    kinds = ("out of space",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return at_first(trajectories.counted & (trajectories.signal("out_of_space") > 0))


@dataclass(frozen=True)
class NotANumber(Composable):
    """Fires where a reward or an observation is NaN."""

    kinds = ("NaN",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return _at_error(trajectories, NUMBERS)


@dataclass(frozen=True)
class Raised(Composable):
    """Fires where the environment raised an exception."""

    kinds = ("exception",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return _at_error(trajectories, RAISED)


class _Comparison(Composable):
    """What the oracles that compare a `subject` with a number have in common."""

    symbol: Symbol
    number: float

    @property
    def subject(self) -> str:
        raise NotImplementedError

    def __post_init__(self) -> None:
        require_comparison(self.symbol, self.number)

    @property
    def kinds(self) -> tuple[str, ...]:
        return (f"{self.subject} {_IN_WORDS[self.symbol]} {number_text(self.number)}",)

    def _holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """True where `values` compare so; nowhere for NaN."""
        return np.asarray(_HOLDS[self.symbol](values, self.number))

    def _margin(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far `values` are from comparing so; not above zero where they do."""
        if self.symbol == "==":
            return np.abs(values - self.number)
        return values - self.number if self.symbol.startswith("<") else self.number - values

    def _judge_steps(self, values: NDArray[np.float64], counted: NDArray[np.bool_]) -> Verdicts:
        """Fires at the first of `values` (n, t) that is `counted` (n, t) and compares so."""
        return at_first(counted & self._holds(values), smallest(self._margin(values), counted))


@dataclass(frozen=True)
class Return(_Comparison):
    """Fires in the last state where the sum of all rewards compares so with a number."""

    symbol: Symbol
    number: float
    subject = "return"

    @property
    def accumulated_kinds(self) -> tuple[str, ...]:
        return self.kinds

    def judge(self, trajectories: Trajectories) -> Verdicts:
        rewards = np.where(trajectories.counted, trajectories.rewards, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            # one after another: a plain sum rounds differently when longer neighbours add padding
            returns = np.add.accumulate(rewards, axis=1)[:, -1]
        return _at_end(trajectories, self._holds(returns), self._margin(returns))


@dataclass(frozen=True)
class Reward(_Comparison):
    """Fires at the first step whose reward compares so with a number; the initial state has none."""

    symbol: Symbol
    number: float
    subject = "reward"

    def judge(self, trajectories: Trajectories) -> Verdicts:
        counted = trajectories.counted
        counted[:, 0] = False
        return self._judge_steps(trajectories.rewards, counted)


@dataclass(frozen=True)
class Info(_Comparison):
    """Fires at the first step at which `info[key]` compares so with a number; never while it is missing."""

    key: str
    symbol: Symbol
    number: float

    @property
    def subject(self) -> str:
        return info_signal(self.key)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return self._judge_steps(trajectories.signal(self.subject), trajectories.counted)


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
        return _at_end(trajectories, ~np.asarray(_is_true(trajectories, self.key).any(axis=1)))


@dataclass(frozen=True)
class WithKind(Composable):
    """Fires when `oracle` does; all of its findings have one kind, called `kind`."""

    oracle: Oracle
    kind: str

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.kind,)

    @property
    def accumulated_kinds(self) -> tuple[str, ...]:
        return self.kinds if accumulated_kinds(self.oracle) else ()

    def judge(self, trajectories: Trajectories) -> Verdicts:
        verdicts = self.oracle.judge(trajectories)
        return Verdicts(np.where(verdicts.crashed, 0, NONE), verdicts.steps, verdicts.margins)


def info_signal(key: str) -> str:
    """The name of the signal that holds `info[key]` as a number, NaN where it is missing."""
    return f"info.{key}"


def require_comparison(symbol: str, number: float) -> None:
    """Raise a UsageError unless `symbol` compares and `number` is finite."""
    if symbol not in _HOLDS:
        raise unknown_name("comparison", symbol, SYMBOLS)
    if not math.isfinite(number):
        raise UsageError(f"an oracle compares with {number}, expected a finite number")


def number_text(number: float) -> str:
    """The shortest text that Python reads as exactly this `number`."""
    number = float(number)
    return str(int(number)) if number.is_integer() and abs(number) <= _LARGEST_WHOLE else repr(number)


def _at_end(
    trajectories: Trajectories, fired: NDArray[np.bool_], margins: NDArray[np.float64] | None = None
) -> Verdicts:
    """The verdicts of an oracle with one kind that fires in the last state where `fired` (n,).

    It stays silent on episodes that an error ended: how they would have continued is unknown.
    """
    crashed = fired & trajectories.sound
    return Verdicts(
        kinds=np.where(crashed, 0, NONE),
        steps=np.where(crashed, trajectories.lengths - 1, NONE),
        margins=np.empty(0) if margins is None else np.where(trajectories.sound, margins, np.nan),
    )


def _at_error(trajectories: Trajectories, kind: str) -> Verdicts:
    """Fires at the step of an error of this `kind`."""
    steps = np.full(len(trajectories.lengths), NONE)
    for row, error in trajectories.errors.items():
        if error.kind == kind:
            steps[row] = error.step
    return Verdicts(kinds=np.where(steps == NONE, NONE, 0), steps=steps)


def _is_true(trajectories: Trajectories, key: str) -> NDArray[np.bool_]:
    """(n, t) True where `info[key]` is."""
    values = trajectories.signal(info_signal(key))
    return np.asarray(trajectories.counted & (values != 0) & ~np.isnan(values))
