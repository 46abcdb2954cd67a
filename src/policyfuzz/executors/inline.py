"""Runs cases in this process."""

from collections import deque

from policyfuzz.executions import Executions
from policyfuzz.search.cases import Cases
from policyfuzz.target import Runner, Target
from policyfuzz.timing import TimeSplit


class InlineExecutor:
    """Runs a batch when its results are collected."""

    def __init__(self, target: Target, clock: TimeSplit) -> None:
        self._runner = Runner(target)
        self._clock = clock
        self._waiting: deque[Cases] = deque()

    def submit(self, cases: Cases) -> None:
        self._waiting.append(cases)

    def collect(self) -> Executions:
        cases = self._waiting.popleft()
        with self._clock.activity("simulate"):
            return self._runner(cases.inputs, cases.seeds)
