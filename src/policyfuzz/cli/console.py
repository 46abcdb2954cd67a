"""Where the command line talks and answers: stderr is talk, stdout is results."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

#: Columns to use where there is no terminal whose width could be asked for.
_PIPE_WIDTH = 120


def talk() -> Console:
    """The console for everything that is not a result."""
    return Console(stderr=True, highlight=False)


def results() -> Console:
    """The console for results."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(highlight=False, width=width)


def progress_bar() -> Progress:
    """A progress bar for work of several seconds; it shows on a terminal only."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=talk(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
