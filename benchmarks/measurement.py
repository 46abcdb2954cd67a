"""What a benchmark reports: ratios within one run, because machines are shared and noisy."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from rich.table import Table
from rich.text import Text

from policyfuzz.cli.console import progress_bar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of a report."""

    what: str
    value: float
    unit: str
    baseline: str = ""  #: what the ratio is against
    ratio: float | None = None
    goal: str = ""  #: for a reader, e.g. ">= 50 %"
    is_met: bool | None = None  #: None where there is no goal


class Track(Protocol):
    """Passes items through and shows progress."""

    def __call__(self, items: Iterable[Item], description: str) -> Iterator[Item]:
        """Yield `items` one by one."""
        ...


@contextmanager
def progress() -> Iterator[Track]:
    """A progress bar on the terminal, for what is passed through it."""
    with progress_bar() as bar:

        def track(items: Iterable[Item], description: str) -> Iterator[Item]:
            yield from bar.track(list(items), description=description)

        yield track


def best_seconds(action: Callable[[], object], repeats: int) -> float:
    """The shortest of some runs: what the machine can do undisturbed."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best


def ratio_table(lines: Sequence[Measurement]) -> Table:
    """A report for a terminal."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("what", "measured", "", "ratio", "against", "goal"):
        table.add_column(name, justify="right" if name in ("measured", "ratio") else "left")
    for line in lines:
        met = {None: "", True: "[green]met[/]", False: "[bold red]missed[/]"}[line.is_met]
        ratio = ""
        if line.ratio is not None:
            ratio = f"{line.ratio:,.2f} x" if line.ratio < 100 else f"{line.ratio:,.0f} x"
        value = f"{line.value:,.3f}" if line.value < 10 else f"{line.value:,.1f}"
        goal = Text.from_markup(f"{line.goal} {met}".strip())
        table.add_row(line.what, value, line.unit, ratio, line.baseline, goal)
    return table
