"""What episodes visited, in units of random sampling: their behaviour, and some of their states.

Random episodes fix all units and directions. So the axes of two campaigns are the same, and neither those nor
the size of a cell change with what a campaign did.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.behaviour import BehaviourSpace, behaviour_of, bounded, units_of

#: States of an episode that are looked at, spread evenly over its time up to the crash.
MOMENTS = 10
#: Principal directions of states that cells have sides along.
DIRECTIONS = 4
#: Standard deviations at which a coordinate is cut off, so that one cannot blur the rest.
_CUT_OFF = 10.0
#: A direction along which less than this share of a unit varies is constant but for rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class StateProjection:
    """States along the directions in which random episodes vary most, in their standard deviations."""

    centre: NDArray[np.float64]  #: (k,)
    scale: NDArray[np.float64]  #: (k,) one over the spread; zero for a constant coordinate
    directions: NDArray[np.float64]  #: (k, DIRECTIONS) of the standardised states; zero if nothing varies
    explained: NDArray[np.float64]  #: (DIRECTIONS,) share of the variance along each

    @classmethod
    def fit(cls, states: NDArray[np.float64]) -> "StateProjection":
        """From `states` (n, k) of random episodes."""
        states = bounded(states)
        centre, scale = units_of(states)
        standard = np.clip((states - centre) * scale, -_CUT_OFF, _CUT_OFF)
        variances, vectors = np.linalg.eigh(standard.T @ standard / len(states))
        variances, vectors = variances[::-1][:DIRECTIONS], vectors[:, ::-1][:, :DIRECTIONS]
        # the sign of an eigenvector is arbitrary: its largest part counts as positive
        largest = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])
        vectors = np.where(variances > _CONSTANT, vectors, 0.0)
        missing = DIRECTIONS - vectors.shape[1]
        total = max(float(np.count_nonzero(scale)), 1.0)
        return cls(
            centre,
            scale,
            np.pad(vectors, ((0, 0), (0, missing))),
            np.pad(np.maximum(variances, 0.0) / total, (0, missing)),
        )

    def project(self, states: NDArray[np.float64]) -> NDArray[np.float64]:
        """(..., DIRECTIONS) places of `states` (..., k)."""
        standard = np.clip((bounded(states) - self.centre) * self.scale, -_CUT_OFF, _CUT_OFF)
        return np.asarray(standard @ self.directions)

    def words(self, direction: int, names: Sequence[str]) -> str:
        """The two states that matter most along `direction`, by `names` (k,), or by number without names."""
        weights = self.directions[:, direction]
        most = np.argsort(-np.abs(weights), kind="stable")[:2]
        known = len(names) == len(weights)
        # units in brackets would suggest that the axis has one
        called = [names[place].partition(" [")[0] if known else f"state {place}" for place in most.tolist()]
        signs = ["+" if weights[place] > 0 else "-" for place in most.tolist()]
        parts = zip(most.tolist(), signs, called, strict=True)
        return ", ".join(f"{sign} {name}" for place, sign, name in parts if weights[place] != 0)


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What is looked at of n episodes, as the simulator gives it."""

    behaviour: NDArray[np.float64]  #: (n, b)
    moments: NDArray[np.float64]  #: (n, MOMENTS, k)
    crashed: NDArray[np.bool_]  #: (n,)

    @classmethod
    def of(cls, executions: Executions) -> "Glimpse":
        """Of `executions`, all of which could be run."""
        return cls(behaviour_of(executions.until_crash), moments_of(executions), executions.crashed)


@dataclass(frozen=True, slots=True)
class Yardstick:
    """The units of all campaigns on a target, from random episodes."""

    behaviour: BehaviourSpace
    states: StateProjection

    @classmethod
    def fit(cls, glimpses: Sequence[Glimpse]) -> "Yardstick":
        """From `glimpses` of random episodes."""
        moments = np.concatenate([one.moments for one in glimpses])
        return cls(
            BehaviourSpace.fit(np.concatenate([one.behaviour for one in glimpses])),
            StateProjection.fit(moments.reshape(-1, moments.shape[2])),
        )


@dataclass(frozen=True, slots=True)
class Visited:
    """What n episodes of a campaign visited, in the order of their numbers."""

    numbers: NDArray[np.int64]  #: (n,) how many episodes had been run by then
    descriptors: NDArray[np.float64]  #: (n, q) behaviours
    states: NDArray[np.float64]  #: (n, MOMENTS, DIRECTIONS) places; the last is that of the crash, if any
    crashed: NDArray[np.bool_]  #: (n,)
    known: int = 0  #: episodes that there are to look at
    failed: int = 0  #: episodes that were looked at, and could not be run to their end

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(slots=True)
class Visitor:
    """Looks at episodes, some at a time, and keeps only where they were."""

    yardstick: Yardstick
    _failed: int = field(init=False, default=0)
    _parts: list[tuple[NDArray[Any], ...]] = field(init=False, default_factory=list)

    def see(self, numbers: NDArray[np.int64], executions: Executions) -> None:
        """Look at `executions`, which were run after so many episodes, `numbers` (n,)."""
        could_be_run = executions.sound | executions.crashed
        self._failed += int(np.count_nonzero(~could_be_run))
        if could_be_run.any():
            self.remember(numbers[could_be_run], Glimpse.of(executions[could_be_run]))

    def remember(self, numbers: NDArray[np.int64], seen: Glimpse) -> None:
        """As `see`, of episodes that were looked at."""
        descriptors = self.yardstick.behaviour.descriptors(seen.behaviour)
        self._parts.append((numbers, descriptors, self.yardstick.states.project(seen.moments), seen.crashed))

    def visited(self, known: int) -> Visited:
        """All that was seen, of `known` episodes."""
        size = self.yardstick.behaviour.directions.shape[1]
        empty = (
            np.empty(0, np.int64),
            np.empty((0, size)),
            np.empty((0, MOMENTS, DIRECTIONS)),
            np.empty(0, np.bool_),
        )
        numbers, descriptors, states, crashed = (
            np.concatenate(parts) for parts in zip(empty, *self._parts, strict=True)
        )
        order = np.argsort(numbers, kind="stable")
        return Visited(numbers[order], descriptors[order], states[order], crashed[order], known, self._failed)


def moments_of(executions: Executions) -> NDArray[np.float64]:
    """(n, MOMENTS, k) states of each episode, spread evenly from the first to the crash or the end."""
    ends = np.where(executions.crashed, executions.verdicts.steps, executions.lengths - 1)
    ends = np.minimum(ends, executions.lengths - 1)
    times = np.rint(ends[:, None] * np.linspace(0, 1, MOMENTS)).astype(np.int64)
    return executions.states[np.arange(len(ends))[:, None], times]
