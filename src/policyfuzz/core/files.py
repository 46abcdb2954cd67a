"""Files that users name and strangers make: any path may be nonsense, and only regular files are opened."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from policyfuzz.core.errors import PolicyFuzzError, UsageError


def absolute_path(text: str | Path, failure: type[PolicyFuzzError] = UsageError) -> Path:
    """The absolute path that `text` means in the current folder; ~ is the home of a user."""
    try:
        return Path(text).expanduser().absolute()
    except RuntimeError as error:  # no such user, or one without a home
        raise failure(f"cannot find the home folder in {str(text)!r}", "write the whole path") from error
    except OSError as error:
        raise failure(
            f"cannot find {str(text)!r}: the current folder is gone", "change the folder"
        ) from error


def is_file(path: Path) -> bool:
    """True for a regular file; False for names that no file can have, and in folders that cannot be read."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return False


def names_in(folder: Path) -> list[str]:
    """Sorted names of what lies in `folder`; none if it cannot be read."""
    try:
        return sorted(item.name for item in folder.iterdir())
    except (OSError, ValueError):  # ValueError: a NUL in its name
        return []


def read_regular(path: Path, most_bytes: int, failure: type[PolicyFuzzError] = UsageError) -> bytes:
    """The content of the regular file at `path`, of `most_bytes` at most."""
    try:
        with open_regular(path, most_bytes, failure) as file:
            content = file.read(most_bytes + 1)  # it may have grown since it was opened
    except OSError as error:
        raise failure(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > most_bytes:
        raise _too_large(path, len(content), most_bytes, failure)
    return content


def open_regular(path: Path, most_bytes: int, failure: type[PolicyFuzzError] = UsageError) -> BinaryIO:
    """The regular file at `path`, of `most_bytes` at most, open for reading; links are followed.

    Pipes and devices are not waited for: whoever wrote them may never answer, or never end.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = error.strerror if isinstance(error, OSError) else error
        raise failure(f"{str(path)!r} cannot be opened: {reason}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise failure(f"{path} is {_kind(status.st_mode)}, expected a regular file")
        if status.st_size > most_bytes:
            raise _too_large(path, status.st_size, most_bytes, failure)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _too_large(path: Path, size: int, most: int, failure: type[PolicyFuzzError]) -> PolicyFuzzError:
    return failure(
        f"{path} has {size:,} bytes or more, expected {most:,} at most", "is it the right file, or damaged?"
    )


def _kind(mode: int) -> str:
    kinds = {stat.S_ISDIR: "a folder", stat.S_ISFIFO: "a pipe", stat.S_ISSOCK: "a socket"}
    return next((name for check, name in kinds.items() if check(mode)), "a device")
