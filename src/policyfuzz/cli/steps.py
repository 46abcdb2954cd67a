"""Says what a command is doing before it has results: a spinner on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from policyfuzz.cli.console import talk
from policyfuzz.report.quantities import format_seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

#: Seconds between two plain lines about one step, at least; and the most intervals between two equal ones.
_INTERVAL_SECONDS, _MOST_INTERVALS = 5.0, 64

Item = TypeVar("Item")


@contextmanager
def showing_steps(is_shown: bool = True) -> Iterator["Steps"]:
    """Steps that are shown on stderr until the block ends, or that are not shown."""
    console = talk()
    console.quiet = not is_shown
    if sys.stderr.isatty():
        with console.status("starting") as status:
            yield SpinnerSteps(status)
        return
    steps = PlainSteps(console)
    try:
        yield steps
    finally:
        steps.end()


class Steps:
    """What is being done."""

    def say(self, text: str) -> None:
        """From now on it is `text`."""
        raise NotImplementedError

    def count(self, text: str) -> None:
        """How far the present step is; not worth a line each time."""
        raise NotImplementedError

    def track(self, items: Sequence[Item], text: str) -> Iterable[Item]:
        """All `items`, counted while the caller works on them."""
        self.say(text)
        for number, item in enumerate(items):
            self.count(f"{text}, {number:,} of {len(items):,}")
            yield item


class SpinnerSteps(Steps):
    """One line of a terminal that changes."""

    def __init__(self, status: "Status") -> None:
        self._status = status

    def say(self, text: str) -> None:
        self._status.update(text)

    def count(self, text: str) -> None:
        self._status.update(text)


class PlainSteps(Steps):
    """A line for each step, and more while it lasts: every few seconds, less often if nothing moves."""

    def __init__(self, console: "Console") -> None:
        self._console, self._text, self._started_at = console, "", time.monotonic()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def say(self, text: str) -> None:
        self._text = text
        self._print(text)
        if self._thread is None and not self._console.quiet:
            self._thread = threading.Thread(target=self._repeat, daemon=True)
            self._thread.start()

    def count(self, text: str) -> None:
        self._text = text

    def end(self) -> None:
        """Print no more lines."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()

    def _repeat(self) -> None:
        last, passed, pause = self._text, 0, 1
        while not self._is_over.wait(_INTERVAL_SECONDS):
            passed += 1
            if self._text == last and passed < pause:
                continue
            pause = min(2 * pause, _MOST_INTERVALS) if self._text == last else 1
            last, passed = self._text, 0
            self._print(f"{last} ({format_seconds(time.monotonic() - self._started_at)})")

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True)
