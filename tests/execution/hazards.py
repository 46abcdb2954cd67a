"""A target whose episodes do to their process what their input says; `HAZARDS` has the numbers."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target


def segfault():
    os.kill(os.getpid(), signal.SIGSEGV)


def out_of_memory():
    os.kill(os.getpid(), signal.SIGKILL)


def real_time_signal():
    os.kill(os.getpid(), signal.SIGRTMIN + 5)


def leave():
    sys.exit("I have had enough")


def leave_at_once():
    os._exit(0)


def hang_in_c():
    ctypes.PyDLL(None).sleep(1000)  # holds the interpreter's lock: no thread and no handler ever runs


def hang_in_python():
    while True:
        pass


def hang_deaf():
    """Hang, and let SIGABRT pass."""
    signal.signal(signal.SIGABRT, signal.SIG_IGN)
    hang_in_c()


def die_with_heir():
    """Leave a child behind that has all descriptors, the socket too."""
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(7)


def have_a_child():
    subprocess.Popen(["sleep", "1000"])


def have_a_child_that_goes_away():
    """Start it in a session of its own, as servers often are."""
    subprocess.Popen(["sleep", "1000"], start_new_session=True)


def lose_a_child_that_went_away():
    have_a_child_that_goes_away()
    segfault()


def fork_and_both_go_on():
    if child := os.fork():
        os.waitpid(child, 0)  # until the copy is ended


def hang_with_a_child():
    have_a_child()
    hang_in_c()


def talk_much():
    for _ in range(200):
        os.write(1, b"o" * 100_000)
        os.write(2, b"e" * 100_000)


def talk_and_hang():
    while True:
        talk_much()


def close_descriptors():
    os.closerange(0, 100)
    time.sleep(1000)


def nap():
    time.sleep(0.3)


def do_nothing(): ...


HAZARDS = (
    do_nothing,
    segfault,
    out_of_memory,
    real_time_signal,
    leave,
    leave_at_once,
    hang_in_c,
    hang_in_python,
    hang_deaf,
    die_with_heir,
    have_a_child,
    have_a_child_that_goes_away,
    lose_a_child_that_went_away,
    fork_and_both_go_on,
    hang_with_a_child,
    talk_much,
    talk_and_hang,
    close_descriptors,
    nap,
)
NUMBERS = {hazard.__name__: number for number, hazard in enumerate(HAZARDS)}


class Minefield:
    """Does at step 2 what the second input says; the third is what an episode returns per step."""

    signals = ("health",)
    capacity = None

    def reset(self, inputs, seeds):
        self._inputs, self._time = inputs, 0
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self._time += 1
        if self._time == 2:
            for number in self._inputs[rows, 1]:
                HAZARDS[int(number)]()
        return self._frame(rows)

    def _frame(self, rows):
        states = self._inputs[rows, :1] + self._time / 3
        return Frame(states, states, 1.5 - states, self._inputs[rows, 2] / 3, np.zeros(len(rows), bool))


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


class Counted(Idle):
    """A policy that takes note of being loaded."""

    def __init__(self):
        with Path(os.environ["LOADED"]).open("a") as file:
            file.write(f"{os.getpid()}\n")


class Threads(Minefield):
    """Returns how many threads numerical libraries would use here."""

    def _frame(self, rows):
        from threadpoolctl import threadpool_info

        pools = [pool["num_threads"] for pool in threadpool_info()]
        count = max([*pools, int(os.environ["OMP_NUM_THREADS"])])  # which torch goes by, when it is imported
        frame = super()._frame(rows)
        frame.rewards[:] = count
        return frame


def raise_at_start():
    raise ValueError("no licence for this simulator")


def minefield(simulator=Minefield, policy=Idle) -> Target:
    return Target(
        name="hazards.py:minefield",
        inputs=InputSpace((Real("x", 0, 1), Real("hazard", 0, len(HAZARDS)), Real("reward", 0, 1))),
        simulator=simulator,
        policy=policy,
        oracle=Below("health", 0, kind="ill"),
        horizon=4,
    )
