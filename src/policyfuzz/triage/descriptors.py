"""How findings fail, as numbers that compare: the states before the crash, in units of passing episodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions
from policyfuzz.search.behaviour import bounded

#: Steps before the crash that are looked at.
WINDOW = 20
#: A state is described by its value at the crash and by its rates over this many steps and over the window.
_SHORT = 5
_PARTS = 3
#: Standard deviations of passing episodes at which a number is cut off, so that one cannot hide the rest.
_CUT_OFF = 10.0
#: Moments of every passing episode that its rates are taken at.
_MOMENTS = 8
#: Least unit of a rate, as a share of the spread of its state per step: a state that hardly moves in passing
#: episodes would otherwise drown all others.
_LEAST_RATE = 0.001
#: A state that varies by less than this share of its size is constant but for rounding.
_CONSTANT = 1e-9
#: The band of passing episodes holds all but this share of their states on either side.
_OUTSIDE = 0.025


@dataclass(frozen=True, slots=True)
class PassingBand:
    """What passing episodes do: the unit in which findings are described."""

    centre: NDArray[np.float64]  #: (k, 3) of the state and of its rates
    unit: NDArray[np.float64]  #: (k, 3) standard deviations; infinite for a state that never varies
    low: NDArray[np.float64]  #: (k,) the band of the states
    high: NDArray[np.float64]  #: (k,)

    @classmethod
    def of(cls, executions: Executions) -> "PassingBand":
        """From `executions`, at least one, that did not crash."""
        states = bounded(executions.states)
        ends = np.rint((executions.lengths[:, None] - 1) * np.arange(1, _MOMENTS + 1) / _MOMENTS)
        parts = np.concatenate([_parts(states, column.astype(np.int64)) for column in ends.T])
        unit = parts.std(axis=0)
        unit[:, 1:] = np.maximum(unit[:, 1:], _LEAST_RATE * unit[:, :1])
        varies = unit[:, 0] > _CONSTANT * np.maximum(1.0, np.abs(parts[:, :, 0]).max(axis=0))
        seen = states[executions.counted]
        low, high = np.quantile(seen, [_OUTSIDE, 1 - _OUTSIDE], axis=0)
        return cls(parts.mean(axis=0), np.where(varies[:, None], unit, np.inf), low, high)


@dataclass(frozen=True, slots=True)
class Descriptors:
    """How n crashes came about."""

    states: NDArray[np.float64]  #: (n, k, 3) state and rates at the crash, in units of passing episodes
    #: (n, WINDOW, k) -1 where a state was below the band of passing episodes, 1 above; the crash last
    sides: NDArray[np.int8]
    last: NDArray[np.float64]  #: (n, k) state at the crash, as the simulator gives it

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Descriptors":
        """The crashes at `rows`."""
        return Descriptors(self.states[rows], self.sides[rows], self.last[rows])


def describe(executions: Executions, band: PassingBand) -> Descriptors:
    """Describe n `executions`, all of which crashed."""
    states, steps = bounded(executions.states), executions.verdicts.steps
    parts = np.clip((_parts(states, steps) - band.centre) / band.unit, -_CUT_OFF, _CUT_OFF)
    # both rates together weigh as much as the state
    parts[:, :, 1:] /= np.sqrt(_PARTS - 1)
    times = np.maximum(steps[:, None] + np.arange(1 - WINDOW, 1), 0)
    window = states[np.arange(len(steps))[:, None], times]
    sides = (window > band.high).astype(np.int8) - (window < band.low).astype(np.int8)
    return Descriptors(parts, sides, window[:, -1])


def _parts(states: NDArray[np.float64], ends: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n, k, 3) states (n, t, k) at `ends` (n,), and how fast they changed up to then."""
    rows = np.arange(len(ends))
    last = states[rows, ends]
    parts = [last]
    for span in (_SHORT, WINDOW):
        first = np.maximum(ends - span, 0)
        parts.append((last - states[rows, first]) / np.maximum(ends - first, 1)[:, None])
    return np.stack(parts, axis=2)
