"""Instances of a campaign in one folder show each other what they find.

Each writes into its own store only. What it shows are plain files (see `parcels`): SQLite in WAL mode shares
memory between its readers and its writer, so nobody on another machine could read the store of a running
campaign. Whatever is wrong with another instance is told, and never stops this one.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from policyfuzz.campaign.events import Exchanged
from policyfuzz.campaign.sync.imports import Imports
from policyfuzz.campaign.sync.outbox import About, Outbox, instance_folders
from policyfuzz.campaign.sync.parcels import FOLDER, PROGRESS, DamagedFile, Parcel, read_page, read_parcel
from policyfuzz.core.errors import blamed_on
from policyfuzz.core.target import Target
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress

#: Seconds between two looks at the other instances.
_INTERVAL = 5.0
#: One case in so many may be an import.
_ONE_IN = 8
#: Imports that may wait, in batches. Newer ones go first, so what waits longest is worth least.
_MOST_WAITING = 16
#: Parcels of one instance that are looked at in one round, the newest ones.
_MOST_PARCELS = 1000


def import_share(position: int, count: int) -> int:
    """How many of the `count` cases that follow the first `position` may be imports."""
    return (position + count) // _ONE_IN - position // _ONE_IN


@dataclass(slots=True)
class Exchange:
    """Shows what the campaign in `store` finds, and takes what other instances beside it show."""

    store: CampaignReader  #: only read here
    target: Target
    interval_seconds: float = _INTERVAL
    _outbox: Outbox = field(init=False)
    _looked_at: float = field(init=False, default=float("-inf"))
    _troubles: list[str] = field(init=False, default_factory=list)  #: not told yet
    _told: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._outbox = Outbox(self.store)

    @property
    def is_due(self) -> bool:
        """True where it is time to look again."""
        return time.monotonic() - self._looked_at >= self.interval_seconds

    def go_round(self, imports: Imports, progress: Progress, stop_reason: str | None = None) -> Exchanged:
        """Show what is new here; add to `imports` what is new elsewhere, unless there is a `stop_reason`."""
        self._looked_at, self._troubles = time.monotonic(), []
        shown, peers, received, left_out = 0, [], 0, 0
        try:
            shown = self._outbox.show(progress, stop_reason)
        except OSError as error:
            self._trouble(self.store.folder, f"cannot write to {FOLDER}, will try again: {error.strerror}")
        if stop_reason is None:
            peers = self._peers()
            most = _MOST_WAITING * self.store.config.batch_size
            for folder, about in peers:
                new, left = self._receive(imports, folder, about, -(-most // len(peers)))
                received, left_out = received + new, left_out + left
            left_out += imports.shorten(most)
        return Exchanged([folder.name for folder, _ in peers], shown, received, left_out, self._troubles)

    def _peers(self) -> list[tuple[Path, About]]:
        """The instances that fuzz the same, and their folders."""
        own = self.store.folder.absolute()
        known = {self._outbox.about.instance: own.name}
        peers = []
        for folder in self._folders(own.parent):
            if folder == own:
                continue
            try:
                about = About.read(folder)
            except DamagedFile as error:
                self._trouble(folder, f"skipped: {error}")
                continue
            except FileNotFoundError:
                continue  # it has just been removed
            except OSError as error:
                self._trouble(folder, f"skipped, will try again: {error.strerror}")
                continue
            why = self._outbox.about.strangeness(about)
            if why is None and about.instance in known:
                why = f"it is a copy of {known[about.instance]}"
            if why is not None:
                self._trouble(folder, f"nothing is exchanged with it: {why}")
                continue
            if about.config == self._outbox.about.config:
                self._trouble(folder, "it searches exactly as this one does: give each a --seed of its own")
            known[about.instance] = folder.name
            peers.append((folder, about))
        return peers

    def _folders(self, shared: Path) -> list[Path]:
        """Folders of all instances, this one among them."""
        try:
            return list(instance_folders(shared))
        except OSError as error:  # a shared file system may be away for a while
            self._trouble(shared, f"cannot be read, will try again: {error.strerror}")
            return []

    def _receive(self, imports: Imports, folder: Path, about: About, most: int) -> tuple[int, int]:
        """Add up to `most` new cases of the instance in `folder`; return how many, and how many not."""
        number = imports.number(about.instance, folder.name)
        seen = imports.sender(number).parcels
        try:
            last = _parcels(folder)
            numbers = range(last, max(seen, last - _MOST_PARCELS), -1)
            parcel, left_out = self._news(folder, numbers, most, imports.wants_entries)
        except DamagedFile as error:
            self._trouble(folder, f"skipped: {error}")
            return 0, 0
        except OSError as error:
            self._trouble(folder, f"skipped, will try again: {error.strerror}")
            return 0, 0
        if last > seen:
            imports.add(number, last, parcel.inputs, parcel.seeds)
        return len(parcel), left_out

    def _news(self, folder: Path, numbers: range, most: int, wants_entries: bool) -> tuple[Parcel, int]:
        """Up to `most` cases of the parcels with these `numbers`, and how many more those opened have."""
        dimensions, left_out = len(self.store.dimensions), 0
        news = [Parcel.empty(dimensions)]
        for number in numbers:
            if most <= 0:
                break
            try:
                parcel = read_parcel(folder, number, dimensions)
            except (DamagedFile, FileNotFoundError, PermissionError) as error:
                why = error if isinstance(error, DamagedFile) else "a parcel is missing or locked"
                self._trouble(folder, f"a part of it is left out: {why}")
                continue
            parcel = parcel if wants_entries else parcel[parcel.findings > 0]
            good = _judged(self.target, parcel.inputs)
            if not good.all():  # another version of the target or of policyfuzz
                self._trouble(folder, "inputs that are not valid or solvable here are left out")
            parcel = parcel[good]
            news.append(parcel[:most])
            left_out += max(len(parcel) - most, 0)
            most -= len(parcel)
        return Parcel.concatenate(news), left_out

    def _trouble(self, folder: Path, text: str) -> None:
        """Tell it, once in the life of this process."""
        line = f"{folder.name}: {text}"
        if line not in self._told:
            self._told.add(line)
            self._troubles.append(line)


def _parcels(folder: Path) -> int:
    """How many parcels the instance in `folder` has sent."""
    count = read_page(folder, PROGRESS).get("parcels")
    if not isinstance(count, int):
        raise DamagedFile(f"{PROGRESS} is damaged: it does not say how many parcels there are")
    return count


def _judged(target: Target, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where `inputs` (n, d) are valid and solvable."""
    with blamed_on("the target that judges inputs"):
        good = np.array(target.inputs.is_valid(inputs), np.bool_)
        if target.solvable is not None and good.any():
            good[good] = np.asarray(target.solvable(inputs[good]), np.bool_)
    return good
