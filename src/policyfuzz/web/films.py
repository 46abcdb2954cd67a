"""Pictures and films that a browser may have: those that replay left in the campaign, no other file."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.core.errors import CampaignError
from policyfuzz.store.database import picture_file

#: Ending to type of what is shown, the best first.
TYPES = {".mp4": "video/mp4", ".gif": "image/gif", ".png": "image/png"}
#: Bytes of a film or picture at most, and bytes that are read at once.
_MOST_BYTES, _CHUNK = 256_000_000, 256 * 1024
_RANGE = re.compile(r"bytes=(\d{1,15})-(\d{0,15})")


def stored_media(folder: Path, number: int) -> dict[str, bool]:
    """Which pictures and films of finding `number` lie in the campaign, by their ending without the dot."""
    return {ending[1:]: _is_there(folder, f"{number}{ending}") for ending in TYPES}


def _is_there(folder: Path, name: str) -> bool:
    try:
        return stat.S_ISREG(picture_file(folder, name).lstat().st_mode)
    except (CampaignError, OSError):  # a link, or nothing
        return False


@dataclass(frozen=True, slots=True)
class Part:
    """Some bytes of an open file, which is closed when they have been read."""

    descriptor: int
    start: int
    end: int  #: the first byte that is not part of it
    size: int  #: of the whole file

    def chunks(self) -> Iterator[bytes]:
        """The bytes, piece by piece."""
        try:
            place = self.start
            while place < self.end:
                data = os.pread(self.descriptor, min(_CHUNK, self.end - place), place)
                if not data:
                    return
                place += len(data)
                yield data
        finally:
            os.close(self.descriptor)


def open_media(path: Path, wanted: str) -> Part:
    """The bytes of the film or picture at `path` that the header `wanted` asks for; all without one."""
    try:
        # no links, and no waiting for pipes
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        raise CampaignError("there is no such film or picture") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
        os.close(descriptor)
        raise CampaignError(
            "there is no such film or picture", hint="expected a regular file of moderate size"
        )
    start, end = 0, status.st_size
    if found := _RANGE.fullmatch(wanted):
        start = min(int(found[1]), end)
        end = min(int(found[2]) + 1, end) if found[2] else end
    return Part(descriptor, start, max(start, end), status.st_size)
