"""Episodes that pass, to compare one that crashes with: from nearby inputs, or else from random ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UnhealthyTarget
from policyfuzz.core.recording import Recordings, record_all
from policyfuzz.core.target import Runner, Target
from policyfuzz.search.algorithm import Validator

#: Episodes that are run of each kind, if they are fast.
_TRIED = 48
#: Fewer passing episodes than this make no band.
_LEAST = 6
#: Seconds that those of one kind may take: whoever replays a finding waits for it.
_SECONDS = 8.0
#: How often the target's small noise is added to the input of the finding: near, and not so near.
_NEAR = (1, 8)

#: Draws a number of inputs and their case seeds.
Draw = Callable[[int], tuple[NDArray[np.float64], NDArray[np.uint64]]]


@dataclass(frozen=True, slots=True)
class PassingEpisodes:
    """Episodes that the oracle accepts."""

    recordings: Recordings
    are_near: bool  #: their inputs are those of the finding with some noise; False: random ones

    def __len__(self) -> int:
        return len(self.recordings.executions)


def passing_episodes(
    runner: Runner, row: NDArray[np.float64], seed: int, seconds: float
) -> PassingEpisodes | None:
    """Passing episodes near the input `row` (d,) with its case seed, or random ones where all near it crash.

    Nearby ones are better: what differs from them is what makes the crash, while random ones differ in
    everything. Their number depends on the `seconds` that one takes; the inputs do not. None if too few
    pass, or if episodes take so long that nobody would wait for some more.
    """
    rng = np.random.default_rng(0)
    count = min(_TRIED, int(_SECONDS / max(seconds, 1e-6)))
    for are_near, draw in _draws(runner.target, row, seed, rng):
        if count < _LEAST:
            break
        try:
            recordings = record_all(runner, *draw(count))
        except UnhealthyTarget:  # hardly any input is valid
            continue
        executions = recordings.executions
        passes = np.flatnonzero(executions.sound & ~executions.crashed)
        if len(passes) >= _LEAST:
            return PassingEpisodes(_at(recordings, passes), are_near)
    return None


def _draws(
    target: Target, row: NDArray[np.float64], seed: int, rng: np.random.Generator
) -> Iterator[tuple[bool, Draw]]:
    """What to try, the best first: whether it is near the finding, and how to draw it."""
    space, validator = target.inputs, Validator(target.inputs, None)

    def noisy(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        return space.perturb(inputs, rng)

    def draw_near(times: int, count: int) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        inputs = np.repeat(row[None], count, axis=0)
        for _ in range(times):
            changed, is_good = validator.near(inputs, noisy)
            inputs = np.where(is_good[:, None], changed, inputs)
        return inputs, np.full(count, seed, np.uint64)

    def draw_random(count: int) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
        _, inputs = validator.fill(count, lambda some: (np.zeros(some, np.int64), space.sample(rng, some)))
        return inputs, rng.integers(0, 2**63, count, dtype=np.uint64)

    for times in _NEAR:
        yield True, partial(draw_near, times)
    yield False, draw_random


def _at(recordings: Recordings, rows: NDArray[np.int64]) -> Recordings:
    """The `recordings` at `rows`, as long as the longest of them."""
    executions = recordings.executions[rows]
    time = int(executions.lengths.max())
    parts = (recordings.states, recordings.signals, recordings.rewards, recordings.actions)
    return Recordings(executions, *(part[rows, :time] for part in parts))
