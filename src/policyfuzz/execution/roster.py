"""Who has what work, for how long. Nothing here looks through all workers: there may be thousands."""

from collections import deque
from dataclasses import dataclass, field

from policyfuzz.execution.chunks import Chunk

#: Chunks that a worker holds at most.
MOST_CHUNKS = 2


@dataclass(slots=True)
class Worker:
    """What a worker is doing."""

    is_ready: bool = False
    killed_for: Chunk | None = None  #: that took too long
    chunks: deque[Chunk] = field(default_factory=deque)  #: that it has been sent, the oldest first


class Roster:
    """Workers by number. Times are those of any clock that does not go back."""

    def __init__(self) -> None:
        self._workers: dict[int, Worker] = {}
        #: Those that can be given more, by the chunks that they hold; who has waited longest comes first.
        self._holding: list[dict[int, None]] = [{} for _ in range(MOST_CHUNKS)]
        self._fresh: dict[int, None] = {}  #: those that are ready and have never been given anything
        #: Since when those with work have been at their oldest chunk; the longest come first.
        self._since: dict[int, float] = {}

    def __len__(self) -> int:
        """How many there are, ready or not."""
        return len(self._workers)

    @property
    def ready(self) -> int:
        """How many can run episodes."""
        return sum(worker.is_ready for worker in self._workers.values())

    @property
    def starting(self) -> int:
        """How many are not ready yet."""
        return len(self._workers) - self.ready

    @property
    def next_fresh(self) -> int | None:
        """A worker that has never been given anything, if there is one."""
        return next(iter(self._fresh), None)

    @property
    def longest_since(self) -> tuple[int, float] | None:
        """Who has been at its oldest chunk for longest, and since when; None where nobody has work."""
        return next(iter(self._since.items()), None)

    def add(self, number: int) -> None:
        """There is a new worker; it is not ready."""
        self._workers[number] = Worker()

    def set_ready(self, number: int) -> None:
        """A worker can be given work."""
        self._workers[number].is_ready = True
        self._holding[0][number] = self._fresh[number] = None

    def next_holding(self, chunks: int) -> int | None:
        """A worker that holds so many chunks and can be given another, if there is one."""
        return next(iter(self._holding[chunks]), None)

    def give(self, number: int, chunk: Chunk, now: float) -> None:
        """A worker gets a chunk."""
        self._fresh.pop(number, None)
        chunks = self._workers[number].chunks
        del self._holding[len(chunks)][number]
        chunks.append(chunk)
        self._since.setdefault(number, now)
        if len(chunks) < MOST_CHUNKS:
            self._holding[len(chunks)][number] = None

    def take(self, number: int, now: float) -> Chunk:
        """A worker has done its oldest chunk."""
        worker = self._workers[number]
        held = len(worker.chunks)
        chunk = worker.chunks.popleft()
        if worker.killed_for is None:
            if held < MOST_CHUNKS:
                del self._holding[held][number]
            self._holding[held - 1][number] = None
            del self._since[number]
            if worker.chunks:
                self._since[number] = now
        return chunk

    def restart_clocks(self, now: float) -> None:
        """What workers have done until now does not count: nobody was listening."""
        self._since = dict.fromkeys(self._since, now)

    def since(self, number: int) -> float | None:
        """Since when a worker has been at its oldest chunk; None where it has none, or was killed for it."""
        return self._since.get(number)

    def kill(self, number: int) -> None:
        """A worker gets nothing more, since its oldest chunk takes too long."""
        worker = self._workers[number]
        worker.killed_for = worker.chunks[0]
        self._forget(number)

    def remove(self, number: int) -> Worker:
        """A worker is gone; what it was doing."""
        self._forget(number)
        return self._workers.pop(number)

    def _forget(self, number: int) -> None:
        self._since.pop(number, None)
        self._fresh.pop(number, None)
        for holding in self._holding:
            holding.pop(number, None)
