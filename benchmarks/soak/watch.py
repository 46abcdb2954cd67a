"""Watches a process from outside: memory, open files, threads, and all that descends from it."""

import os
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
#: Share of a life that is not compared: caches fill, code is compiled.
_WARM_UP = 0.2
#: Seconds of a life that is too short to tell anything.
_SHORT = 240.0


@dataclass(frozen=True, slots=True)
class Sample:
    """A process at some time."""

    life: int  #: which of the coordinators it was
    seconds: float
    memory: float  #: MB that are its own or shared, in use
    shared_memory: float  #: MB of these that are shared with workers
    open_files: float
    threads: float
    descendants: float  #: processes
    shared_files: float  #: in /dev/shm, of all processes of the machine


def sample(process: int, life: int, started: float) -> Sample | None:
    """How `process` is now; None where it is gone."""
    with suppress(OSError, ValueError, KeyError):  # a zombie has no memory
        lines = (_PROC / str(process) / "status").read_text().splitlines()
        status = dict(line.split(":", 1) for line in lines if ":" in line)
        return Sample(
            life,
            time.monotonic() - started,
            int(status["VmRSS"].split()[0]) / 1024,
            int(status["RssShmem"].split()[0]) / 1024,
            len(os.listdir(_PROC / str(process) / "fd")),  # noqa: PTH208 (a thousand times faster)
            int(status["Threads"]),
            len(descendants(process)),
            sum(1 for _ in Path("/dev/shm").iterdir()),
        )
    return None


def descendants(process: int) -> set[int]:
    """Children of `process`, and theirs."""
    parents = dict(_parents())
    found: set[int] = set()
    while new := {child for child, parent in parents.items() if parent in found | {process}} - found:
        found |= new
    return found


def marked(mark: str) -> dict[int, str]:
    """All processes with `mark` in their environment, and their command lines."""
    found = {}
    for entry in _PROC.iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ").strip()
    return found


def _parents() -> Iterator[tuple[int, int]]:
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, IndexError):
                # the name of a process may hold anything, brackets included
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                yield int(entry.name), int(fields[1])


@dataclass(frozen=True, slots=True)
class Trend:
    """A quantity early and late in the life of a coordinator, as medians over a quarter of it each."""

    what: str
    life: int
    early: float
    late: float
    allowed: float  #: growth

    @property
    def is_flat(self) -> bool:
        """True where it has grown no more than is allowed."""
        return self.late - self.early <= self.allowed


def trends(samples: Sequence[Sample]) -> list[Trend]:
    """What became of memory, files, threads and processes over each long life, after a warm-up."""
    found = []
    for life in sorted({one.life for one in samples}):
        own = [one for one in samples if one.life == life]
        if own[-1].seconds - own[0].seconds < _SHORT:
            continue
        own = own[int(len(own) * _WARM_UP) :]
        quarter = max(1, len(own) // 4)
        early, late = own[:quarter], own[-quarter:]
        for what in ("memory", "shared_memory", "open_files", "threads", "descendants"):
            first, last = (statistics.median(getattr(one, what) for one in some) for some in (early, late))
            # the corpus and the tables of the store grow with what is found: some megabytes, not more
            allowed = 4.0 + 0.05 * first if what == "memory" else 1.0
            found.append(Trend(what.replace("_", " "), life, first, last, allowed))
    return found
