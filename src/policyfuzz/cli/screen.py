"""What a terminal shows of a running campaign: a live screen, a plain line now and then, or nothing."""

import math
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from policyfuzz.campaign.events import BatchDone, Event, Examined, Listener, Started, Synced, Waiting
from policyfuzz.cli.console import talk
from policyfuzz.cli.summary import failures_text, workers_text
from policyfuzz.core.settings import Budget, CampaignConfig
from policyfuzz.core.target import Diagnosis, Level
from policyfuzz.report.quantities import format_rate, format_seconds
from policyfuzz.report.statistics import FailureProbability
from policyfuzz.store.records import Finding, Progress

#: Seconds between two plain lines.
_PLAIN_INTERVAL_SECONDS = 5.0
#: Seconds between two redraws of the screen.
_REDRAW_SECONDS = 0.25
#: Seconds over which the current speed is taken.
_SPEED_WINDOW_SECONDS = 5.0
_STYLES = {Level.GOOD: "green", Level.WARNING: "yellow", Level.WEAK: "yellow", Level.UNHEALTHY: "bold red"}
_ACTIVITY_STYLES = {
    "simulate": "green",
    "validate": "cyan",
    "density": "magenta",
    "search": "blue",
    "store": "yellow",
}


def chosen_ui(ui: str) -> str:
    """What `ui` means here: screen, plain or none."""
    return ui if ui != "auto" else "screen" if sys.stderr.isatty() else "plain"


@contextmanager
def make_listener(ui: str) -> Iterator[Listener]:
    """The listener for `ui`: screen, plain or none."""
    if ui == "none":
        yield lambda _event: None
    elif ui == "plain":
        yield PlainLines(talk())
    else:
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
            if note := _too_many_workers(event):
                self._print(f"note: {note}")
            self._last = time.monotonic()
        elif isinstance(event, Waiting):
            self._print(str(event))
        elif isinstance(event, Examined):
            for diagnosis in event.diagnoses:
                if diagnosis.level is not Level.GOOD:
                    self._print(f"{diagnosis.level}: {diagnosis.message}; {diagnosis.hint}")
        elif isinstance(event, Synced):
            for trouble in event.troubles:
                self._print(f"instance {trouble}")
        elif isinstance(event, BatchDone) and time.monotonic() - self._last >= _PLAIN_INTERVAL_SECONDS:
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


class Screen:
    """Shows a running campaign; a listener to be used as a context."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._config = CampaignConfig("")
        self._budget = Budget()
        self._folder = ""
        self._other_instances: int | None = None  #: None without --sync
        self._diagnoses: list[Diagnosis] = []
        self._latest: Finding | None = None
        self._drawn_at = 0.0
        self._speeds: deque[tuple[float, int]] = deque()

    def __enter__(self) -> "Screen":
        with _undisturbed():
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _undisturbed():
            self._live.__exit__(kind, error, trace)

    def __call__(self, event: Event) -> None:
        """Take note of `event`, and draw now and then."""
        with _undisturbed():
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Started):
            self._config, self._budget, self._folder = event.config, event.budget, event.folder
            if note := _too_many_workers(event):  # stays above the screen
                self._live.console.print(f"note: {note}", soft_wrap=True)
            waiting = Text("running the first batch (the very first run also compiles the inner loops)")
            self._live.update(Panel(waiting, title=self._title()), refresh=True)
        elif isinstance(event, Waiting):
            self._live.update(Panel(Text(str(event)), title=self._title()), refresh=True)
        elif isinstance(event, Examined):
            self._diagnoses = event.diagnoses
        elif isinstance(event, Synced):
            self._other_instances = len(event.instances)
            for trouble in event.troubles:  # stays above the screen
                self._live.console.print(f"instance {trouble}", soft_wrap=True)
        elif isinstance(event, BatchDone):
            self._latest = event.findings[-1] if event.findings else self._latest
            now = time.monotonic()
            self._speeds.append((now, event.progress.executions))
            while now - self._speeds[0][0] > _SPEED_WINDOW_SECONDS:
                self._speeds.popleft()
            if now - self._drawn_at >= _REDRAW_SECONDS:
                self._drawn_at = now
                self._live.update(self.render(event.progress), refresh=True)

    def render(self, progress: Progress) -> RenderableType:
        """The whole screen."""
        columns = Table.grid(expand=True, padding=(0, 1))
        columns.add_column(ratio=1)
        columns.add_column(ratio=1)
        columns.add_row(
            Panel(self._results(progress), title="findings", title_align="left"),
            Panel(self._run(progress), title="run", title_align="left"),
        )
        columns.add_row(
            Panel(self._search(progress), title="search", title_align="left"),
            Panel(_time_split(progress), title="where the time goes", title_align="left"),
        )
        return Panel(
            Group(columns, self._health(), Text("Ctrl-C saves and stops", style="dim")),
            title=self._title(),
            border_style="bold",
        )

    def _title(self) -> Text:
        config = self._config
        text = f" {config.target} · {config.strategy} · seed {config.seed}"
        return Text.assemble(("policyfuzz", "bold"), text)  # names may look like markup

    def _results(self, progress: Progress) -> RenderableType:
        grid = _grid()
        grid.add_row(
            "confirmed", Text(f"{progress.findings:,}", style="bold red" if progress.findings else "")
        )
        grid.add_row("distinct", Text(f"{progress.distinct_findings:,}", style="bold"))
        if self._latest is not None:
            ago = format_seconds(max(0.0, progress.seconds - self._latest.seconds))
            grid.add_row("latest", f"{self._latest.kind} at step {self._latest.crash_step}, {ago} ago")
        else:
            grid.add_row("latest", "none yet")
        if progress.flaky:
            grid.add_row("flaky", Text(f"{progress.flaky:,} (not counted)", style="yellow"))
        if progress.failures:
            grid.add_row("errors", Text(failures_text(progress), style="yellow"))
        grid.add_row("crash rate", _crash_rate(progress))
        grid.add_row("random", FailureProbability.of_campaigns([progress]).brief)
        return grid

    def _run(self, progress: Progress) -> RenderableType:
        grid = _grid()
        grid.add_row("time", format_seconds(progress.seconds))
        grid.add_row("episodes", f"{progress.executions:,}")
        grid.add_row("speed", f"{format_rate(self._speed(progress))} episodes")
        grid.add_row("workers", workers_text(progress, is_live=True))
        if self._other_instances is not None:
            grid.add_row(
                "instances", f"{self._other_instances} others, {progress.imported_findings:,} findings taken"
            )
        share = self._budget.share_spent(progress)
        grid.add_row("budget", "until Ctrl-C" if share is None else ProgressBar(1.0, share, width=24))
        grid.add_row("folder", Text(self._folder, overflow="ellipsis", no_wrap=True))
        return grid

    def _search(self, progress: Progress) -> RenderableType:
        grid = _grid()
        grid.add_row("corpus", f"{progress.corpus:,} seeds")
        grid.add_row("samples", f"{progress.samples:,}")
        grid.add_row("mutants", f"{progress.mutants:,}")
        fresh = (
            "not used"
            if math.isnan(progress.fresh_share)
            else f"{progress.fresh_share:.1%} of the last batch"
        )
        grid.add_row("fresh", fresh)
        grid.add_row("valid", f"{progress.valid_rate:.1%} of drawn inputs")
        return grid

    def _speed(self, progress: Progress) -> float:
        (first_time, first), (last_time, last) = self._speeds[0], self._speeds[-1]
        if last_time > first_time:
            return (last - first) / (last_time - first_time)
        return progress.executions_per_second

    def _health(self) -> RenderableType:
        bad = [diagnosis for diagnosis in self._diagnoses if diagnosis.level is not Level.GOOD]
        if not self._diagnoses:
            return Text("health: resumed, checked at the start")
        if not bad:
            return Text(f"health: {len(self._diagnoses)} checks good", style=_STYLES[Level.GOOD])
        return Text("\n".join(f"{one.level}: {one.message}" for one in bad), style=_STYLES[bad[0].level])


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C and the like wait until the block ends: half a picture cannot be wiped off the screen."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    # a mask would not do: a signal goes to any thread, and Python handles it in this one
    before = {
        number: signal.signal(number, lambda number, _frame: arrived.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
    if arrived:
        signal.raise_signal(arrived[0])


def _too_many_workers(event: Started) -> str:
    """A note if there is too little work for the workers, otherwise nothing."""
    in_flight = event.config.batch_size * event.config.window
    if event.workers == 1 or in_flight >= 2 * event.workers:
        return ""
    return (
        f"{in_flight} episodes are in flight, too few to keep {event.workers} workers busy;"
        " a larger --batch or --window helps, and is another campaign"
    )


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", min_width=10)
    grid.add_column()
    return grid


def _crash_rate(progress: Progress) -> str:
    if not progress.mutants:
        return "nothing changed yet"
    rate = progress.mutant_crash_rate
    if progress.sample_crashes:
        return f"{rate:.3%}, {rate / progress.sample_crash_rate:.1f} x random"
    return f"{rate:.3%}"


def _time_split(progress: Progress) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    total = max(sum(progress.time_split.values()), 1e-9)
    for name, seconds in progress.time_split.items():
        style = _ACTIVITY_STYLES[name]
        bar = ProgressBar(total, seconds, width=20, complete_style=style, finished_style=style)
        grid.add_row(Text(name, style="dim"), bar, f"{seconds / total:.0%}")
    return grid
