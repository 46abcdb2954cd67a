"""What TensorBoard shows of a running campaign: curves over episodes, histograms, pictures of new modes."""

import math
import os
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.events import BatchDone, BatchEpisodes, Event, Started, Stopped
from policyfuzz.core import extras
from policyfuzz.core.target import Target
from policyfuzz.report.stills import LAST_SECONDS, Stills
from policyfuzz.store.records import Finding, Progress

#: Folder of the log in that of its campaign.
FOLDER = "tensorboard"
#: Seconds between two points of the curves: TensorBoard draws no more, and most batches take less.
_INTERVAL_SECONDS = 1.0
#: Bars of a histogram.
_BARS = 30
#: Larger numbers are shown as this one: their squares would overflow.
_LARGEST = 1e100
#: What a file of events begins with.
_VERSION = "brain.Event:2"


@dataclass(frozen=True, slots=True)
class _Library:
    """The parts of tensorboardX that make records."""

    summary: Any
    record_writer: Any
    event_type: Any
    summary_type: Any


def load_library() -> _Library:
    """The parts of tensorboardX that are used here; the error for a missing one says how to install it.

    It would import torch if that is installed, which takes seconds, for functions that are not used here.
    """
    has_torch = "torch" in sys.modules
    if not has_torch:
        sys.modules["torch"] = None  # type: ignore[assignment]  # as if it were not installed
    try:
        extras.load("tensorboardX", "tensorboard")
        summary = extras.load("tensorboardX.summary", "tensorboard")
        return _Library(
            summary,
            extras.load("tensorboardX.record_writer", "tensorboard"),
            extras.load("tensorboardX.proto.event_pb2", "tensorboard").Event,
            summary.Summary,
        )
    finally:
        if not has_torch:
            del sys.modules["torch"]


@dataclass(slots=True)
class EventFile:
    """A file of events, as TensorBoard reads them. Every record is one write, and none is buffered.

    The writer of tensorboardX has a thread and a bounded queue: once its disk is full the thread dies, and a
    campaign would wait for room in the queue for ever.
    """

    library: _Library
    folder: Path
    _file: BinaryIO | None = field(init=False, default=None)

    def write(self, step: int, *summaries: Any) -> None:
        """Add what `summaries` show of this `step`; raises OSError."""
        if self._file is None:
            self._file = self._new()
            self._record(self.library.event_type(wall_time=time.time(), file_version=_VERSION))
        merged = self.library.summary_type(value=[one for some in summaries for one in some.value])
        self._record(self.library.event_type(wall_time=time.time(), step=step, summary=merged))

    def close(self) -> None:
        """Close the file; raises OSError."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _new(self) -> BinaryIO:
        if self.folder.is_symlink():
            raise OSError(f"{self.folder} is a link; remove it, it should be a folder")
        self.folder.mkdir(exist_ok=True)
        for number in range(1000):  # several parts of a campaign may begin in one second
            name = f"events.out.tfevents.{int(time.time()):010}.{socket.gethostname()}.{os.getpid()}.{number}"
            try:
                return (self.folder / name).open("xb", buffering=0)
            except FileExistsError:
                continue
        raise FileExistsError(f"{self.folder} is full of files of this second")

    def _record(self, event: Any) -> None:
        """Write one record: length, data, and a checksum of each."""
        data, checksum = event.SerializeToString(), self.library.record_writer.masked_crc32c
        length = struct.pack("<Q", len(data))
        parts = (length, struct.pack("<I", checksum(length)), data, struct.pack("<I", checksum(data)))
        assert self._file is not None
        record = b"".join(parts)
        if self._file.write(record) != len(record):
            raise OSError("the disk is full")


@dataclass(slots=True)
class _Since:
    """What has happened since the last point of the curves."""

    episodes: list[BatchEpisodes] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)  #: at that point

    def values(self, random: bool, of: str) -> NDArray[np.float64]:
        """(n,) finite returns or margins, of random draws or of all others."""
        parts = [getattr(one, of)[one.is_random == random] for one in self.episodes]
        values = np.concatenate([np.empty(0), *parts])
        return np.asarray(np.clip(values[np.isfinite(values)], -_LARGEST, _LARGEST))

    @property
    def emitters(self) -> dict[str, float]:
        """Share of each emitter among the cases that were proposed."""
        counts: dict[str, int] = {}
        for one in self.episodes:
            for name, count in one.emitters.items():
                counts[name] = counts.get(name, 0) + count
        total = sum(counts.values())
        return {name: count / total for name, count in counts.items()} if total else {}


class TensorBoardLog:
    """Writes a campaign's curves to DIR/tensorboard. Nothing that fails here ends the campaign."""

    def __init__(
        self,
        target: Target,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`say` is told, once, what is wrong; `clock` gives seconds."""
        self._library = load_library()
        self._say, self._clock = say, clock
        self._stills = Stills(target, self._add_picture, say)
        self._file: EventFile | None = None
        self._since, self._written_at = _Since(), -math.inf
        self._modes = 0

    def take(self, event: Event, new: list[Finding]) -> None:
        """Log `event`; `new` are findings of new modes, which are pictured."""
        if isinstance(event, Started):
            self._file = EventFile(self._library, Path(event.folder).absolute() / FOLDER)
            self._since.progress = event.progress
        elif isinstance(event, BatchDone):
            self._modes += len(new)
            self._since.episodes.append(event.episodes)
            if self._clock() - self._written_at >= _INTERVAL_SECONDS:
                self._write_point(event.progress)
            for finding in new:
                self._stills.add(finding)
            self._stills.look()
        elif isinstance(event, Stopped) and self._since.episodes:
            self._write_point(event.progress, is_last=True)

    def set_known_modes(self, count: int) -> None:
        """So many new modes were found by earlier parts of the campaign."""
        self._modes = count

    @property
    def is_busy(self) -> bool:
        """True if a picture is being made."""
        return self._stills.is_busy

    def close(self, seconds: float = LAST_SECONDS) -> None:
        """Wait for pictures for at most so many `seconds`, and close the file."""
        self._stills.close(seconds)
        self._attempt(lambda file: file.close())
        self._file = None

    def _write_point(self, progress: Progress, is_last: bool = False) -> None:
        since, self._since = self._since, _Since(progress=progress)
        self._written_at = self._clock()
        self._attempt(lambda file: file.write(progress.executions, *self._shown(progress, since, is_last)))

    def _shown(self, progress: Progress, since: _Since, is_last: bool) -> list[Any]:
        """Curves and histograms of one point. The last one comes too soon to tell how fast things went."""
        summary = self._library.summary
        curves = _totals(progress) | {"findings/modes_so_far": float(self._modes)}
        if not is_last:
            curves |= _rates(progress, since.progress)
            curves |= {f"emitters/{name}": share for name, share in since.emitters.items()}
        shown = [summary.scalar(name, one) for name, one in curves.items() if math.isfinite(one)]
        for of in ("returns", "margins"):
            for name, is_random in (("random", True), ("search", False)):
                values = since.values(is_random, of)
                if len(values):
                    shown.append(summary.histogram(f"{of}/{name}", values, _edges(values)))
        return shown

    def _add_picture(self, finding: Finding, png: bytes) -> None:
        kind = self._library.summary_type
        # the number and not the kind of crash, whose name may be anything
        tag = f"new_modes/finding_{finding.id:06}"
        width, height = struct.unpack(">II", png[16:24])  # of the header of every PNG file
        image = kind.Image(height=height, width=width, colorspace=3, encoded_image_string=png)
        shown = kind(value=[kind.Value(tag=tag, image=image)])
        self._attempt(lambda file: file.write(finding.execution, shown))

    def _attempt(self, write: Callable[[EventFile], None]) -> None:
        """Let `write` use the file; after a failure there is no file, and nothing is tried again."""
        if self._file is None:
            return
        try:
            write(self._file)
        except Exception as error:  # no trouble of a log is worth a campaign
            folder, failed, self._file = self._file.folder, self._file, None
            with suppress(OSError):
                failed.close()
            reason = (isinstance(error, OSError) and error.strerror) or error
            self._say(f"the log for TensorBoard in {folder} ends here: {reason}; the campaign goes on")


def _totals(now: Progress) -> dict[str, float]:
    """Name to value of the curves of totals; NaN where there is nothing to show yet."""
    return {
        "findings/confirmed": now.findings,
        "findings/distinct": now.distinct_findings,
        "findings/lineages": now.lineages,
        "crash_rate/random_draws": now.sample_crash_rate,
        "crash_rate/search": now.mutant_crash_rate,
        "health/valid_share_of_draws": now.valid_rate,
        "health/failed_share_of_episodes": now.failures / max(now.executions, 1),
        "health/flaky_findings": now.flaky,
        "health/corpus": now.corpus,
        "health/fresh_share": now.fresh_share,
    }


def _rates(now: Progress, before: Progress) -> dict[str, float]:
    """The same of curves that tell of the time since another point."""
    seconds = now.seconds - before.seconds
    spent = {name: used - before.time_split[name] for name, used in now.time_split.items()}
    total = sum(spent.values())
    return {
        "speed/episodes_per_second": (now.executions - before.executions) / seconds if seconds > 0 else 0.0,
        "speed/workers_ready": now.workers_ready,
        **{f"time/{name}": used / total if total > 0 else math.nan for name, used in spent.items()},
    }


def _edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of the bars of a histogram of `values`, wide enough for their rounding."""
    low, high = float(values.min()), float(values.max())
    room = max(abs(low), abs(high), 1.0) * 1e-6
    return np.linspace(low - room, high + room, _BARS + 1)
