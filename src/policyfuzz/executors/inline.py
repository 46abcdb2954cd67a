"""Runs cases in this process."""

import time
from collections import deque

from policyfuzz.executions import Executions
from policyfuzz.executors.protocol import Workforce
from policyfuzz.search.cases import Cases
from policyfuzz.target import Runner, Target
from policyfuzz.timing import TimeSplit


class InlineExecutor:
    """Runs a batch when its results are collected."""

    def __init__(self, target: Target, clock: TimeSplit) -> None:
        self._runner = Runner(target)
        self._clock = clock
        self._waiting: deque[Cases] = deque()
        self._since = time.perf_counter()

    def submit(self, cases: Cases) -> None:
        self._waiting.append(cases)

    def collect(self, seconds: float | None = None) -> Executions:
        cases = self._waiting.popleft()
        with self._clock.activity("simulate"):
            return self._runner(cases.inputs, cases.seeds)

    @property
    def workforce(self) -> Workforce:
        return Workforce(
            worker_seconds=time.perf_counter() - self._since,
            busy_seconds=self._clock.seconds.get("simulate", 0.0),
        )

    def close(self) -> None:
        self._waiting.clear()
