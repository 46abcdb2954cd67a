"""What runs batches, in order; and the simplest one, in this process."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Runner, Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.search.cases import Cases


@dataclass(frozen=True, slots=True)
class Workforce:
    """Who runs episodes, and how busy they have been."""

    wanted: int = 1  #: workers that were asked for
    ready: int = 1  #: workers that can run episodes now
    worker_seconds: float = 0.0  #: that the wanted workers had, since the first was ready
    busy_seconds: float = 0.0  #: of these that they ran episodes
    restarts: int = 0  #: workers that had to be replaced


class TimeIsUp(Exception):
    """Results have not come in time."""


class Executor(Protocol):
    """Runs batches of cases; results come back in the order of submission."""

    def submit(self, cases: Cases) -> None:
        """Take a batch to run."""
        ...

    def collect(self, seconds: float | None = None) -> Executions:
        """Results of the oldest batch that was not collected yet; waits for them.

        An executor that can leave off raises `TimeIsUp` where they are not there after `seconds`.
        """
        ...

    @property
    def workforce(self) -> Workforce:
        """How the workers are doing."""
        ...

    def close(self) -> None:
        """Let go of everything; what was not collected is lost."""
        ...


#: Makes an executor of a target, which adds the time it spends simulating.
MakeExecutor = Callable[[Target, TimeSplit], Executor]


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
