"""What a benchmark reports: ratios within one run, because machines are shared and noisy."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

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
    """Passes items through and shows how far it has come."""

    def __call__(self, items: Iterable[Item], description: str) -> Iterator[Item]:
        """Yield `items` one by one."""
        ...


def best_seconds(action: Callable[[], object], repeats: int) -> float:
    """The shortest of some runs: what the machine can do when nobody disturbs it."""
    best = float("inf")
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - started)
    return best
