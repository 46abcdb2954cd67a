"""What a simulator is: n episodes that are reset and stepped together."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from policyfuzz.episode_error import EpisodeError


@dataclass(frozen=True, slots=True)
class Frame:
    """What m episodes show after a reset or a step."""

    observations: NDArray[Any]  #: (m, ...) what the policy sees
    states: NDArray[np.float64]  #: (m, k) what the density sees; often the same as the observations
    signals: NDArray[np.float64]  #: (m, s) what the oracle judges, in the order of `Simulator.signals`
    rewards: NDArray[np.float64]  #: (m,) zero after a reset
    ended: NDArray[np.bool_]  #: (m,) True where the episode is over
    #: Position in this frame to what went wrong; these episodes have ended, and their numbers mean nothing.
    errors: Mapping[int, EpisodeError] = field(default_factory=dict)


class Simulator(Protocol):
    """Holds n episodes at once. An episode depends on its input and seed only, never on its neighbours."""

    @property
    def signals(self) -> tuple[str, ...]:
        """Names of the columns of `Frame.signals`."""
        ...

    @property
    def capacity(self) -> int | None:
        """Episodes it can hold at once, None for any number."""
        ...

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        """Start an episode for each row of `inputs` (n, d); `seeds` (n,) feed all its randomness."""
        ...

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        """Advance episodes `rows` (m,), increasing, by one step with `actions` (m, ...)."""
        ...


@runtime_checkable
class Renders(Protocol):
    """A simulator that can be filmed."""

    def render(self, row: int) -> NDArray[np.uint8]:
        """A picture (height, width, 3) of episode `row` as it is now; the same size throughout."""
        ...
