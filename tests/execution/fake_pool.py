"""A worker pool without processes: workers answer, die and hang by chance, on a simulated clock."""

import random
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from policyfuzz import Below, Frame, InputSpace, Real, Target
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.target import Runner
from policyfuzz.execution.worker_pool import ChunkResult, Message, WorkerLost, WorkerReady
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose

#: What is wrong with a case, by its second input.
INNOCENT, KILLER, HANGER, REFUSED = 0.0, 1.0, 2.0, 3.0
#: Of the clock, for what takes a worker no time worth mentioning.
MOMENT = 0.001


class Walk:
    """Episodes of various lengths: they end when their first input is walked off."""

    signals = ("left",)
    capacity = None

    def reset(self, inputs, seeds):
        self._left = 4 * inputs[:, 0] + seeds % 3
        return self._frame(np.arange(len(inputs)))

    def step(self, actions, rows):
        self._left[rows] -= 1.0
        return self._frame(rows)

    def _frame(self, rows):
        left = self._left[rows, None].copy()
        return Frame(left, left, left, left[:, 0] / 3, left[:, 0] < 0)


class Idle:
    def begin(self, count): ...

    def act(self, observations, rows):
        return np.zeros(len(rows))


def walk() -> Target:
    """A target whose episodes have 1 to 7 steps, and end in a crash where the first input is large."""
    return Target(
        name="fake_pool:walk",
        inputs=InputSpace((Real("far", 0, 1), Real("fault", 0, 3))),
        simulator=Walk,
        policy=Idle,
        oracle=Below("left", -0.9, kind="fell"),
        horizon=6,
    )


def cases(faults, luck: random.Random | None = None) -> Cases:
    """Cases (n,) with these `faults`, all different."""
    luck = luck or random.Random(0)
    count = len(faults)
    inputs = np.array([[luck.random(), fault] for fault in faults]).reshape(count, 2)
    seeds = np.array([luck.getrandbits(64) for _ in range(count)], np.uint64)
    return Cases.of(Purpose.SAMPLE, inputs, seeds, np.full(count, NO_PARENT, np.int64))


@dataclass
class FakeWorker:
    """The state of a worker, and the chunks it was sent."""

    is_ready: bool = False
    is_killed: bool = False
    work: deque = field(default_factory=deque)  #: of (inputs, seeds)


@dataclass
class FakePool:
    """Keeps what a dispatcher must keep to, and does whatever a pool may do, in any order.

    Events happen in `wait` one or a few at a time; only when nobody can do anything the clock goes on.
    """

    luck: random.Random
    starts_fail: float = 0.0  #: probability; never more than two in a row
    node_failures: float = 0.0  #: probability per event that a machine fails
    murders: float = 0.0  #: probability per event that somebody outside kills a worker
    now: float = 0.0
    workers: dict[int, FakeWorker] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    is_closed: bool = False
    busy: float = 0.0
    replaced: int = 0  #: workers lost that were ready, or whose machine failed
    failed_in_a_row: int = 0
    first_ready: float | None = None
    deaths: dict[float, int] = field(default_factory=dict)  #: by first input, while it was run

    def __post_init__(self) -> None:
        self._runner = Runner(walk())

    def clock(self) -> float:
        return self.now

    def start(self, worker: int) -> None:
        assert worker not in self.used, "a number is used once"
        self.used.add(worker)
        self.workers[worker] = FakeWorker()

    def send(self, worker, inputs, seeds) -> None:
        state = self.workers[worker]
        assert state.is_ready, "work for a worker that is not ready"
        assert not state.is_killed, "work for a worker that was killed"
        assert len(state.work) < 2, "more than two pieces of work"
        assert len(inputs) == len(seeds) > 0
        state.work.append((inputs.copy(), seeds.copy()))

    def kill(self, worker: int) -> None:
        assert not self.workers[worker].is_killed, "killed twice"
        self.workers[worker].is_killed = True

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True

    def wait(self, seconds):
        assert not self.is_closed
        messages: list[Message] = []
        for _ in range(self.luck.randint(1, 4)):
            able = [number for number, state in self.workers.items() if self._can_act(state)]
            if not able:
                break
            messages.append(self._event(self.luck.choice(able)))
        if not messages:
            assert seconds is not None, "waits for ever, and nobody will ever say anything"
            self.now += seconds + MOMENT
        return messages

    def _can_act(self, state: FakeWorker) -> bool:
        if state.is_killed or not state.is_ready:
            return True
        return bool(state.work) and not (state.work[0][0][:, 1] == HANGER).any()

    def _event(self, worker: int) -> Message:
        state = self.workers[worker]
        if not state.is_killed and self.luck.random() < self.node_failures:
            return self._lost(worker, is_node_failure=True)
        if state.is_killed:
            return self._lost(worker)
        if not state.is_ready:
            return self._started(worker)
        inputs, seeds = state.work[0]
        is_murdered = self.luck.random() < self.murders and self._survives(inputs)
        if is_murdered or (inputs[:, 1] == KILLER).any():
            for key in inputs[:, 0].tolist():
                self.deaths[key] = self.deaths.get(key, 0) + 1
            return self._lost(worker)
        state.work.popleft()
        seconds = MOMENT * len(inputs)
        self.now += seconds
        self.busy += seconds
        refused = np.flatnonzero(inputs[:, 1] == REFUSED)
        result = PolicyError(f"refused {inputs[refused[0], 0]}") if len(refused) else None
        return ChunkResult(worker, result or self._runner(inputs, seeds), seconds)

    def _survives(self, inputs) -> bool:
        """True where one more death would not make an innocent case look like a killer."""
        return len(inputs) > 1 or self.deaths.get(float(inputs[0, 0]), 0) == 0

    def _started(self, worker: int) -> Message:
        if self.failed_in_a_row < 2 and self.luck.random() < self.starts_fail:
            self.failed_in_a_row += 1
            return self._lost(worker)
        self.failed_in_a_row = 0
        self.first_ready = self.now if self.first_ready is None else self.first_ready
        self.workers[worker].is_ready = True
        return WorkerReady(worker, Walk.signals)

    def _lost(self, worker: int, is_node_failure: bool = False) -> WorkerLost:
        state = self.workers.pop(worker)
        self.replaced += state.is_ready or is_node_failure
        return WorkerLost(worker, f"worker {worker} died", step=2, is_node_failure=is_node_failure)
