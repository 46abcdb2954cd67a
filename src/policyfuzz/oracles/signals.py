"""Oracles about single steps: the reward, what `info` says, and whether an observation is in its space."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.oracles.comparison import Symbol, compare, in_words, margin, require_comparison
from policyfuzz.oracles.firing import at_end, at_first
from policyfuzz.oracles.verdicts import Composable, Trajectories, Verdicts, smallest


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
