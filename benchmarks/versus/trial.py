"""The protocol of contestants, and a recorder that runs and counts the episodes of a peer."""

import time
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.core.target import Runner, Target
from policyfuzz.search.algorithm import Validator
from policyfuzz.search.cases import NO_PARENT


@dataclass(frozen=True, slots=True)
class Trial:
    """What one contestant claims to have found on one target with one seed, in the order of discovery.

    Claims are not believed: `judge` runs each of them again.
    """

    episodes: int  #: that were run, whatever for
    seconds: float  #: of wall time
    cpu_seconds: float  #: of this process
    numbers: NDArray[np.int64]  #: (f,) which episode, from 1, each claim is about
    inputs: NDArray[np.float64]  #: (f, d)
    seeds: NDArray[np.uint64]  #: (f,) case seeds
    #: (f,) random draw that each claim descends from; None where the contestant does not know
    roots: NDArray[np.int64] | None = field(default=None, kw_only=True)


class Contestant(Protocol):
    """Something that looks for crashes."""

    def __call__(self, target: Target, episodes: int, seed: int) -> Trial:
        """Run exactly so many episodes of `target`."""
        ...


class Recorder:
    """The episodes of one trial, from its start on."""

    def __init__(self, target: Target, episodes: int) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        self.target = target
        self.left = episodes  #: episodes that may still be run
        self._run = Runner(target)
        self._done = 0
        self._numbers: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
        self._inputs: list[NDArray[np.float64]] = [np.empty((0, len(target.inputs.dimensions)))]
        self._seeds: list[NDArray[np.uint64]] = [np.empty(0, np.uint64)]
        self._roots: list[NDArray[np.int64]] | None = None

    def run(
        self,
        inputs: NDArray[np.float64],
        seeds: NDArray[np.uint64],
        roots: NDArray[np.int64] | None = None,
    ) -> Executions:
        """Run `inputs` (n, d) with case seeds (n,), only the first of them if fewer are left.

        A contestant that knows the roots (n,) of all its inputs gives them every time.
        """
        inputs, seeds = inputs[: self.left], seeds[: self.left]
        size = self.target.batch_size
        parts = [slice(start, start + size) for start in range(0, max(len(inputs), 1), size)]
        executions = concatenate([self._run(inputs[part], seeds[part]) for part in parts])
        rows = np.flatnonzero(executions.crashed)
        self._numbers.append(self._done + 1 + rows)
        self._inputs.append(inputs[rows])
        self._seeds.append(seeds[rows])
        if roots is not None:
            self._roots = [*(self._roots or []), roots[rows]]
        self._done += len(inputs)
        self.left -= len(inputs)
        return executions

    def trial(self) -> Trial:
        """All that was recorded."""
        return Trial(
            episodes=self._done,
            seconds=time.perf_counter() - self._wall,
            cpu_seconds=time.process_time() - self._cpu,
            numbers=np.concatenate(self._numbers),
            inputs=np.concatenate(self._inputs),
            seeds=np.concatenate(self._seeds),
            roots=None if self._roots is None else np.concatenate(self._roots),
        )


def learnable(executions: Executions) -> NDArray[np.bool_]:
    """(n,) True where an episode was run to its end and earned a number."""
    return np.asarray(executions.sound & np.isfinite(executions.returns))


def draw_samples(validator: Validator, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """(count, d) Draws from the nominal distribution; what is not valid and solvable is drawn again."""

    def draw(wanted: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return np.full(wanted, NO_PARENT, np.int64), validator.space.sample(rng, wanted)

    return validator.fill(count, draw)[1]


def draw_seeds(rng: np.random.Generator, count: int) -> NDArray[np.uint64]:
    """(count,) Case seeds."""
    return rng.integers(0, 2**63, count, dtype=np.uint64)
