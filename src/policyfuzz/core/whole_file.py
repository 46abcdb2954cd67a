"""Files that appear whole or not at all."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from policyfuzz.core.errors import CampaignError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A file to write, which takes the place of `path` once it is complete; a failure leaves `path` alone.

    It lies in the same folder and has the same ending. A device or a pipe is written directly, and of a link,
    the file that it leads to is replaced.
    """
    with writing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        # /dev/stdout may be a plain file that somebody else has open; /dev/shm is a folder like others
        place = path.absolute().parts[1:3]
        is_device = place[:1] == ("dev",) and place != ("dev", "shm")
        if path.exists() and (is_device or not path.is_file()):
            yield path
            return
        real = Path(os.path.realpath(path))
        unfinished = real.with_name(f".unfinished-{uuid4().hex[:8]}{real.suffix}")
        try:
            yield unfinished
            if real.exists():
                shutil.copymode(real, unfinished)
            unfinished.replace(real)
        finally:
            unfinished.unlink(missing_ok=True)


def make_folder_of(path: Path) -> None:
    """Make the folder that `path` lies in, unless it is there."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure to write into an error that names `path`."""
    try:
        yield
    except OSError as error:
        reason = str(error.strerror or error).strip().splitlines()[0]
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free some space, or name a file on another disk" if is_full else ""
        raise CampaignError(f"cannot write {path}: {reason}", hint) from error
