"""Who listens to a campaign: the live screen, a plain line now and then, or nobody."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from policyfuzz.campaign.events import BatchDone, Event, Examined, Exchanged, Listener, Started, Waiting
from policyfuzz.cli.console import talk
from policyfuzz.cli.options import format_rate, format_seconds
from policyfuzz.cli.summary import failures_text, workers_text
from policyfuzz.core.target import Level

#: Seconds between two plain lines.
_PLAIN_INTERVAL = 5.0


@contextmanager
def make_listener(ui: str) -> Iterator[Listener]:
    """The listener for `ui`: auto, screen, plain or none."""
    if ui == "auto":
        ui = "screen" if sys.stderr.isatty() else "plain"
    if ui == "none":
        yield lambda _event: None
    elif ui == "plain":
        yield PlainLines(talk())
    else:
        from policyfuzz.cli.screen import Screen

        with Screen(talk()) as screen:
            yield screen


class PlainLines:
    """One line every few seconds, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._last = 0.0

    def __call__(self, event: Event) -> None:
        """Print what is worth a line."""
        if isinstance(event, Started):
            self._print(f"campaign {event.folder}: {event.config.target}, strategy {event.config.strategy}")
            if event.advice:
                self._print(f"note: {event.advice}")
            self._last = time.monotonic()
        elif isinstance(event, Waiting):
            self._print(str(event))
        elif isinstance(event, Examined):
            for diagnosis in event.diagnoses:
                if diagnosis.level is not Level.GOOD:
                    self._print(f"{diagnosis.level}: {diagnosis.message}; {diagnosis.hint}")
        elif isinstance(event, Exchanged):
            for trouble in event.troubles:
                self._print(f"instance {trouble}")
        elif isinstance(event, BatchDone) and time.monotonic() - self._last >= _PLAIN_INTERVAL:
            self._last = time.monotonic()
            progress = event.progress
            self._print(
                f"{format_seconds(progress.seconds)}: {progress.executions:,} episodes"
                f" ({format_rate(progress.executions_per_second)}), {progress.findings:,} findings"
                f" ({progress.distinct_findings:,} distinct), corpus {progress.corpus:,}"
                + (
                    f"; workers: {workers_text(progress)}"
                    if progress.workers > 1 or progress.restarts
                    else ""
                )
                + (f"; {failures_text(progress)}" if progress.failures else "")
            )

    def _print(self, line: str) -> None:
        self._console.print(line, soft_wrap=True)
