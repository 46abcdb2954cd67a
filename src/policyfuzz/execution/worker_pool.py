"""The worker pool protocol: start workers, send them cases, receive their messages, kill them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions

#: Chunks that a worker can hold: the one that it runs, and the next.
MAX_CHUNKS = 2


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """A worker has built its simulator and loaded its policy."""

    worker: int
    signals: tuple[str, ...]  #: of its simulator


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """A worker has run the oldest chunk it held."""

    worker: int
    #: Executions of the chunk, or an error that ends the campaign: the policy raised.
    result: Executions | Exception
    seconds: float  #: spent on the chunk


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker is gone, and so are the chunks it held."""

    worker: int
    text: str  #: how it ended, and its last output
    step: int = 0  #: of the episodes it was running, as far as known
    is_node_failure: bool = False  #: True if its machine failed, so no case can be the cause
    is_late: bool = False  #: True if it did not get ready in time; another would not either


Message = WorkerReady | ChunkResult | WorkerLost


class WorkerPool(Protocol):
    """Workers by number. Each number is used once; a replacement gets a new number."""

    def start(self, worker: int) -> None:
        """Start a new worker. `WorkerReady` or `WorkerLost` follows."""
        ...

    def send(
        self, worker: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64], *branches: NDArray[Any]
    ) -> None:
        """Send a chunk, cases (k, d) and (k,), to a worker that is ready and holds less than `MAX_CHUNKS`.

        `branches` are the arrays of its `Branches`, if it has any.
        """
        ...

    def wait(self, seconds: float | None) -> Sequence[Message]:
        """Messages of the workers, in order for each worker.

        Waits for the first one up to `seconds`, or without limit if None.
        """
        ...

    def kill(self, worker: int) -> None:
        """Kill a worker whatever it is doing. `WorkerLost` follows unless it was already reported."""
        ...

    def close(self) -> None:
        """Kill all workers."""
        ...
