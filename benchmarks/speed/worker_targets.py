"""Targets whose episodes cost what a benchmark of workers wants them to cost, and nothing else."""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.target import Target
from policyfuzz.oracles import Below

INPUTS = InputSpace((Real("length", 1, 10), Real("other", 0, 1)))
_STEPS = 5


class Burner:
    """Each episode keeps a core busy for its first input, in units of some seconds."""

    signals: ClassVar[tuple[str, ...]] = ("left",)
    capacity: ClassVar[int | None] = None

    def __init__(self, unit_seconds: float) -> None:
        self._unit_seconds = unit_seconds
        self._inputs = np.empty((0, 0))
        self._time = 0

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self._inputs, self._time = inputs, 0
        return self._frame(np.arange(len(inputs)))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        self._time += 1
        if self._unit_seconds > 0:
            _burn(float(self._inputs[rows, 0].sum()) * self._unit_seconds / _STEPS)
        return self._frame(rows)

    def _frame(self, rows: NDArray[np.int64]) -> Frame:
        states = self._inputs[rows] + self._time
        return Frame(states, states, states[:, 1:], states[:, 0], np.full(len(rows), self._time == _STEPS))


class CountedPolicy:
    """Does nothing; each time that it is made it leaves a line in a file."""

    def __init__(self, file: Path | None) -> None:
        if file is not None:
            with file.open("a") as lines:
                lines.write(f"{os.getpid()}\n")

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.zeros(len(rows))


def burning(unit_seconds: float, loads: Path | None = None) -> Target:
    """Episodes of one to ten units; the policy writes into `loads` that it was loaded."""
    return Target(
        name="burner",
        inputs=INPUTS,
        simulator=partial(Burner, unit_seconds),
        policy=partial(CountedPolicy, loads),
        oracle=Below("left", 0, kind="never"),
        horizon=_STEPS,
    )


def _burn(seconds: float) -> None:
    """Compute for `seconds` of processor time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
