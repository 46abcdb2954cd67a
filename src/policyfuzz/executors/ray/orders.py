"""What workers far away are told to do, as data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.executors.crew import Crew


@dataclass(frozen=True, slots=True)
class Start:
    """Have a new worker."""

    worker: int


@dataclass(frozen=True, slots=True)
class Send:
    """Give a worker cases (k, d) and (k,) to run."""

    worker: int
    inputs: NDArray[np.float64]
    seeds: NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Kill:
    """End a worker whatever it is doing."""

    worker: int


Order = Start | Send | Kill


def carry_out(order: Order, crew: Crew) -> None:
    """Have `crew` do it."""
    match order:
        case Start(worker):
            crew.start(worker)
        case Send(worker, inputs, seeds):
            crew.send(worker, inputs, seeds)
        case Kill(worker):
            crew.kill(worker)
