"""Files through which instances in a sync folder read each other, on any machine, while others write.

Every instance keeps a folder `exchange` beside its campaign file, and only it writes there: `about.json`
(which instance it is), `progress.json` (how it is doing, and how many sync batches there are) and the sync
batches, numbered from 1. A file appears under its name when it is complete and never changes afterwards,
except for `progress.json`, which is replaced as a whole.
"""

import io
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.settings import CampaignConfig
from policyfuzz.store.reader import CampaignReader

FOLDER, ABOUT, PROGRESS = "exchange", "about.json", "progress.json"
#: Raised when older files can no longer be read.
FORMAT = 1


class DamagedFile(Exception):
    """A file of another instance exists and makes no sense. Reading it again will not help."""


@dataclass(frozen=True, slots=True)
class SyncBatch:
    """n cases that an instance offers to others, the most recent first."""

    inputs: NDArray[np.float64]  #: (n, d)
    seeds: NDArray[np.uint64]  #: (n,) case seeds
    returns: NDArray[np.float64]  #: (n,)
    findings: NDArray[np.int64]  #: (n,) number of the finding that it is, 0 for a seed of the corpus

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, rows: slice | NDArray[Any]) -> "SyncBatch":
        """The cases at `rows`: positions, a mask or a slice."""
        return SyncBatch(*(getattr(self, name)[rows] for name in _DTYPES))

    @staticmethod
    def empty(dimensions: int) -> "SyncBatch":
        """No cases, of inputs with this many dimensions."""
        _, *others = _DTYPES.values()
        return SyncBatch(np.empty((0, dimensions)), *(np.empty(0, dtype) for dtype in others))

    @staticmethod
    def concatenate(parts: Sequence["SyncBatch"]) -> "SyncBatch":
        """All cases of `parts`, one after another."""
        return SyncBatch(*(np.concatenate([getattr(part, name) for part in parts]) for name in _DTYPES))


_DTYPES = {"inputs": np.float64, "seeds": np.uint64, "returns": np.float64, "findings": np.int64}


def sync_batch_file(folder: Path, number: int) -> Path:
    """The file of sync batch `number` of the campaign in `folder`."""
    return folder / FOLDER / f"{number:06}.npz"


def write_sync_batch(folder: Path, number: int, batch: SyncBatch) -> None:
    """Write `batch` as sync batch `number` of the campaign in `folder`."""
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **{name: getattr(batch, name) for name in _DTYPES})
    _write(sync_batch_file(folder, number), data.getvalue())


def read_sync_batch(folder: Path, number: int, dimensions: int) -> SyncBatch:
    """Sync batch `number` of the campaign in `folder`, whose inputs have this many `dimensions`."""
    path = sync_batch_file(folder, number)
    data = path.read_bytes()
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in _DTYPES}
    except Exception as error:  # a damaged archive may raise nearly anything
        raise DamagedFile(f"{path.name} is damaged: {error}") from error
    count = len(columns["seeds"]) if columns["seeds"].ndim else -1
    for name, dtype in _DTYPES.items():
        expected = (count, dimensions) if name == "inputs" else (count,)
        if columns[name].dtype != dtype or columns[name].shape != expected:
            raise DamagedFile(f"{path.name} is damaged: {name} are {columns[name].shape}, not {expected}")
    if not np.isfinite(columns["inputs"]).all():
        raise DamagedFile(f"{path.name} is damaged: not all inputs are numbers")
    return SyncBatch(**columns)


@dataclass(frozen=True, slots=True)
class InstanceInfo:
    """Which instance it is, and what it fuzzes: the content of about.json."""

    instance: str  #: never changes, whatever its folder is called
    host: str  #: machine that it was last started on
    target: str
    policy_sha256: str
    code_sha256: str
    dimensions: list[list[Any]]  #: name, kind and range of each
    config: str  #: the whole configuration as JSON

    @classmethod
    def of(cls, campaign: CampaignReader, host: str) -> "InstanceInfo":
        """The info of the instance whose `campaign` this is, running on `host`."""
        config = campaign.config
        return cls(
            instance=campaign.about["instance"],
            host=host,
            target=config.target,
            policy_sha256=config.policy_sha256,
            code_sha256=config.code_sha256,
            dimensions=[[row["name"], row["kind"], row["low"], row["high"]] for row in campaign.dimensions],
            config=config.to_json(),
        )

    @classmethod
    def read(cls, folder: Path) -> "InstanceInfo":
        """The info that the instance with the campaign in `folder` has written."""
        page = read_json(folder, ABOUT)
        values: dict[str, Any] = {field.name: page.get(field.name) for field in fields(cls)}
        wrong = [name for name, value in values.items() if not isinstance(value, str)]
        if wrong != ["dimensions"] or not isinstance(values["dimensions"], list):
            raise DamagedFile(f"{ABOUT} is damaged: a value is missing or of another type")
        return cls(**values)

    def write(self, folder: Path) -> None:
        """Write it for the campaign in `folder`; from then on, others read the sync batches there."""
        write_json(folder, ABOUT, asdict(self))

    def settings(self) -> CampaignConfig:
        """The whole configuration."""
        try:
            return CampaignConfig.from_json(self.config)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFile(f"{ABOUT} is damaged: its configuration cannot be read") from error

    def mismatch(self, other: "InstanceInfo") -> str | None:
        """Why cases of the `other` instance cannot be imported, for a reader; None if they can."""
        if self.target != other.target:
            return f"it fuzzes {other.target}, not {self.target}"
        if self.policy_sha256 != other.policy_sha256:
            return "it tests another policy"
        if self.code_sha256 != other.code_sha256:
            return "the files that its target is written in differ from those here"
        if self.dimensions != other.dimensions:
            return "its inputs have other dimensions"
        return None


def instance_folders(folder: Path) -> Iterator[Path]:
    """Folders of instances in the sync `folder`, by name, except those that have not started to sync."""
    yield from sorted(path.parent.parent for path in folder.glob(f"*/{FOLDER}/{ABOUT}"))


def write_json(folder: Path, name: str, values: dict[str, Any]) -> None:
    """Write about.json or progress.json of the campaign in `folder`."""
    text = json.dumps({"format": FORMAT, **values}, indent=1)
    _write(folder / FOLDER / name, text.encode(), is_lasting=name == ABOUT)


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """The values in about.json or progress.json of the campaign in `folder`."""
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

    If it `is_lasting`, that holds for a power failure too; a file that is soon replaced can do without.
    """
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f"{path.name}.new")
    with unfinished.open("wb") as file:
        file.write(data)
        if is_lasting:
            file.flush()
            os.fsync(file.fileno())
    unfinished.replace(path)
