"""What a crew is: workers that can be started, given work, heard and killed, wherever they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions


@dataclass(frozen=True, slots=True)
class Ready:
    """A worker has built its simulator and loaded its policy."""

    worker: int
    signals: tuple[str, ...]  #: of its simulator


@dataclass(frozen=True, slots=True)
class Answer:
    """A worker has run the oldest work that it was sent and has not answered."""

    worker: int
    #: What came of it, or an error that ends the campaign: the policy raised.
    result: Executions | Exception
    seconds: float  #: that it worked on it


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker is gone, and so is what it had not answered."""

    worker: int
    text: str  #: how it ended, and what it said last
    step: int = 0  #: of the episodes that it was running, as far as anybody knows
    is_blameless: bool = False  #: True where it cannot be the work: its machine has gone


Message = Ready | Answer | Lost


class Crew(Protocol):
    """Workers by number. A number is used once; who is lost is replaced under another one."""

    def start(self, worker: int) -> None:
        """Have a new worker; it tells when it is ready, or that it is lost."""
        ...

    def send(self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> None:
        """Give a worker that is ready cases (k, d) and (k,) to run, while it has fewer than two already."""
        ...

    def wait(self, seconds: float | None) -> Sequence[Message]:
        """What workers have said, each in order; waits for something at most `seconds`, None for ever."""
        ...

    def kill(self, worker: int) -> None:
        """End a worker whatever it is doing; it is told as `Lost` later, unless it is so already."""
        ...

    def close(self) -> None:
        """End all workers at once."""
        ...
