"""Targets whose code does what the option `trouble` says, at the place that the option `where` names."""

import atexit
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target


class Custom(BaseException):
    pass


def raises(error):
    def trouble():
        raise error

    return trouble


def fork_and_return():
    if child := os.fork():
        os.waitpid(child, 0)  # the copy was ended, or this never returns


def leave_a_thread():
    threading.Thread(target=time.sleep, args=(1000,)).start()


def have_children():
    subprocess.run(["true"], check=True, preexec_fn=lambda: None)
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,), daemon=True).start()
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        os._exit(1)


def close_streams():
    sys.stdout.close()
    sys.__stdout__.close()
    sys.stderr = None


TROUBLES = {
    "children": have_children,
    "close": close_streams,
    "none": lambda: None,
    "exit0": lambda: sys.exit(0),
    "exit1": lambda: sys.exit(1),
    "interrupt": raises(KeyboardInterrupt()),
    "generator": raises(GeneratorExit()),
    "custom": raises(Custom("of the user's own")),
    "os0": lambda: os._exit(0),
    "os1": lambda: os._exit(1),
    "fork": fork_and_return,
    "thread": leave_a_thread,
    "atexit": lambda: atexit.register(os._exit, 0),
    "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": lambda: ctypes.PyDLL(None).sleep(1000),
    "print": lambda: sys.stdout.write("I am in the way of the results\n"),
}


class Level:
    """Steps down from its input; it is below zero at the end of a third of all episodes."""

    signals = ("level",)
    capacity = None

    def __init__(self, place, trouble):
        self._place, self._trouble = place, trouble
        self._maybe("simulator")

    def _maybe(self, place):
        if place == self._place:
            TROUBLES[self._trouble]()

    def reset(self, inputs, seeds):
        self._level = inputs[:, :1].copy()
        self._maybe("reset")
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self._level[rows] -= 0.1
        self._maybe("step")
        return self._frame(rows)

    def _frame(self, rows):
        level = self._level[rows]
        return Frame(level, level, level, level[:, 0], np.zeros(len(rows), bool))


class Idle:
    def __init__(self, place, trouble):
        self._place, self._trouble = place, trouble
        if place == "policy":
            TROUBLES[trouble]()

    def begin(self, count): ...

    def act(self, observations, rows):
        if self._place == "act":
            TROUBLES[self._trouble]()
        return np.zeros(len(rows))


class Judge(Below):
    def judge(self, trajectories):
        if os.environ.get("JUDGE"):
            TROUBLES[os.environ["JUDGE"]]()
        return super().judge(trajectories)


def make(where="", trouble="none", findings="yes"):
    if where == "factory":
        TROUBLES[trouble]()
    return Target(
        name="level",
        inputs=InputSpace((Real("x", 0.0 if findings == "yes" else 0.35, 0.9),)),
        simulator=lambda: Level(where, trouble),
        policy=lambda: Idle(where, trouble),
        oracle=Judge("level", 0.0, kind="low"),
        horizon=3,
        batch_size=32,
        samples=32,
    )
