"""A progress bar for terminals and notebooks: one listener of a campaign among others."""

import html
import importlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from policyfuzz.campaign.events import BatchDone, Event, Listener, Started, Stopped
from policyfuzz.core.settings import Budget
from policyfuzz.store.records import Progress

#: Seconds between two pictures in a notebook.
_INTERVAL_SECONDS = 0.2


def progress_text(progress: Progress) -> str:
    """The totals that matter most, in one line."""
    found = f"{progress.findings:,} findings, {progress.distinct_findings:,} distinct"
    errors = f", {progress.failures:,} errors" if progress.failures else ""
    return f"{found}{errors}, {progress.executions:,} episodes, {progress.executions_per_second:,.0f}/s"


@contextmanager
def progress_bar() -> Iterator[Listener]:
    """A listener that shows how far a campaign is: in a notebook, on a terminal, and nowhere else."""
    if _is_notebook():
        yield _NotebookBar()
    elif sys.stderr.isatty():
        with _terminal_bar() as bar:
            yield bar
    else:
        yield lambda _event: None


def _is_notebook() -> bool:
    """True in Jupyter and its relatives; IPython is not imported to find out."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def _terminal_bar() -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking at random episodes", total=None)
        budget = Budget()

        def show(event: Event) -> None:
            nonlocal budget
            if isinstance(event, Started):
                budget = event.budget
            elif isinstance(event, BatchDone):
                share = budget.share_spent(event.progress)
                total = None if share is None else 1.0
                bar.update(
                    task, total=total, completed=share or 0.0, description=progress_text(event.progress)
                )

        yield show


class _NotebookBar:
    """A bar in a cell of a notebook, which needs no widgets."""

    def __init__(self) -> None:
        self._budget, self._last = Budget(), 0.0
        self._handle: Any = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started):
            self._budget = event.budget
            self._show(event.progress, "looking at random episodes")
        elif isinstance(event, Stopped):
            self._show(event.progress, f"{progress_text(event.progress)}; stopped by {event.reason.value}")
        elif isinstance(event, BatchDone) and time.monotonic() - self._last > _INTERVAL_SECONDS:
            self._show(event.progress, progress_text(event.progress))

    def _show(self, progress: Progress, text: str) -> None:
        notebook: Any = importlib.import_module("IPython.display")
        self._last = time.monotonic()
        share = self._budget.share_spent(progress)
        value = "" if share is None else f' value="{share:.3f}"'
        bar = f'<progress max="1"{value} style="width:16em"></progress>'
        picture = notebook.HTML(f"{bar} {html.escape(text)}")
        if self._handle is None:
            self._handle = notebook.display(picture, display_id=True)
        else:
            self._handle.update(picture)
