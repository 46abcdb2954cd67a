"""Notices when every start of a small discrete input has been tried, and more episodes would only repeat."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.core.inputs import Choice, InputSpace, Integer, Seed
from policyfuzz.search.cases import Cases
from policyfuzz.search.state import State

#: Starts up to which they are counted: each is part of the state that every batch stores.
_MOST_STARTS = 1024
#: Episodes from a known start with another case seed that must agree before the seed is taken to be unused.
_LEAST_COMPARED = 20


@dataclass(slots=True)
class Exhaustion:
    """Which starts have been tried, and how the first episode from each ended.

    Where two episodes from one start with different case seeds ended differently, the seed matters, and
    there is always another episode to try.
    """

    starts: NDArray[np.float64]  #: (n, d) all valid and solvable inputs, sorted; none if there are too many
    _places: dict[bytes, int] = field(init=False)
    _seeds: NDArray[np.uint64] = field(init=False)  #: (n,) of the first episode
    _ends: NDArray[np.float64] = field(init=False)  #: (n, 3) kind, step and return; NaN kind before the first
    _compared: int = field(init=False, default=0)
    _seed_matters: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._places = {row.tobytes(): place for place, row in enumerate(self.starts)}
        self._seeds = np.zeros(len(self.starts), np.uint64)
        self._ends = np.full((len(self.starts), 3), np.nan)

    @classmethod
    def of(
        cls, space: InputSpace, solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None
    ) -> "Exhaustion":
        """For all inputs of `space` that are valid and `solvable`."""
        axes = []
        for one in space.dimensions:
            if not isinstance(one, Integer | Choice | Seed):
                return cls(np.empty((0, len(space.dimensions))))
            axes.append((int(one.low), int(one.high)))
        if math.prod(high - low + 1 for low, high in axes) > _MOST_STARTS:
            return cls(np.empty((0, len(space.dimensions))))
        ranges = [np.arange(low, high + 1, dtype=np.float64) for low, high in axes]
        grid = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(ranges))
        grid = grid[space.is_valid(grid)]
        return cls(np.ascontiguousarray(grid if solvable is None else grid[solvable(grid)]))

    @property
    def is_over(self) -> bool:
        """True if all starts have been tried, and another seed would change nothing."""
        is_tried = len(self.starts) > 0 and not np.isnan(self._ends[:, 0]).any()
        is_compared = self._compared >= max(_LEAST_COMPARED, len(self.starts))
        return is_tried and is_compared and not self._seed_matters

    @property
    def crashing(self) -> int:
        """Starts that crash."""
        return int(np.count_nonzero(self._ends[:, 0] >= 0))

    def learn(self, cases: Cases, executions: Executions) -> None:
        """Take note of how the `executions` of `cases` ended."""
        if not self._places or self._seed_matters:
            return
        verdicts = executions.verdicts
        ends = np.column_stack([verdicts.kinds, verdicts.steps, executions.returns]).astype(np.float64)
        for row, end in enumerate(ends):
            place = self._places.get(cases.inputs[row].tobytes())
            if place is None:
                continue
            if np.isnan(self._ends[place, 0]):
                self._seeds[place], self._ends[place] = cases.seeds[row], end
            elif self._seeds[place] != cases.seeds[row]:
                self._compared += 1
                self._seed_matters |= not np.array_equal(self._ends[place], end, equal_nan=True)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that is needed to continue; nothing where starts are not counted."""
        if not self._places:
            return {}
        counters = np.array([self._compared, int(self._seed_matters)])
        return {"counters": counters, "seeds": self._seeds.copy(), "ends": self._ends.copy()}

    def restore(self, state: State) -> None:
        """Continue from `state`; files of earlier versions have none."""
        if not self._places or "counters" not in state:
            return
        seeds, ends = state["seeds"], state["ends"]
        if seeds.shape != self._seeds.shape or ends.shape != self._ends.shape:
            raise ValueError("the starts that were tried are not those of the target")
        self._compared, self._seed_matters = int(state["counters"][0]), bool(state["counters"][1])
        self._seeds, self._ends = seeds.astype(np.uint64), ends.astype(np.float64)
