"""Oracles about how an episode ended, and what it was worth."""

from dataclasses import dataclass

import numpy as np

from policyfuzz.oracles.comparison import Symbol, compare, in_words, margin, require_comparison
from policyfuzz.oracles.firing import at_end, at_first
from policyfuzz.oracles.verdicts import Composable, Trajectories, Verdicts


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
