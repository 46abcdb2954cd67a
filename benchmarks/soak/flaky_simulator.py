"""A simulator with every kind of fault, each known beforehand.

What becomes of an episode is a function of its input and seed, so that a campaign's accounts can be checked
row by row. Besides, its processes die now and then for no reason, which no case may be blamed for. Every
process writes down what it runs, in the folder that FLAKY_JOURNAL names.

    policyfuzz fuzz benchmarks/soak/flaky_simulator.py:target -j 2 --timeout 3s --max-time 1m
"""

import ctypes
import os
import signal
import struct
import subprocess
import time
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz import Below, Frame, InputSpace, Real, Target

STEPS = 20
#: Environment variables: a folder to write down in what is run, and episodes that a process lives on average.
JOURNAL, LIFE = "FLAKY_JOURNAL", "FLAKY_LIFE"
_LONG_LIFE = "2000"
_SLOW_SECONDS = 0.05
#: Key of an episode, its fate, and what is written down about it.
RECORD = struct.Struct("<QBB")
BEGAN, ENDED, DIED = range(3)


class Fate(IntEnum):
    """What becomes of an episode."""

    COMPLETES = 0
    IS_SLOW = 1  #: in every fourth step; completes
    RAISES = 2
    GIVES_NAN = 3
    HANGS_IN_PYTHON = 4
    HANGS_IN_C = 5  #: holds the interpreter, so that no thread and no handler in Python runs
    SEGFAULTS = 6
    IS_KILLED = 7  #: as by the kernel when memory runs out
    EXITS = 8


#: Share of episodes.
RATES = {
    Fate.IS_SLOW: 0.02,
    Fate.RAISES: 0.02,
    Fate.GIVES_NAN: 0.01,
    Fate.HANGS_IN_PYTHON: 0.002,
    Fate.HANGS_IN_C: 0.002,
    Fate.SEGFAULTS: 0.002,
    Fate.IS_KILLED: 0.002,
    Fate.EXITS: 0.002,
}


def keys(inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """(n,) a number for each case, well mixed; two cases of a campaign never share one in practice."""
    mixed = np.asarray(seeds, np.uint64)
    for column in np.ascontiguousarray(inputs, np.float64).view(np.uint64).T:
        mixed = _mixed(mixed ^ column)
    return mixed


def fates(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """(n,) fate of the cases with these keys."""
    chance = _mixed(numbers + np.uint64(1)) / 2.0**64
    edges = np.cumsum(list(RATES.values()))
    known = np.array([*RATES, Fate.COMPLETES], np.int64)
    return np.asarray(known[np.searchsorted(edges, chance, side="right")])


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64: every bit depends on every other."""
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(numbers ^ (numbers >> np.uint64(31)))


class FlakySimulator:
    """n balls that roll towards an edge; those that start near it fall over."""

    signals = ("distance",)
    capacity = None

    def __init__(self) -> None:
        _child()
        self._inputs = np.empty((0, 0))
        self._keys = np.empty(0, np.uint64)
        self._fates = self._fault_steps = np.empty(0, np.int64)
        self._time = 0

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self._inputs, self._time = inputs, 0
        self._keys = keys(inputs, seeds)
        self._fates = fates(self._keys)
        self._fault_steps = 1 + (self._keys % np.uint64(STEPS)).astype(np.int64)
        rows = np.arange(len(inputs))
        _write(self._keys, self._fates, BEGAN)
        _age(len(inputs))
        return self._frame(rows, np.zeros(len(rows)))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        self._time += 1
        if self._time % 4 == 0 and (self._fates[rows] == Fate.IS_SLOW).any():
            time.sleep(_SLOW_SECONDS)
        due = rows[self._fault_steps[rows] == self._time]
        for fate in self._fates[due].tolist():
            _suffer(Fate(fate))
        is_nan = (self._fates[rows] == Fate.GIVES_NAN) & (self._fault_steps[rows] == self._time)
        if self._time == STEPS:
            done = rows[~is_nan]
            _write(self._keys[done], self._fates[done], ENDED)
        return self._frame(rows, np.where(is_nan, np.nan, self._inputs[rows, 0]))

    def _frame(self, rows: NDArray[np.int64], rewards: NDArray[np.float64]) -> Frame:
        states = self._inputs[rows] * (1.0 - self._time / STEPS)
        distance = self._inputs[rows].sum(axis=1, keepdims=True) - 0.3 * self._time / STEPS
        return Frame(states, states, distance, rewards, np.full(len(rows), self._time == STEPS))


class Still:
    """A policy that does nothing."""

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        return np.zeros(len(rows))


def target() -> Target:
    """The target."""
    return Target(
        name=f"{Path(__file__)}:target",
        inputs=InputSpace((Real("x", 0, 1), Real("y", 0, 1), Real("z", 0, 1))),
        simulator=FlakySimulator,
        policy=Still,
        oracle=Below("distance", 0, kind="fallen"),
        horizon=STEPS,
        batch_size=64,
        samples=500,
    )


def _suffer(fate: Fate) -> None:
    """Let the worst happen, if that is the fate."""
    match fate:
        case Fate.RAISES:
            raise ZeroDivisionError("the ball has lost its radius")
        case Fate.HANGS_IN_PYTHON:
            while True:
                time.sleep(1000)
        case Fate.HANGS_IN_C:
            while True:
                ctypes.PyDLL(None).sleep(1000)
        case Fate.SEGFAULTS:
            os.kill(os.getpid(), signal.SIGSEGV)
        case Fate.IS_KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        case Fate.EXITS:
            os._exit(7)


@cache
def _child() -> subprocess.Popen[bytes]:
    """A process that this one needs, like the server of a large simulator; it is never ended here."""
    return subprocess.Popen(["sleep", "100000"])


@cache
def _journal_file() -> int | None:
    """Descriptor of the file that this process writes down in what it runs."""
    folder = os.environ.get(JOURNAL)
    if not folder:
        return None
    path = Path(folder) / f"{os.getpid()}-{time.time_ns()}"
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _write(numbers: NDArray[np.uint64], what: NDArray[np.int64], stage: int) -> None:
    journal = _journal_file()
    if journal is not None and len(numbers):  # at once and unbuffered: it may be the last thing that is done
        pairs = zip(numbers.tolist(), what.tolist(), strict=True)
        os.write(journal, b"".join(RECORD.pack(number, fate, stage) for number, fate in pairs))


def _age(episodes: int) -> None:
    """Die at times, whatever is run."""
    average = float(os.environ.get(LIFE, _LONG_LIFE))
    chance = int.from_bytes(os.urandom(8)) / 2.0**64
    if chance < -np.expm1(-episodes / average):
        _write(np.zeros(1, np.uint64), np.zeros(1, np.int64), DIED)
        os.kill(os.getpid(), signal.SIGKILL)
