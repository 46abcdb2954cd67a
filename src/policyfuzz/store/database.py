"""The campaign file on disk: where it is, how it is opened, and whether it can be read."""

import os
import sqlite3
from pathlib import Path

from policyfuzz.core.errors import CampaignError
from policyfuzz.store import schema


def campaign_file(folder: Path) -> Path:
    """The campaign file in `folder`, which must be there."""
    path = folder / schema.FILE_NAME
    if not path.is_file():
        what = "is not a folder" if folder.exists() else "does not exist"
        what = "has no campaign in it" if folder.is_dir() else what
        raise CampaignError(f"{folder} {what}", hint=f"a campaign is a folder with a {schema.FILE_NAME}")
    return path


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open the file at `path` to read (ro), to write (rw), or to make it first (rwc)."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    has_log = path.with_name(f"{path.name}-wal").exists()
    if mode == "ro" and not has_log and not os.access(path.parent, os.W_OK):
        uri += "&immutable=1"  # readers lock by a file beside the database, which cannot be made here
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=30)
    except sqlite3.Error as error:
        raise CampaignError(f"cannot open {path}: {error}", hint="is the folder writable?") from error
    if mode != "ro":
        # survives a killed process; only a power failure may cost the last batches
        connection.execute("PRAGMA synchronous = NORMAL")
        # pages (of 4 kB); the state is rewritten with every batch, so copying it back rarely saves time
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
    return connection


def check_format(connection: sqlite3.Connection, folder: Path) -> None:
    """Refuse a file that is not a campaign, or of a format that cannot be read."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != schema.APPLICATION_ID:
        raise CampaignError(
            f"{folder / schema.FILE_NAME} was not written by policyfuzz", hint="is this the right folder?"
        )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != schema.FORMAT_VERSION:
        raise CampaignError(
            f"{folder} has campaign format {version}, this policyfuzz reads {schema.FORMAT_VERSION}",
            hint="use the version of policyfuzz that wrote it",
        )
