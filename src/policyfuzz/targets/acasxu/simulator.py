"""The vectorised simulator of two-aircraft encounters."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.interfaces import Frame
from policyfuzz.targets.acasxu import encounter

#: The largest batch whose past is kept for pictures.
_FILMED = 8


class EncounterSimulator:
    """n encounters flown at once; actions are advisories 0-4."""

    signals: ClassVar[tuple[str, ...]] = ("range",)
    capacity: ClassVar[int | None] = None

    def __init__(self) -> None:
        self.flights = np.empty((0, 11))  #: (n, 11) see the columns in `encounter`
        self._intruder_speeds = np.empty(0)
        #: For pictures: flights (n, 11) up to now and the advisories between them, of small batches only.
        self._flown: list[NDArray[np.float64]] = []
        self._advised: list[NDArray[np.int64]] = []

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self.flights = encounter.take_off(inputs)
        _, self._intruder_speeds = encounter.intruder_velocity(inputs)
        self._flown, self._advised = [self.flights.copy()], []
        return self._frame(np.arange(len(inputs)), is_start=True)

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        encounter.fly(self.flights, rows, actions)
        if len(self.flights) <= _FILMED:
            self._flown.append(self.flights.copy())
            self._advised.append(np.zeros(len(self.flights), np.int64))
            self._advised[-1][rows] = actions
        return self._frame(rows)

    def render(self, row: int) -> NDArray[np.uint8]:
        """A picture (640, 640, 3) of encounter `row`; in large batches without its past."""
        from policyfuzz.targets.acasxu.picture import View, draw_encounter_now

        if len(self.flights) > _FILMED:
            return draw_encounter_now(View(self._flown[0][row]), [self.flights[row]], [])
        flights = [flights[row] for flights in self._flown]
        return draw_encounter_now(View(flights[0]), flights, [int(given[row]) for given in self._advised])

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
