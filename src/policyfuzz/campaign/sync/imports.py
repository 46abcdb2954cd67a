"""Cases of other instances that wait to be run here, and whose they are."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.search.cases import Cases, Purpose


@dataclass(frozen=True, slots=True)
class Sender:
    """An instance that cases came from."""

    instance: str  #: what it is known by, whatever its folder is called
    name: str  #: of its folder
    parcels: int = 0  #: how many of what it has sent have been looked at


@dataclass(slots=True)
class Imports:
    """What was taken from other instances and has not been run. Nothing is taken twice."""

    dimensions: int
    #: A search that changes nothing has no use for what did not crash.
    wants_entries: bool = True
    _senders: list[Sender] = field(init=False, default_factory=list)  #: their number is their place
    _queue: Cases = field(init=False)
    _taken: int = field(init=False, default=0)  #: of the queue
    _is_stored: bool = field(init=False, default=True)  #: nothing but `_taken` changed since `state`

    def __post_init__(self) -> None:
        self._queue = Cases.none(self.dimensions)

    def __len__(self) -> int:
        """Cases that wait."""
        return len(self._queue) - self._taken

    def number(self, instance: str, name: str) -> int:
        """The number of the `instance` whose folder is now called `name`."""
        for number, sender in enumerate(self._senders):
            if sender.instance == instance:
                self._senders[number] = replace(sender, name=name)
                return number
        self._senders.append(Sender(instance, name))
        return len(self._senders) - 1

    def sender(self, number: int) -> Sender:
        """The instance of this `number`."""
        return self._senders[number]

    def add(self, number: int, parcels: int, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> None:
        """Have `inputs` (n, d) with case `seeds` (n,) run, before all that wait already.

        They come from instance `number`, of whose parcels the first `parcels` need not be looked at again.
        """
        new = Cases.of(Purpose.IMPORT, inputs, seeds, np.full(len(inputs), number, np.int64))
        self._queue, self._taken = Cases.concatenate([new, self._queue[self._taken :]]), 0
        self._senders[number] = replace(self._senders[number], parcels=parcels)
        self._is_stored = False

    def shorten(self, most: int) -> int:
        """Forget those that have waited longest, so that at most `most` are left; return how many."""
        left_out = max(len(self) - most, 0)
        if left_out:
            self._queue, self._is_stored = self._queue[: len(self._queue) - left_out], False
        return left_out

    def take(self, count: int) -> Cases:
        """Up to `count` cases to run."""
        start, self._taken = self._taken, min(self._taken + count, len(self._queue))
        return self._queue[start : self._taken]

    def state(self) -> dict[str, NDArray[Any]]:
        """As arrays: what has changed since the last call. All of it only when something came in."""
        state = {"taken": np.array([self._taken])} if self._senders else {}
        if not self._is_stored:
            senders = [[sender.instance, sender.name, sender.parcels] for sender in self._senders]
            text = np.frombuffer(json.dumps(senders).encode(), np.uint8)
            state |= {"senders": text, **self._queue.state("queue.")}
            self._is_stored = True
        return state

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from all arrays that `state` gave, the latest of each name."""
        if "senders" in state:
            self._senders = [Sender(*values) for values in json.loads(state["senders"].tobytes())]
            self._queue, self._taken = Cases.from_state(state, "queue."), int(state["taken"][0])
