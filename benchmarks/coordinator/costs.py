"""What an episode costs the coordinator, measured with workers that answer at once."""

import os
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.campaigns import finished_campaign
from benchmarks.speed.worker_targets import CountedPolicy
from policyfuzz import CampaignOptions, InputSpace, Real, Target
from policyfuzz.campaign.events import BatchDone, Event
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.settings import DEFAULT_STRATEGY
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.dispatch import Dispatcher
from policyfuzz.execution.executor import RAY, ExecutorChoice
from policyfuzz.execution.worker_pool import ChunkResult, Message, WorkerReady
from policyfuzz.oracles import NONE, Below, Verdicts
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose

#: Seconds that an episode is said to have taken.
_EPISODE_SECONDS = 1.0
_TIMEOUT = 300.0
#: Different state sequences; more would cost memory and show nothing else.
_SEQUENCES = 256
_SIGNALS = ("left",)
#: Batches of a campaign before costs are counted.
_WARM_UP = 3


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of an episode's results."""

    steps: int
    states: int  #: coordinates of a state
    inputs: int

    def __str__(self) -> str:
        return f"{self.steps} x {self.states}"


class CannedPool:
    """Workers that finish their work as soon as they get it; one answer at a time, as over a network."""

    def __init__(self, shape: Shape) -> None:
        rng = np.random.default_rng(0)
        steps = rng.normal(size=(shape.steps, _SEQUENCES, shape.states))
        self._states = np.cumsum(steps, axis=0)  # time first, as a rollout leaves it
        self._returns = rng.normal(size=_SEQUENCES)
        self._messages: deque[Message] = deque()

    def start(self, worker: int) -> None:
        self._messages.append(WorkerReady(worker, _SIGNALS))

    def send(
        self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *branches: NDArray[Any]
    ) -> None:
        rows = (seeds % np.uint64(_SEQUENCES)).astype(np.int64)
        nothing = np.full(len(rows), NONE, np.int64)
        lengths = np.full(len(rows), len(self._states), np.int64)
        states = self._states[:, rows].swapaxes(0, 1)
        result = Executions(self._returns[rows], lengths, states, Verdicts(nothing, nothing))
        self._messages.append(ChunkResult(worker, result, _EPISODE_SECONDS * len(rows)))

    def wait(self, seconds: float | None) -> Sequence[Message]:
        return [self._messages.popleft()] if self._messages else []

    def kill(self, worker: int) -> None: ...

    def close(self) -> None: ...


def target_of(shape: Shape) -> Target:
    """A target of this shape, which need not be run."""
    return Target(
        name="canned",
        inputs=InputSpace(tuple(Real(f"x{n}", 0, 1) for n in range(shape.inputs))),
        simulator=partial(Still, shape),
        policy=partial(CountedPolicy, None),
        oracle=Below("left", 0, kind="never"),
        horizon=max(shape.steps - 1, 1),
    )


class Still:
    """Shows the same states for some steps, and takes no time worth mentioning for it."""

    signals = _SIGNALS
    capacity = None

    def __init__(self, shape: Shape) -> None:
        self._states = np.random.default_rng(0).normal(size=(1, shape.states))

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        return self._frame(len(inputs))

    def step(self, actions: NDArray[np.float64], rows: NDArray[np.int64]) -> Frame:
        return self._frame(len(rows))

    def _frame(self, count: int) -> Frame:
        states = np.repeat(self._states, count, axis=0)
        return Frame(states, states, np.ones((count, 1)), np.ones(count), np.zeros(count, bool))


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of processor time of the coordinator for an episode."""

    strategy: str
    workers: int
    batch: int
    shape: Shape
    search: float  #: ask and tell, without the density
    density: float
    dispatch: float
    store: float
    other: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.search + self.density + self.dispatch + self.store + self.other


def campaign_cost(
    workers: int, batch: int, shape: Shape, batches: int = 12, strategy: str = DEFAULT_STRATEGY
) -> Cost:
    """The cost of a campaign whose workers answer at once, its first batches left out."""
    target = target_of(shape)
    options = CampaignOptions(strategy=strategy, batch=batch, samples=batch)
    seen: list[tuple[float, float, dict[str, float], int]] = []
    clocks: list[TimeSplit] = []

    def executor(target: Target, clock: TimeSplit) -> Dispatcher:
        clocks.append(clock)
        return Dispatcher(target, CannedPool(shape), workers, _TIMEOUT, clock)

    def listen(event: Event) -> None:
        if isinstance(event, BatchDone):
            now = time.perf_counter(), time.process_time()
            seen.append((*now, dict(clocks[0].seconds), event.progress.executions))

    with finished_campaign(target, (batches + 2 * _WARM_UP) * batch, options, executor, (listen,)):
        pass
    (start, work_before, before, first), (end, work_after, after, last) = (
        seen[_WARM_UP],
        seen[_WARM_UP + batches],
    )
    spent = {name: after[name] - before.get(name, 0.0) for name in after}
    parts = [spent.get(name, 0.0) for name in ("search", "density", "simulate", "store")]
    parts[0] += spent.get("validate", 0.0)
    parts.append(end - start - sum(parts))
    # the clock of a campaign counts time in which others had the processor
    scale = 1e6 * (work_after - work_before) / (end - start) / (last - first)
    return Cost(strategy, workers, batch, shape, *(scale * part for part in parts))


@dataclass(frozen=True, slots=True)
class MessageCost:
    """Microseconds of processor time for a chunk of one case and its answer."""

    kind: str
    workers: int
    shape: Shape
    coordinator: float
    bridge: float  #: of the process between coordinator and cluster; none for processes


def message_cost(kind: str, workers: int, shape: Shape, chunks: int = 1000) -> MessageCost:
    """The cost with workers that answer as fast as they can; messages may travel together."""
    target = target_of(shape)
    executor = ExecutorChoice(kind, workers).make_executor(target, TimeSplit())
    try:
        rng = np.random.default_rng(0)
        inputs, seeds = target.inputs.sample(rng, 1), np.zeros(1, np.uint64)
        cases = Cases.of(Purpose.SAMPLE, inputs, seeds, np.full(1, NO_PARENT, np.int64))
        executor.submit(cases)
        executor.collect()
        while executor.worker_stats.ready < workers:
            executor.submit(cases)
            executor.collect()
        bridge = _bridge(executor, kind)
        before = time.process_time(), _processor_seconds(bridge)
        for _ in range(2 * workers):
            executor.submit(cases)
        for _ in range(chunks):
            executor.submit(cases)
            executor.collect()
        after = time.process_time(), _processor_seconds(bridge)
    finally:
        executor.close()
    own, its = (1e6 * (late - early) / chunks for early, late in zip(before, after, strict=True))
    return MessageCost(kind, workers, shape, own, its)


def _bridge(executor: object, kind: str) -> int | None:
    """The process between coordinator and cluster, where there is one."""
    if kind != RAY:
        return None
    pool = next(part for part in vars(executor).values() if hasattr(part, "_process"))
    return int(pool._process.pid)


def _processor_seconds(process: int | None) -> float:
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
