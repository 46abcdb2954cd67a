"""Simulates thousands of workers on a virtual clock, with the real dispatcher."""

import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.coordinator.costs import Shape, target_of
from policyfuzz.core.executions import Executions
from policyfuzz.execution.dispatch import Dispatcher
from policyfuzz.execution.worker_pool import ChunkResult, Message, WorkerReady
from policyfuzz.oracles import NONE, Verdicts
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose

_TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds of the coordinator."""

    episode: float  #: ask, tell, store
    message: float  #: a chunk there and its answer back
    relay: float = 0.0  #: the same, of the process between coordinator and cluster
    delay: float = 0.001  #: for which a message travels, while neither side is busy


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated."""

    workers: int
    batch: int
    window: int
    varies: bool = False  #: episodes take 0.18 to 1.8 s, all alike often, instead of 1 s


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a simulation."""

    plan: Plan
    utilisation: float
    episodes_per_second: float


@dataclass
class VirtualPool:
    """Workers whose episodes take as long as their inputs say, on a clock that others may advance.

    Messages pass a relay one after another; without one, that costs nothing.
    """

    costs: Costs
    now: float = 0.0
    busy: float = 0.0
    _relay_free: float = 0.0  #: when the relay has nothing more to do
    _finished: list[tuple[float, int]] = field(default_factory=list)  #: when and who will be
    _arriving: list[tuple[float, int, float]] = field(default_factory=list)  #: answers: when, whose, seconds
    _queues: dict[int, deque[tuple[float, float]]] = field(default_factory=dict)  #: arrival, seconds
    _news: list[Message] = field(default_factory=list)

    def clock(self) -> float:
        """The time."""
        return self.now

    def start(self, worker: int) -> None:
        self._queues[worker] = deque()
        self._news.append(WorkerReady(worker, ("left",)))

    def send(
        self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *branches: NDArray[Any]
    ) -> None:
        self.now += self.costs.message / 2
        self._relay_all_until(self.now)
        queue = self._queues[worker]
        queue.append((self._relayed(self.now), float(inputs[:, 0].sum())))
        if len(queue) == 1:
            self._begin(worker, self.now)

    def wait(self, seconds: float | None) -> Sequence[Message]:
        if self._news:
            news, self._news = self._news, []
            return news
        end = math.inf if seconds is None else self.now + seconds
        # no further ahead than to the next answer: what is sent then goes before what is finished later
        while self._finished and self._finished[0][0] <= min(end, self._next_arrival()):
            self._relay_all_until(self._finished[0][0])
        self.now = max(self.now, min(end, self._next_arrival()))
        messages = []
        while self._arriving and self._arriving[0][0] <= self.now:
            _, worker, took = heapq.heappop(self._arriving)
            messages.append(ChunkResult(worker, _NOTHING, took))
        self.now += self.costs.message / 2 * len(messages)
        return messages

    def kill(self, worker: int) -> None: ...

    def close(self) -> None: ...

    def _next_arrival(self) -> float:
        return self._arriving[0][0] if self._arriving else math.inf

    def _relayed(self, at: float) -> float:
        """When a message that was sent at some time arrives."""
        self._relay_free = max(at, self._relay_free) + self.costs.relay / 2
        return self._relay_free + self.costs.delay

    def _begin(self, worker: int, at: float) -> None:
        arrival, seconds = self._queues[worker][0]
        heapq.heappush(self._finished, (max(at, arrival) + seconds, worker))

    def _relay_all_until(self, time: float) -> None:
        while self._finished and self._finished[0][0] <= time:
            at, worker = heapq.heappop(self._finished)
            _, seconds = self._queues[worker].popleft()
            self.busy += seconds
            heapq.heappush(self._arriving, (self._relayed(at), worker, seconds))
            if self._queues[worker]:
                self._begin(worker, at)


#: The result of every chunk, which is never read.
_NOTHING = Executions(
    np.zeros(1), np.ones(1, np.int64), np.zeros((1, 1, 1)), Verdicts(*[np.array([NONE])] * 2)
)


def simulate(plan: Plan, costs: Costs, seconds: float = 30.0) -> Outcome:
    """Run batches for `seconds` of virtual time, after as long a warm-up."""
    pool = VirtualPool(costs)
    dispatcher = Dispatcher(target_of(Shape(1, 1, 1)), pool, plan.workers, _TIMEOUT, now=pool.clock)
    rng = np.random.default_rng(0)
    before = (0.0, 0.0)
    done = 0
    for _ in range(plan.window - 1):
        _submit(dispatcher, pool, plan, rng)
    while pool.now < 2 * seconds:
        if pool.now >= seconds and not done:
            before = (pool.now, pool.busy)
        _submit(dispatcher, pool, plan, rng)
        dispatcher.collect()
        done += plan.batch if before[0] else 0
    elapsed, busy = pool.now - before[0], pool.busy - before[1]
    # work counts when it is done, so a little may have begun during the warm-up
    return Outcome(plan, min(1.0, busy / (plan.workers * elapsed)), done / elapsed)


def _submit(dispatcher: Dispatcher, pool: VirtualPool, plan: Plan, rng: np.random.Generator) -> None:
    """Ask for a batch; what tell and store will cost is charged here as well."""
    pool.now += pool.costs.episode * plan.batch
    # a tenfold spread with a mean of one second
    lengths = rng.uniform(1, 10, plan.batch) / 5.5 if plan.varies else np.ones(plan.batch)
    seeds = np.zeros(plan.batch, np.uint64)
    dispatcher.submit(
        Cases.of(Purpose.SAMPLE, lengths[:, None], seeds, np.full(plan.batch, NO_PARENT, np.int64))
    )
