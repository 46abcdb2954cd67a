"""How the command line prints: stderr is talk, stdout is results."""

import json
import math
import sys
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress

#: Columns of results that do not go to a terminal.
_PIPE_WIDTH = 120


class _Talk(Console):
    """Falls silent when its pipe is closed: a campaign continues without its log."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class _Results(Console):
    """Lets the command line decide what a closed pipe means."""

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
    click.echo(json_text(value))


def json_text(value: Any) -> str:
    """`value` as JSON; numbers that JSON does not know become null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def progress_bar() -> "Progress":
    """A progress bar for work of several seconds, shown on terminals only."""
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


def format_rate(per_second: float) -> str:
    """`per_second` for a reader: 12,021/s, 0.6/s."""
    return f"{per_second:,.0f}/s" if per_second >= 10 else f"{per_second:.1f}/s"


def format_seconds(seconds: float) -> str:
    """`seconds` for a reader: 4.2 s, 3 min 20 s, 2 h 05 min."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
