"""How the command line prints: stderr is talk, stdout is results."""

import json
import math
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from policyfuzz.cli.echo import echo
from policyfuzz.core.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress

#: Columns of results that do not go to a terminal.
_PIPE_WIDTH = 120
#: Of the size of a terminal in the environment.
_MOST_DIGITS = 6


class _PlainConsole(Console):
    """Prints texts as they are: no markup, no pictures for words, no escape sequences but its own."""

    def __init__(self, **options: Any) -> None:
        for name in ("COLUMNS", "LINES"):  # rich reads them as numbers, whatever they are
            if len(os.environ.get(name, "")) > _MOST_DIGITS:
                del os.environ[name]
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """`text` before it is measured, so that tables have room for what they show."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All that is printed passes here, parts of tables and panels included."""
        for segment in super().render(renderable, options):
            is_own = segment.control is not None
            yield segment if is_own else segment._replace(text=visible(segment.text))


class _Talk(_PlainConsole):
    """Falls silent when its pipe is closed: a campaign continues without its log."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class _Results(_PlainConsole):
    """Lets the command line decide what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def talk() -> Console:
    """The console for everything that is not a result."""
    return _Talk(stderr=True)


def results() -> Console:
    """The console for results."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    return _Results(width=width)


def print_json(value: Any) -> None:
    """Print `value` as JSON on stdout; numbers that JSON does not know become null."""
    echo(json_text(value))


def json_text(value: Any) -> str:
    """`value` as JSON; numbers that JSON does not know become null."""
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
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
