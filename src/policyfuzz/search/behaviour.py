"""What an episode did, as a few numbers that compare, and the cells of a grid over them.

In the words of quality-diversity search: the behaviour descriptor, and the cells of its measures.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.state import State, prefixed, substate

#: Episodes seen before it is decided what varies.
_FIRST_EPISODES = 64
#: Numbers of a descriptor at most: principal directions along which random episodes vary most.
DESCRIPTOR_SIZE = 8
#: Cells: this many equally frequent bins along each of this many directions.
_DIRECTIONS, _BINS = 4, 6
BEHAVIOUR_CELLS = _BINS**_DIRECTIONS
#: Standard deviations at which a coordinate of the behaviour is cut off, so that one cannot blur the rest.
_CUT_OFF = 10.0
#: Larger numbers are clipped to this one: their squares could overflow.
_LARGEST = 1e100
#: A coordinate that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-9


def behaviour_of(executions: Executions) -> NDArray[np.float64]:
    """(n, 2k) what each episode did: its mean state and its last."""
    lengths = executions.lengths
    with np.errstate(invalid="ignore", over="ignore"):
        # states lie time first in memory: summed that way they round alike in any batch
        means = executions.states.sum(axis=1) / lengths[:, None]
    last = executions.states[np.arange(len(lengths)), lengths - 1]
    return bounded(np.concatenate([means, last], axis=1))


def _until_crash(executions: Executions) -> NDArray[np.float64]:
    """(n, 2k) as `behaviour_of`, where nothing counts that comes after a crash."""
    behaviour = behaviour_of(executions)
    goes_on = np.flatnonzero(executions.crashed & (executions.verdicts.steps + 1 < executions.lengths))
    if len(goes_on):
        behaviour[goes_on] = behaviour_of(executions[goes_on].until_crash)
    return behaviour


def bounded(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """`values` without NaN, clipped so that their squares stay finite."""
    return np.clip(np.nan_to_num(values), -_LARGEST, _LARGEST)


def units_of(points: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(k,) centre of `points` (n, k), and (k,) one over their spread: zero for a constant coordinate."""
    centre, spread = points.mean(axis=0), points.std(axis=0)
    varies = spread > _CONSTANT * np.maximum(1.0, np.abs(centre))
    return centre, np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)


@dataclass(frozen=True, slots=True)
class BehaviourSpace:
    """Turns behaviour into descriptors, in units of what random episodes do.

    The distance of two descriptors is about the root of the mean squared difference of their behaviours, in
    standard deviations, whatever the number of coordinates.
    """

    centre: NDArray[np.float64]  #: (b,)
    scale: NDArray[np.float64]  #: (b,) one over the spread; zero for a constant coordinate
    directions: NDArray[np.float64]  #: (b, q) principal directions of the standardised behaviour
    edges: NDArray[np.float64]  #: (bins - 1, r) of the cells, along the first directions

    @classmethod
    def fit(cls, behaviour: NDArray[np.float64]) -> "BehaviourSpace":
        """The space in which random episodes with `behaviour` (n, b) are spread evenly over the cells."""
        centre, scale = units_of(behaviour)
        standard = np.clip((behaviour - centre) * scale, -_CUT_OFF, _CUT_OFF)
        variances, vectors = np.linalg.eigh(standard.T @ standard)
        # rounding would choose the bin along a direction in which nothing varied
        kept = np.where(variances > _CONSTANT * len(behaviour), vectors, 0.0)[:, ::-1][:, :DESCRIPTOR_SIZE]
        directions = kept / math.sqrt(max(int(np.count_nonzero(scale)), 1))
        quantiles = np.linspace(0, 1, _BINS + 1)[1:-1]
        edges = np.quantile(standard @ directions[:, :_DIRECTIONS], quantiles, axis=0)
        return cls(centre, scale, directions, edges)

    def descriptors(self, behaviour: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, q) descriptor of each row of `behaviour` (n, b)."""
        standard = np.clip((behaviour - self.centre) * self.scale, -_CUT_OFF, _CUT_OFF)
        return np.asarray(standard @ self.directions)

    def cells(self, descriptors: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) cell of each of `descriptors` (n, q)."""
        cells = np.zeros(len(descriptors), np.int64)
        for place, edges in zip(descriptors.T, self.edges.T, strict=False):
            cells = cells * _BINS + np.searchsorted(edges, place)
        return cells

    def state(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        return {name: getattr(self, name) for name in ("centre", "scale", "directions", "edges")}

    @classmethod
    def from_state(cls, state: State) -> "BehaviourSpace":
        """The space that had this `state`."""
        return cls(state["centre"], state["scale"], state["directions"], state["edges"])


@dataclass(frozen=True, slots=True)
class Behaviours:
    """What n episodes did."""

    descriptors: NDArray[np.float64]  #: (n, q), NaN where not known
    cells: NDArray[np.int64]  #: (n,) zero where not known

    def __getitem__(self, rows: NDArray[Any] | slice) -> "Behaviours":
        """The episodes at `rows`."""
        return Behaviours(self.descriptors[rows], self.cells[rows])

    @staticmethod
    def unknown(count: int) -> "Behaviours":
        """Of `count` episodes of which nothing is known."""
        return Behaviours(np.full((count, DESCRIPTOR_SIZE), np.nan), np.zeros(count, np.int64))


@dataclass(slots=True)
class BehaviourObserver:
    """Describes episodes. The first ones fix the space, so that descriptors stay comparable."""

    _space: BehaviourSpace | None = None
    _seen: NDArray[np.float64] | None = field(default=None)  #: behaviours, while there is no space

    def observe(self, executions: Executions) -> Behaviours:
        """Describe `executions` up to their crash.

        Failed ones are not known, and none are until enough were seen.
        """
        count, sound = len(executions), executions.sound
        behaviours = Behaviours.unknown(count)
        if not sound.any():
            return behaviours
        behaviour = _until_crash(executions[sound] if executions.errors else executions)
        if self._space is None:
            seen = behaviour if self._seen is None else np.concatenate([self._seen, behaviour])
            if len(seen) < _FIRST_EPISODES:
                self._seen = seen
                return behaviours
            self._space, self._seen = BehaviourSpace.fit(seen), None
        if not self._space.scale.any():  # nothing ever varied, so nothing tells episodes apart
            return behaviours
        found = self._space.descriptors(behaviour)
        behaviours.descriptors[sound] = 0.0
        behaviours.descriptors[sound, : found.shape[1]] = found
        behaviours.cells[sound] = self._space.cells(found)
        return behaviours

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that was fixed or seen, as arrays."""
        if self._space is not None:
            return prefixed("space.", self._space.state())
        return {} if self._seen is None else {"seen": self._seen}

    @classmethod
    def from_state(cls, state: State) -> "BehaviourObserver":
        """The observer that had this `state`."""
        space = substate("space.", state)
        return cls(BehaviourSpace.from_state(space) if space else None, None if space else state.get("seen"))
