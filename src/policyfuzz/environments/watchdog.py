"""Notices environments that do not answer."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class NoAnswer(Exception):
    """An environment has not answered in time."""


class Watchdog:
    """Raises `NoAnswer` inside a `with` block whose `beats` stand still for longer than `seconds`.

    It takes between one and two times `seconds` to notice. It works by the alarm signal, so in the main
    thread of a Unix process only; elsewhere it does nothing. Code that never comes back to Python cannot be
    interrupted this way.
    """

    def __init__(self, seconds: float | None) -> None:
        self.beats = 0  #: whoever is watched counts this up
        self._seconds = seconds
        self._seen = -1
        self._before: Any = None
        self._is_set = False

    def __enter__(self) -> "Watchdog":
        is_main = threading.current_thread() is threading.main_thread()
        if self._seconds is not None and is_main and hasattr(signal, "setitimer"):
            self._seen = -1
            self._before = signal.signal(signal.SIGALRM, self._look)
            signal.setitimer(signal.ITIMER_REAL, self._seconds, self._seconds)
            self._is_set = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_set:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before)
            self._is_set = False

    def _look(self, _number: int, _frame: FrameType | None) -> None:
        if self.beats == self._seen:
            self._seen = -1
            raise NoAnswer(f"no answer within {self._seconds:g} s")
        self._seen = self.beats
