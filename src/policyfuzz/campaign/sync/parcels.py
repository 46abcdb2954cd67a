"""What instances show to each other: plain files that any machine can read while others are written.

Every instance keeps a folder `exchange` in its own store, in which nobody else writes. It holds `about.json`
(who it is), `progress.json` (how it is doing, and how many parcels there are) and the parcels, numbered from
1. A file appears under its name when it is complete and never changes afterwards, but for `progress.json`,
which is replaced as a whole.
"""

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER, ABOUT, PROGRESS = "exchange", "about.json", "progress.json"
#: Raised when older files can no longer be read.
FORMAT = 1


class DamagedFile(Exception):
    """A file of another instance is there and makes no sense. It will not get better."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """n cases that an instance found worth keeping, the most recent first."""

    inputs: NDArray[np.float64]  #: (n, d)
    seeds: NDArray[np.uint64]  #: (n,) case seeds
    returns: NDArray[np.float64]  #: (n,)
    findings: NDArray[np.int64]  #: (n,) number of the finding that it is, 0 where it is a corpus entry

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice | NDArray[Any]) -> "Parcel":
        """The cases at `rows`: positions, a mask or a slice."""
        return Parcel(*(getattr(self, name)[rows] for name in _KINDS))

    @staticmethod
    def empty(dimensions: int) -> "Parcel":
        """No cases, of inputs with this many dimensions."""
        return Parcel(np.empty((0, dimensions)), *(np.empty(0, kind) for kind in list(_KINDS.values())[1:]))

    @staticmethod
    def concatenate(parts: Sequence["Parcel"]) -> "Parcel":
        """All cases of `parts`, one after another."""
        return Parcel(*(np.concatenate([getattr(part, name) for part in parts]) for name in _KINDS))


_KINDS = {
    "inputs": np.float64,
    "seeds": np.uint64,
    "returns": np.float64,
    "findings": np.int64,
}


def parcel_file(folder: Path, number: int) -> Path:
    """The file of parcel `number` of the campaign in `folder`."""
    return folder / FOLDER / f"{number:06}.npz"


def write_parcel(folder: Path, number: int, parcel: Parcel) -> None:
    """Write `parcel`, as the one of this `number` of the campaign in `folder`."""
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **{name: getattr(parcel, name) for name in _KINDS})
    _write(parcel_file(folder, number), data.getvalue())


def read_parcel(folder: Path, number: int, dimensions: int) -> Parcel:
    """The parcel of this `number` of the campaign in `folder`, of inputs with so many `dimensions`."""
    path = parcel_file(folder, number)
    data = path.read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in _KINDS}
    except Exception as error:  # there is hardly anything that a damaged archive does not raise
        raise DamagedFile(f"{path.name} is damaged: {error}") from error
    count = len(columns["seeds"]) if columns["seeds"].ndim else -1
    for name, kind in _KINDS.items():
        expected = (count, dimensions) if name == "inputs" else (count,)
        if columns[name].dtype != kind or columns[name].shape != expected:
            raise DamagedFile(f"{path.name} is damaged: {name} are {columns[name].shape}, not {expected}")
    if not np.isfinite(columns["inputs"]).all():
        raise DamagedFile(f"{path.name} is damaged: not all inputs are numbers")
    return Parcel(**columns)


def write_page(folder: Path, name: str, values: dict[str, Any]) -> None:
    """Write about.json or progress.json of the campaign in `folder`."""
    text = json.dumps({"format": FORMAT, **values}, indent=1)
    _write(folder / FOLDER / name, text.encode(), is_lasting=name == ABOUT)


def read_page(folder: Path, name: str) -> dict[str, Any]:
    """What about.json or progress.json of the campaign in `folder` say."""
    text = (folder / FOLDER / name).read_bytes()
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{name} is damaged: {error}") from error
    if not isinstance(values, dict) or "format" not in values:
        raise DamagedFile(f"{name} is damaged: it does not say its format")
    if values["format"] != FORMAT:
        raise DamagedFile(f"{name} has format {values['format']}, this policyfuzz reads {FORMAT}")
    return values


def _write(path: Path, data: bytes, is_lasting: bool = True) -> None:
    """Make the file at `path` appear with all of `data` in it, or not at all.

    If it `is_lasting`, that holds for a power failure too; what is soon written again can do without.
    """
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f"{path.name}.new")
    with unfinished.open("wb") as file:
        file.write(data)
        if is_lasting:
            file.flush()
            os.fsync(file.fileno())
    unfinished.replace(path)
