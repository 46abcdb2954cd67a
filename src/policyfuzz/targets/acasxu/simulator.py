"""The vectorised simulator of two-aircraft encounters."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.simulators.protocol import Frame
from policyfuzz.targets.acasxu import encounter


class EncounterSimulator:
    """n encounters flown at once; actions are advisories 0-4."""

    signals: ClassVar[tuple[str, ...]] = ("range",)
    capacity: ClassVar[int | None] = None

    def __init__(self) -> None:
        self.flights = np.empty((0, 11))  #: (n, 11) see the columns in `encounter`
        self._intruder_speeds = np.empty(0)

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self.flights = encounter.take_off(inputs)
        _, self._intruder_speeds = encounter.intruder_velocity(inputs)
        return self._frame(np.arange(len(inputs)), is_start=True)

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        encounter.fly(self.flights, rows, actions)
        return self._frame(rows)

    def _frame(self, rows: NDArray[np.int64], is_start: bool = False) -> Frame:
        observations, ranges = np.empty((len(rows), 5)), np.empty(len(rows))
        encounter.observe(self.flights, self._intruder_speeds, rows, observations, ranges)
        return Frame(
            observations=observations,
            states=observations,
            signals=ranges[:, None],
            rewards=np.zeros(len(rows)) if is_start else encounter.reward(ranges),
            ended=np.zeros(len(rows), np.bool_),
        )
