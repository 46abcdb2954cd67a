"""Where the time goes: wall time per activity, without that of nested activities."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class TimeSplit:
    """Adds up the seconds spent in named activities."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = 0.0

    @contextmanager
    def activity(self, name: str) -> Iterator[None]:
        """Count the time inside under `name`, and not under the enclosing activity."""
        self._switch()
        self._open.append(name)
        try:
            yield
        finally:
            self._switch()
            self._open.pop()

    def _switch(self) -> None:
        now = time.perf_counter()
        if self._open:
            current = self._open[-1]
            self.seconds[current] = self.seconds.get(current, 0.0) + now - self._since
        self._since = now
