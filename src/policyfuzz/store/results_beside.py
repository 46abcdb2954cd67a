"""Results that were worked out after a campaign: JSON files of one record each beside it, which lock nothing.

They hold all that a page or a picture needs, so that nothing has to be run to show them again.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from policyfuzz.core.errors import CampaignError, UsageError
from policyfuzz.core.files import read_regular
from policyfuzz.core.whole_file import whole_file
from policyfuzz.store.plain_records import from_plain, to_plain

Record = TypeVar("Record")

#: More than any result needs: they hold samples, not campaigns.
_MOST_BYTES = 50_000_000


def read_beside(folder: Path, name: str, kind: type[Record], most_bytes: int = _MOST_BYTES) -> Record | None:
    """The record of this `kind` in the file `name` of `folder`; None without a file."""
    path = folder / name
    return read_record(path, kind, path.stem, most_bytes) if path.is_file() else None


def read_record(
    path: Path,
    kind: type[Record],
    verb: str,
    most_bytes: int = _MOST_BYTES,
    check: Callable[[Record], None] = lambda _: None,
) -> Record:
    """The record of this `kind` in the file at `path`, which may be a stranger's; `verb` writes such files.

    `check` raises ValueError if the values do not fit together.
    """
    try:
        found = from_plain(kind, json.loads(read_regular(path, most_bytes, CampaignError)))
        check(found)
    except (ValueError, RecursionError) as error:
        raise CampaignError(
            f"cannot read {path}: {error!r:.100}", hint=f"remove it, and run policyfuzz {verb} again"
        ) from error
    return found


def path_beside(folder: Path, name: str) -> Path:
    """Where the file `name` of `folder` lies, or will; refuses a link, which may lead anywhere."""
    path = folder / name
    if path.is_symlink():
        raise UsageError(f"{path} is a link", "remove it; it should be a file")
    return path


def write_beside(folder: Path, name: str, record: object) -> None:
    """Write `record` into the file `name` of `folder`."""
    with whole_file(path_beside(folder, name)) as unfinished:
        unfinished.write_text(json.dumps(to_plain(record), indent=1, allow_nan=False), encoding="utf-8")
