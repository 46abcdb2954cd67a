"""What a contestant is asked, and what it answers."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.target import Target


@dataclass(frozen=True, slots=True)
class Trial:
    """What one contestant claims to have found on one target with one seed, in the order of discovery.

    Claims are not believed: `judge` runs each of them again.
    """

    episodes: int  #: that were run, whatever for
    seconds: float  #: of wall time
    cpu_seconds: float  #: of this process
    numbers: NDArray[np.int64]  #: (f,) how many episodes had been run when each claim was made
    inputs: NDArray[np.float64]  #: (f, d)
    seeds: NDArray[np.uint64]  #: (f,) case seeds


class Contestant(Protocol):
    """Something that looks for crashes."""

    def __call__(self, target: Target, episodes: int, seed: int) -> Trial:
        """Run exactly so many episodes of `target`."""
        ...
