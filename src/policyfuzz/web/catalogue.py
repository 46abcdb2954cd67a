"""Which campaigns a page shows, and the one way from a name in an address to a folder."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.core.errors import CampaignError
from policyfuzz.report.instances import holds_instances
from policyfuzz.store.database import FILE_NAME
from policyfuzz.store.reader import CampaignReader

#: Campaigns of one folder that are listed at most.
MOST_CAMPAIGNS = 1000
#: Characters of a name in an address.
_LONGEST_SLUG = 60
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")
#: Files of a campaign that pages read.
_READ = (FILE_NAME, "triage.json", "coverage.json", "estimate.json", "estimate.npz")


class NoSuchCampaign(CampaignError):
    """An address names a campaign that is not there, or is not there any more."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One campaign that may be looked at."""

    slug: str  #: its name in addresses
    name: str  #: its name for people
    folder: Path
    group: Path | None = None  #: the folder that it shares with others, if it was found there


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The campaigns in some folders. Each folder holds a campaign, or folders with one each.

    Addresses are only ever compared with the names of what is there: no text of a request becomes a path.
    """

    folders: tuple[Path, ...]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> "Catalogue":
        """The campaigns in `folders`, each named once."""
        return cls(tuple(dict.fromkeys(folder.absolute() for folder in folders)))

    def entries(self) -> list[Entry]:
        """All campaigns as of now; a folder whose campaign has gone stays listed."""
        found = [place for folder in self.folders for place in _places(folder)]
        count = Counter(_plain(folder.name) for folder, _ in found)
        return [
            Entry(_slug(folder, count[_plain(folder.name)] > 1), folder.name or str(folder), folder, group)
            for folder, group in found
        ]

    def find(self, slug: str) -> Entry:
        """The campaign that `slug` names in an address."""
        for entry in self.entries():
            if entry.slug == slug:
                return entry
        raise NoSuchCampaign(
            f"there is no campaign {slug[:80]!r} here", hint="it was removed or renamed, or never there"
        )


def check_links(folder: Path) -> None:
    """Refuse a campaign whose files are links: a folder from a stranger could show what lies elsewhere."""
    for name in _READ:
        if (folder / name).is_symlink():
            raise CampaignError(f"{name} in {folder} is a link", hint="pages read only files in the campaign")


@contextmanager
def opened(folder: Path) -> Iterator[CampaignReader]:
    """The campaign in `folder` as it is now, even while another process goes on writing it."""
    check_links(folder)
    reader = CampaignReader(folder)
    try:
        with reader.snapshot():
            yield reader
    finally:
        reader.close()


@dataclass(frozen=True, slots=True)
class Stamp:
    """Changes whenever the files of a campaign do."""

    parts: tuple[tuple[int, int, int, int] | None, ...]

    @classmethod
    def of(cls, folder: Path, names: Sequence[str] = (*_READ, f"{FILE_NAME}-wal")) -> "Stamp":
        """The files of these `names` in `folder` as they are now."""
        return cls(tuple(_part(folder / name) for name in names))


def _part(path: Path) -> tuple[int, int, int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _places(folder: Path) -> Iterator[tuple[Path, Path | None]]:
    """The folders of campaigns in `folder`, each with the folder that it shares with others."""
    try:
        if not holds_instances(folder):
            yield folder, None
            return
        names = sorted(path for path in folder.iterdir() if path.name[0] != ".")
        found = [path for path in names if not path.is_symlink() and (path / FILE_NAME).is_file()]
    except OSError:
        yield folder, None  # its page says what is wrong
        return
    yield from ((path, folder) for path in found[:MOST_CAMPAIGNS])


def _plain(name: str) -> str:
    return _NOT_PLAIN.sub("-", name)[:_LONGEST_SLUG].strip("-.") or "campaign"


def _slug(folder: Path, is_shared: bool) -> str:
    """A name for addresses that stays the same while the folder does."""
    plain = _plain(folder.name)
    if plain == folder.name and not is_shared:
        return plain
    return f"{plain}-{hashlib.sha256(str(folder).encode(errors='replace')).hexdigest()[:8]}"
