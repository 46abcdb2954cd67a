"""Which executor runs the episodes, from what the user said."""

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError, unknown_name
from policyfuzz.core.executions import Executions
from policyfuzz.core.target import Run, Runner, Target
from policyfuzz.core.timing import TimeSplit
from policyfuzz.execution.dispatch import Dispatcher
from policyfuzz.execution.executor import Executor, InlineExecutor, MakeExecutor
from policyfuzz.execution.pool import Crew
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class IsolatedRunner:
    """Runs episodes of `target` by an executor of its own, which goes when this object does."""

    def __init__(self, target: Target, make_executor: MakeExecutor) -> None:
        self._executor = make_executor(target, TimeSplit())
        weakref.finalize(self, self._executor.close)

    def __call__(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Executions:
        """Run one episode for each row of `inputs` (n, d) with case seeds (n,)."""
        parents = np.full(len(inputs), NO_PARENT, np.int64)
        self._executor.submit(Cases.of(Purpose.SAMPLE, inputs, seeds, parents))
        return self._executor.collect()


INLINE, PROCESSES, RAY = "inline", "processes", "ray"
#: Seconds that an episode may take in a worker, where the user says nothing.
TIMEOUT = 300.0


@dataclass(frozen=True, slots=True)
class ExecutorChoice:
    """Who runs episodes."""

    kind: str = INLINE
    workers: int | None = None  #: None for as many as there are cores
    timeout: float = TIMEOUT  #: seconds for an episode in a worker
    address: str = ""  #: of a Ray cluster; a new one without

    def __call__(self, target: Target, clock: TimeSplit) -> Executor:
        """The executor itself."""
        if self.kind == INLINE:
            return InlineExecutor(target, clock)
        wanted = _allowed(target, self.workers)
        make = _processes if self.kind == PROCESSES else partial(_ray, address=self.address)
        crew, workers = make(target, wanted)
        try:
            return Dispatcher(target, crew, workers, self.timeout, clock)
        except BaseException:
            crew.close()
            raise

    @property
    def runner(self) -> Callable[[Target], Run]:
        """What runs a few episodes outside of the campaign: as safely, and on this machine."""
        if self.kind == INLINE:
            return Runner
        nearby = ExecutorChoice(PROCESSES, self.workers if self.kind == PROCESSES else 1, self.timeout)
        return lambda target: IsolatedRunner(target, nearby)


def choose_executor(
    name: str | None = None, workers: int | None = None, timeout: float | None = None
) -> ExecutorChoice:
    """The executor that was asked for: inline, processes, or ray[:ADDRESS].

    Without a name it is worker processes if there is a number of `workers` or a `timeout` in seconds for an
    episode, and the campaign's own process otherwise.
    """
    if workers is not None and workers < 1:
        raise UsageError(f"workers is {workers}, expected 1 or more")
    if timeout is not None and not timeout > 0:
        raise UsageError(f"timeout is {timeout:g} s, expected more than 0")
    kind, _, address = (name or "").partition(":")
    kind = kind or (INLINE if workers is None and timeout is None else PROCESSES)
    if kind not in (INLINE, PROCESSES, RAY):
        raise unknown_name("executor", kind, (INLINE, PROCESSES, RAY))
    if address and kind != RAY:
        raise UsageError(f"executor {kind} has no address, and was given {address!r}", "write ray:ADDRESS")
    if kind == INLINE and (workers is not None or timeout is not None):
        raise UsageError(
            "the executor inline has no workers, and cannot stop what hangs",
            "leave out -j and --timeout, or --executor inline",
        )
    return ExecutorChoice(kind, workers, timeout or TIMEOUT, address)


def _allowed(target: Target, workers: int | None) -> int | None:
    """`workers`, unless the target takes fewer."""
    most = target.max_workers
    if most is not None and workers is not None and workers > most:
        raise UsageError(
            f"target {target.name} can be run by {most} worker{'s' if most > 1 else ''} at a time,"
            f" and was given {workers}",
            f"use -j {most}",
        )
    return most if workers is None else workers


def _processes(target: Target, workers: int | None) -> tuple[Crew, int]:
    if not hasattr(os, "killpg"):
        raise UsageError("worker processes need Linux or macOS", "run without -j and --timeout")
    from policyfuzz.execution.processes.pool import ProcessCrew
    from policyfuzz.execution.shipping import pack

    return ProcessCrew(pack(target)), workers or usable_cores()


def _ray(target: Target, workers: int | None, address: str) -> tuple[Crew, int]:
    from policyfuzz.execution.ray.pool import RayCrew
    from policyfuzz.execution.shipping import pack

    crew = RayCrew(pack(target), address or None, workers)
    return crew, workers or crew.cpus
