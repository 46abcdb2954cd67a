"""Results that were worked out after a campaign: JSON files of one record each beside it, which lock nothing.

They hold all that a page or a picture needs, so that nothing has to be run to show them again.
"""

import json
from pathlib import Path
from typing import TypeVar

from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.files import read_regular
from policyfuzz.core.whole_file import whole_file
from policyfuzz.store.plain_records import from_plain, to_plain

Record = TypeVar("Record")

#: More than any result needs: they hold samples, not campaigns.
_MOST_BYTES = 50_000_000


def read_beside(folder: Path, name: str, kind: type[Record]) -> Record | None:
    """The record of this `kind` in the file `name` of `folder`; None without a file."""
    path = folder / name
    if not path.is_file():
        return None
    try:
        return from_plain(kind, json.loads(read_regular(path, _MOST_BYTES, CampaignError)))
    except (ValueError, RecursionError) as error:
        raise CampaignError(
            f"cannot read {path}: {error!r:.100}",
            hint=f"remove it, and run policyfuzz {path.stem} again",
        ) from error


def path_beside(folder: Path, name: str) -> Path:
    """Where the file `name` of `folder` lies, or will; refuses a link, which may lead anywhere."""
    path = folder / name
    if path.is_symlink():
        raise UsageError(f"{path} is a link", "remove it; it should be a file")
    return path


def write_beside(folder: Path, name: str, record: object) -> None:
    """Write `record` into the file `name` of `folder`."""
    with whole_file(path_beside(folder, name)) as unfinished:
        unfinished.write_text(json.dumps(to_plain(record), indent=1), encoding="utf-8")
