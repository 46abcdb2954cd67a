"""Offers the cases of one instance to others in the sync folder, and imports theirs.

Each instance writes into its own folder only, and others read plain files there (see `files`). They cannot
read the campaign file: SQLite in WAL mode shares memory between readers and writer, which fails across
machines. Trouble with another instance is reported, and never stops this one, nor holds it up for long.
"""

import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.events import Synced
from policyfuzz.campaign.queues import MAX_SOURCES, ImportQueue
from policyfuzz.campaign.sync.files import (
    FOLDER,
    PROGRESS,
    DamagedFile,
    InstanceInfo,
    SyncBatch,
    count_in,
    instance_folders,
    numbered_batches,
    read_json,
    read_sync_batch,
    write_json,
    write_sync_batch,
)
from policyfuzz.core.errors import blamed_on
from policyfuzz.core.target import Target
from policyfuzz.core.visible import visible_line
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import CONFIRMED, Progress

#: Seconds between two rounds.
_INTERVAL_SECONDS = 5.0
#: Imports that may wait, in batches. Newer ones go first, so those that wait longest are worth least.
_MAX_QUEUED_BATCHES = 16
#: Sync batches of one instance that are read in one round, the newest ones.
_MAX_FILES_PER_ROUND = 1000
#: Findings, and seeds, in one sync batch; the most recent ones if there are more. A fast search keeps more
#: than others can run, and writing it down would take time.
_MAX_CASES = 1024
#: Seconds that one round may take before it leaves the remaining files to the next one.
_MAX_ROUND_SECONDS = 2.0
#: SQL condition of a finding that waits for other case seeds, with its number and status; and beyond any.
_IS_ON_TRIAL = "id > ? AND status = ? AND is_novel AND NOT is_distinct AND COALESCE(reseeded, 0) = 0"
_NO_END = 2**62
#: Troubles that are reported, and characters of each.
_MAX_REPORTS, _MAX_REPORT_LENGTH = 100, 300


@dataclass(slots=True)
class Synchronizer:
    """Syncs the campaign in `store` with the instances beside it."""

    store: CampaignReader  #: only read here
    target: Target
    interval_seconds: float = _INTERVAL_SECONDS
    _writer: "SyncWriter" = field(init=False)
    _last_round: float = field(init=False, default=float("-inf"))  #: its end
    _round_ends: float = field(init=False, default=float("inf"))  #: when this round should be over
    _last_folder: str = field(init=False, default="")  #: last one of a round that had no time for all
    _troubles: list[str] = field(init=False, default_factory=list)  #: of this round
    _reported: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._writer = SyncWriter(self.store)

    @property
    def is_due(self) -> bool:
        """True if it is time for the next round."""
        return time.monotonic() - self._last_round >= self.interval_seconds

    def sync(self, queue: ImportQueue, progress: Progress, stop_reason: str | None = None) -> Synced:
        """Write new cases for others; unless there is a `stop_reason`, queue new cases of theirs."""
        self._round_ends, self._troubles = time.monotonic() + _MAX_ROUND_SECONDS, []
        written, instances, queued, dropped = 0, [], 0, 0
        try:
            written = self._writer.write(progress, stop_reason)
        except OSError as error:
            self._report(self.store.folder, f"cannot write to {FOLDER}, will try again: {error.strerror}")
        if stop_reason is None:
            instances = self._other_instances()
            most = _MAX_QUEUED_BATCHES * self.store.config.batch_size
            for place, (folder, info) in enumerate(instances):
                if place and self._is_late:
                    self._last_folder = instances[place - 1][0].name
                    break
                new, left = self._import(queue, folder, info, -(-most // len(instances)))
                queued, dropped = queued + new, dropped + left
            dropped += queue.drop_oldest(most)
        names = [visible_line(folder.name) for folder, _ in instances]
        self._last_round = time.monotonic()
        return Synced(names, written, queued, dropped, self._troubles)

    @property
    def _is_late(self) -> bool:
        return time.monotonic() >= self._round_ends

    def _other_instances(self) -> list[tuple[Path, InstanceInfo]]:
        """Instances whose cases can be imported, and their folders; if it is late, not all of them."""
        here, info_here = self.store.folder.absolute(), self._writer.info
        known = {info_here.instance: here.name}
        instances: list[tuple[Path, InstanceInfo]] = []
        folders, self._last_folder = self._folders(here.parent), ""
        for place, folder in enumerate(folders):
            if place and self._is_late:
                self._last_folder = folders[place - 1].name
                break
            if folder == here:
                continue
            try:
                info = InstanceInfo.read(folder)
            except DamagedFile as error:
                self._report(folder, f"skipped: {error}")
                continue
            except FileNotFoundError:
                continue  # it has just been removed
            except OSError as error:
                self._report(folder, f"skipped, will try again: {error.strerror}")
                continue
            mismatch = info_here.mismatch(info)
            if mismatch is None and info.instance in known:
                mismatch = f"it is a copy of {known[info.instance]}"
            if mismatch is not None:
                self._report(folder, f"nothing is exchanged with it: {mismatch}")
                continue
            if info.config == info_here.config:
                self._report(folder, "it searches exactly as this one does: give each its own --seed")
            known[info.instance] = folder.name
            instances.append((folder, info))
        return instances

    def _folders(self, sync_folder: Path) -> list[Path]:
        """Folders of all instances, this one included, those first that the last round has left out."""
        try:
            folders = list(instance_folders(sync_folder))
            return sorted(folders, key=lambda folder: folder.name <= self._last_folder)
        except OSError as error:  # a shared file system may be away for a while
            self._report(sync_folder, f"cannot be read, will try again: {error.strerror}")
            return []

    def _import(self, queue: ImportQueue, folder: Path, info: InstanceInfo, most: int) -> tuple[int, int]:
        """Queue up to `most` new cases of the instance in `folder`; return how many, and how many not."""
        if not queue.accepts(info.instance):
            self._report(folder, f"left out: cases of {MAX_SOURCES:,} instances have been imported already")
            return 0, 0
        source = queue.source_number(info.instance, folder.name)
        read = queue.source(source).batches_read
        try:
            last = count_in(read_json(folder, PROGRESS), "parcels")
            numbers = range(last, max(read, last - _MAX_FILES_PER_ROUND), -1)
            batch, left_out = self._read(folder, numbers, most, queue.imports_seeds)
        except DamagedFile as error:
            self._report(folder, f"skipped: {error}")
            return 0, 0
        except OSError as error:
            self._report(folder, f"skipped, will try again: {error.strerror}")
            return 0, 0
        if last > read:
            queue.add(source, last, batch.inputs, batch.seeds)
        return len(batch), left_out

    def _read(self, folder: Path, numbers: range, most: int, with_seeds: bool) -> tuple[SyncBatch, int]:
        """Up to `most` cases of these sync batches, and how many more the files that were read have.

        Findings come before seeds, and then newer cases before older ones.
        """
        dimensions, good = len(self.store.dimensions), 0
        findings = seeds = SyncBatch.empty(dimensions)
        for number in numbers:
            if len(findings) >= most or (number < numbers.start and self._is_late):
                break
            try:
                batch = read_sync_batch(folder, number, dimensions)
            except (DamagedFile, FileNotFoundError, PermissionError) as error:
                why = error if isinstance(error, DamagedFile) else "a file is missing or locked"
                self._report(folder, f"a part of it is left out: {why}")
                continue
            batch = batch if with_seeds else batch[batch.findings > 0]
            is_good = _valid_and_solvable(self.target, batch.inputs)
            if not is_good.all():  # another version of the target or of policyfuzz
                what = "not valid" if self.target.solvable is None else "not valid or solvable"
                self._report(folder, f"inputs that are {what} here are left out")
            good += int(np.count_nonzero(is_good))
            findings = SyncBatch.concatenate([findings, batch[is_good & (batch.findings > 0)]])[:most]
            if len(seeds) < most:
                seeds = SyncBatch.concatenate([seeds, batch[is_good & (batch.findings == 0)]])[:most]
        found = SyncBatch.concatenate([findings, seeds])[:most]
        return found, good - len(found)

    def _report(self, folder: Path, text: str) -> None:
        """Report a trouble, once in the life of this process, and no more than some."""
        line = visible_line(f"{folder.name}: {text}")
        line = line if len(line) <= _MAX_REPORT_LENGTH else f"{line[:_MAX_REPORT_LENGTH]} ..."
        if line in self._reported or len(self._reported) > _MAX_REPORTS:
            return
        if len(self._reported) == _MAX_REPORTS:
            line = f"{line} (no further trouble is reported)"
        self._reported.add(line)
        self._troubles.append(line)


@dataclass(slots=True)
class SyncWriter:
    """Writes new cases of one instance for others. Cases that it imported are not passed on."""

    store: CampaignReader  #: only read here
    info: InstanceInfo = field(init=False)
    _batches: int = field(init=False, default=0)  #: sync batches written
    _seeds: int = field(init=False, default=0)  #: seeds of the corpus that were looked through
    _findings: int = field(init=False, default=0)  #: number of the last finding written
    _has_started: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.info = InstanceInfo.of(self.store, platform.node())

    def write(self, progress: Progress, stop_reason: str | None) -> int:
        """Write all cases that are new since the last call, and the progress; return how many cases."""
        is_first = not self._has_started
        if is_first:
            self._resume()
        written = self._write_cases(progress, is_last=stop_reason is not None)
        self._write_progress(progress, stop_reason)
        if is_first:  # others look here once this file exists
            self.info.write(self.store.folder)
            self._has_started = True
        return written

    def _resume(self) -> None:
        """Continue after what earlier runs of the campaign have written."""
        try:
            page = read_json(self.store.folder, PROGRESS)
            counts = [count_in(page, name) for name in ("parcels", "entries", "findings")]
            self._batches, self._seeds, self._findings = counts
        except FileNotFoundError:
            pass  # there was none
        except DamagedFile:
            # new sync batches need new numbers, or others would skip them; all cases are written again
            self._batches = max(numbered_batches(self.store.folder), default=0)

    def _write_cases(self, progress: Progress, is_last: bool) -> int:
        # a finding that is tried with other case seeds may become distinct after later ones: those wait for
        # it, unless this campaign stops; if it goes on, it writes them once more
        on_trial = self.store.select("findings", _IS_ON_TRIAL, (self._findings, CONFIRMED), most=1)
        end = next((row["id"] for row in on_trial), _NO_END)
        findings = self.store.latest(
            "findings",
            _MAX_CASES,
            "id > ? AND id < ? AND is_distinct AND origin IS NULL",
            (self._findings, _NO_END if is_last else end),
        )
        # others draw samples themselves
        is_new_mutant = "id >= ? AND parent IS NOT NULL AND NOT is_crash AND origin IS NULL"
        seeds = self.store.latest("seeds", _MAX_CASES, is_new_mutant, (self._seeds,))
        if findings or seeds:
            write_sync_batch(self.store.folder, self._batches + 1, self._sync_batch(findings, seeds))
            self._batches += 1
        self._findings = max([row["id"] for row in findings if row["id"] < end], default=self._findings)
        self._seeds = progress.corpus
        return len(findings) + len(seeds)

    def _sync_batch(self, findings: list[dict[str, Any]], seeds: list[dict[str, Any]]) -> SyncBatch:
        rows = [*findings, *seeds]
        returns = [float("nan") if row["return"] is None else row["return"] for row in rows]
        return SyncBatch(
            np.array([[row[name] for name in self.store.input_columns] for row in rows], np.float64),
            np.array([row["case_seed"] for row in rows], np.uint64),
            np.array(returns, np.float64),
            np.array([row["id"] for row in findings] + [0] * len(seeds), np.int64),
        )

    def _write_progress(self, progress: Progress, stop_reason: str | None) -> None:
        confirmed = self.store.latest("findings", 1, "status = ?", (CONFIRMED,))
        page = {
            "parcels": self._batches,
            "entries": self._seeds,
            "findings": self._findings,
            "at": time.time(),
            "stop_reason": stop_reason,
            "last_finding_seconds": confirmed[0]["seconds"] if confirmed else None,
            "progress": asdict(progress),
        }
        write_json(self.store.folder, PROGRESS, page)


def _valid_and_solvable(target: Target, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where `inputs` (n, d) are valid and solvable.

    Constraints see only what the search might have proposed itself, for which they were written: no value
    that is out of range, and no angle of a thousand turns.
    """
    is_good = np.ones(len(inputs), np.bool_)
    with blamed_on("the target that judges inputs"):
        for dimension, values in zip(target.inputs.dimensions, inputs.T, strict=True):
            width = dimension.high - dimension.low
            is_near = (values >= dimension.low - width) & (values <= dimension.high + width)
            is_good &= is_near & dimension.contains(values)
        if is_good.any():
            is_good[is_good] = np.asarray(target.inputs.is_valid(inputs[is_good]), np.bool_)
        if target.solvable is not None and is_good.any():
            is_good[is_good] = np.asarray(target.solvable(inputs[is_good]), np.bool_)
    return is_good
