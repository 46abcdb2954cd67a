"""Who may write a campaign: one process at a time."""

from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from policyfuzz.core.errors import CampaignError
from policyfuzz.store.schema import LOCK_NAME


def lock_for_writing(folder: Path) -> BaseFileLock:
    """Become the one writer of the campaign in `folder`; the lock ends with the process at the latest."""
    lock = FileLock(folder / LOCK_NAME)
    try:
        # long enough for a reader that only looks whether there is a writer
        lock.acquire(timeout=0.5)
    except Timeout as error:
        raise CampaignError(
            f"another process is writing the campaign in {folder}",
            hint="wait for it or stop it; status, show and export can read meanwhile",
        ) from error
    except OSError as error:
        raise CampaignError(f"{folder} cannot be written: {error.strerror}") from error
    return lock


def is_being_written(folder: Path) -> bool:
    """True if another process runs the campaign in `folder`."""
    lock = FileLock(folder / LOCK_NAME)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    except OSError:
        return False  # read-only for us: no writer of ours holds the lock
    lock.release()
    return False
