"""How much work a worker is given at once."""

import math

#: Pieces of all work in flight per worker. More would keep everybody a little busier at the end of batches,
#: but where many episodes are stepped at once, one costs more in small chunks: a sixth more
#: in chunks of 16 than of 64, say.
_PIECES_PER_WORKER = 2
#: Cases of a chunk below which one more of them would mean far fewer pieces.
_FEW = 8
#: Seconds of work that are worth a message at least.
_SHORTEST = 0.005
#: Share of the time-out that a chunk may take by what is known.
_SAFE_SHARE = 0.25
#: Times that a chunk may be larger than any before; the first has one case.
_GROWTH = 4
#: Seconds of work beyond which the next may as well be sent when it is asked for.
_LONG = 0.5
#: Weight of the latest chunk in the running average.
_WEIGHT = 0.5


class Pace:
    """Sizes of chunks from how long episodes have taken so far. Results do not depend on it, speed does."""

    def __init__(self, workers: int, timeout: float) -> None:
        self._workers, self._timeout = workers, timeout
        self._largest = 0  #: chunk that was answered
        self._seconds = 0.0  #: per case

    @property
    def depth(self) -> int:
        """Chunks that a worker holds: one, and where that is soon done another to go on with at once."""
        return 2 if self._seconds * self._largest < _LONG else 1

    def chunk_size(self, batch: int, batches: int = 1) -> int:
        """Cases of a batch of this size that a worker gets, with so many batches in flight."""
        fair = min(batch, batch * batches / (_PIECES_PER_WORKER * self._workers))
        size = math.ceil(fair) if fair >= _FEW else max(int(fair), 1)
        if self._seconds > 0:
            worth_it = math.ceil(_SHORTEST / self._seconds)
            in_time = int(_SAFE_SHARE * self._timeout / self._seconds)
            size = min(max(size, worth_it), max(in_time, 1))
        return min(size, max(_GROWTH * self._largest, 1))

    def learn(self, count: int, seconds: float) -> None:
        """Take note of a chunk of `count` cases that took `seconds`."""
        latest = seconds / count
        self._seconds = latest if self._largest == 0 else (1 - _WEIGHT) * self._seconds + _WEIGHT * latest
        self._largest = max(self._largest, count)
