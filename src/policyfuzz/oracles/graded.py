"""Oracles that only know yes or no, graded by signals that say how near an episode was.

Three signals are known by name. `room` is how much is left until the oracle fires: 1 for a usual, safe state
and 0 or less where it fires. `impact` is how hard a failure would be if it happened now, 0 or more. `way` is
how far it still is to the goal, as a share of the whole way. Each is in its own relative units.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.oracle import (
    AllOf,
    AnyOf,
    Composable,
    Oracle,
    Trajectories,
    Verdicts,
    accumulated_kinds,
    signed,
    smallest,
)
from policyfuzz.oracles.conditions import Reward, Truncated, WithKind

ROOM, IMPACT, WAY = "room", "impact", "way"


@dataclass(frozen=True)
class Graded(Composable):
    """Fires exactly where `oracle` does; its margin is the least `room`, and minus the impact of a crash.

    The impact is that of the state before the crash: afterwards a body lies still. Without the signal `room`
    the margin is the one of `oracle`.
    """

    oracle: Oracle

    @property
    def kinds(self) -> tuple[str, ...]:
        return self.oracle.kinds

    @property
    def accumulated_kinds(self) -> tuple[str, ...]:
        return accumulated_kinds(self.oracle)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        verdicts = self.oracle.judge(trajectories)
        if ROOM not in trajectories.names:
            return verdicts
        room = smallest(trajectories.signal(ROOM), trajectories.counted)
        margins = signed(room, verdicts.crashed)
        if IMPACT in trajectories.names:
            before = np.maximum(verdicts.steps - 1, 0)[:, None]
            impacts = np.take_along_axis(trajectories.signal(IMPACT), before, axis=1)[:, 0]
            margins = margins - np.where(verdicts.crashed, np.nan_to_num(impacts), 0.0)
        return Verdicts(verdicts.kinds, verdicts.steps, margins)


@dataclass(frozen=True)
class TimeLeft(Composable):
    """Fires exactly where `Truncated` does, in episodes of at most `limit` steps.

    Its margin is the share of the time that was left at the end, or minus the least `way` to the goal if time
    ran out; 0 then without that signal.
    """

    limit: int

    kinds = Truncated.kinds

    def judge(self, trajectories: Trajectories) -> Verdicts:
        verdicts = Truncated().judge(trajectories)
        left = 1.0 - (trajectories.lengths - 1) / self.limit
        margins = np.where(verdicts.crashed, -_least_way(trajectories), left)
        known = np.where(trajectories.sound, margins, np.nan)
        return Verdicts(verdicts.kinds, verdicts.steps, signed(known, verdicts.crashed))


def _least_way(trajectories: Trajectories) -> NDArray[np.float64]:
    """(n,) how near each episode came to its goal after its start; 0 if that is not known."""
    if WAY not in trajectories.names:
        return np.zeros(len(trajectories.lengths))
    counted = trajectories.counted
    counted[:, 0] = False  # that is not what the policy did
    return np.nan_to_num(smallest(trajectories.signal(WAY), counted))


def graded(oracle: Oracle, failure: Oracle | None, limit: int) -> Oracle:
    """`oracle` with margins for every part that means `failure`, and for `truncated`.

    `failure` is what happens where there is no `room` left, None if nothing tells of room; `limit` is the
    number of steps of an episode. What fires, and when, stays the same.
    """
    match oracle:
        case AnyOf():
            return AnyOf(graded(oracle.first, failure, limit), graded(oracle.second, failure, limit))
        case AllOf():
            return AllOf(graded(oracle.first, failure, limit), graded(oracle.second, failure, limit))
        case WithKind():
            return WithKind(graded(oracle.oracle, failure, limit), oracle.kind)
        case Truncated():
            return TimeLeft(limit)
    return Graded(oracle) if failure is not None and _means(oracle, failure) else oracle


def _means(oracle: Oracle, failure: Oracle) -> bool:
    """True where `oracle` fires at a `failure`; for one that costs a reward, also if it asks for less."""
    if isinstance(oracle, Reward) and isinstance(failure, Reward):
        is_cost = oracle.symbol.startswith("<") and failure.symbol.startswith("<")
        return is_cost and failure.number <= oracle.number <= failure.number / 2
    return oracle == failure
