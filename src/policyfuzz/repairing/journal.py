"""The folder in which a repair keeps what is done, so that it can be killed and goes on from there."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import CampaignError
from policyfuzz.core.files import read_regular
from policyfuzz.core.whole_file import make_folder_of, whole_file
from policyfuzz.core.zip_files import DamagedZip, read_arrays

#: Of the arrays of one stage, and of a report.
_MOST_BYTES, _MOST_TEXT_BYTES = 1 << 32, 1 << 24
_HINT = "remove the folder to begin again, or write to another file with -o"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Journal:
    """Results of the stages of a repair, one file each."""

    folder: Path

    @classmethod
    def open(cls, folder: Path, identity: Mapping[str, Any]) -> "Journal":
        """The journal in `folder` of the repair that `identity` describes; refuses that of another one."""
        journal = cls(folder)
        described = {"repair": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()}
        known = journal.report("identity", lambda: described)
        if known != described:
            raise CampaignError(
                f"{folder} holds the unfinished repair of another policy, or with other settings", _HINT
            )
        return journal

    def arrays(self, name: str, make: Callable[[], Arrays]) -> Arrays:
        """What `make` gives, or what it gave when the stage called `name` was done."""
        path = self.folder / f"{name}.npz"
        if path.exists():
            try:
                return read_arrays(read_regular(path, _MOST_BYTES, CampaignError), _MOST_BYTES)
            except (DamagedZip, ValueError) as error:
                raise CampaignError(f"{path} cannot be read: {error}", _HINT) from error
        values = make()
        make_folder_of(path)
        with whole_file(path) as unfinished:
            np.savez(unfinished, **values)  # type: ignore[arg-type] # no array is called allow_pickle
        return values

    def report(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """As `arrays`, for what JSON holds."""
        path = self.folder / f"{name}.json"
        if path.exists():
            return read_report(path)
        values = make()
        make_folder_of(path)
        with whole_file(path) as unfinished:
            unfinished.write_text(json.dumps(values, allow_nan=False, indent=1))
        return values

    def file(self, name: str, make: Callable[[Path], None]) -> Path:
        """The file or folder that `make` writes, or wrote when the stage was done."""
        path = self.folder / name
        if not path.exists():
            make_folder_of(path)
            make(path)
        return path


def read_report(path: Path, hint: str = _HINT) -> dict[str, Any]:
    """The JSON object in the file at `path`; `hint` says what to do if there is none."""
    try:
        values = json.loads(read_regular(path, _MOST_TEXT_BYTES, CampaignError))
    except (ValueError, RecursionError) as error:
        raise CampaignError(f"{path} cannot be read: {error}", hint) from error
    if not isinstance(values, dict):
        raise CampaignError(f"{path} holds no report of a repair", hint)
    return values
