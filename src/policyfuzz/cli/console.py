"""Where the command line talks and answers: stderr is talk, stdout is results."""

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress

#: Columns to use where there is no terminal whose width could be asked for.
_PIPE_WIDTH = 120


class _Talk(Console):
    """Falls silent when nobody listens any more: a campaign goes on without its log."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class _Results(Console):
    """Leaves it to the command line what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def talk() -> Console:
    """The console for everything that is not a result."""
    return _Talk(stderr=True, highlight=False, markup=False)


def results() -> Console:
    """The console for results."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return _Results(highlight=False, markup=False, width=width)


def print_json(value: Any) -> None:
    """Print `value` as JSON on stdout; numbers that JSON does not know become null."""
    click.echo(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def progress_bar() -> "Progress":
    """A progress bar for work of several seconds; it shows on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=talk(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
