"""Runs a few episodes outside of a campaign, where they cannot take this process with them."""

import weakref

import numpy as np
from numpy.typing import NDArray

from policyfuzz.executions import Executions
from policyfuzz.executors.protocol import MakeExecutor
from policyfuzz.search.cases import NO_PARENT, Cases, Purpose
from policyfuzz.target import Target
from policyfuzz.timing import TimeSplit


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
