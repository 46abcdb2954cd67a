"""Files through which instances in a sync folder read each other, on any machine, while others write.

Every instance keeps a folder `exchange` beside its campaign file, and only it writes there: `about.json`
(which instance it is), `progress.json` (how it is doing, and how many sync batches there are) and the sync
batches, numbered from 1. A file appears under its name when it is complete and never changes afterwards,
except for `progress.json`, which is replaced as a whole.

Others may write anything into the folder, by accident or on purpose. So only regular files are read, up to a
size that is checked before, and everything in them is checked before it is used.
"""

import errno
import io
import json
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyFuzzError
from policyfuzz.core.files import read_regular
from policyfuzz.core.inputs import is_storable
from policyfuzz.core.settings import CampaignConfig
from policyfuzz.store.database import MOST_DIMENSIONS
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.records import Progress

FOLDER, ABOUT, PROGRESS = "exchange", "about.json", "progress.json"
#: Raised when older files can no longer be read.
FORMAT = 1
#: Folders in a sync folder that are looked at, in the order in which the system lists them.
MOST_FOLDERS = 4096
#: Bytes of about.json and progress.json: ours have some ten thousand.
_MOST_PAGE_BYTES = 1 << 20
#: Cases in one sync batch, and bytes of its file beside them.
_MOST_CASES, _MOST_OVERHEAD_BYTES = 4096, 1 << 16
#: Characters of the identity of an instance, and of the name of a machine.
_LONGEST = {"instance": 64, "host": 255}
#: Counts and seconds in progress.json. More samples would take their statistics minutes.
_MOST, _MOST_SAMPLES = 2**53, 10**11
#: Totals that need not be finite.
_SHARES = ("fresh_share", "fresh_threshold")


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
    bytes_per_case = 8 * (dimensions + len(_DTYPES) - 1)
    data = _read(path, _MOST_CASES * bytes_per_case + _MOST_OVERHEAD_BYTES)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            columns = {name: _array(archive, name, dtype) for name, dtype in _DTYPES.items()}
    except Exception as error:  # a damaged archive may raise nearly anything
        raise DamagedFile(f"{path.name} is damaged: {error}") from error
    count = len(columns["seeds"]) if columns["seeds"].ndim else -1
    for name, column in columns.items():
        expected = (count, dimensions) if name == "inputs" else (count,)
        if column.shape != expected:
            raise DamagedFile(f"{path.name} is damaged: {name} are {column.shape}, not {expected}")
    if not is_storable(columns["inputs"], columns["seeds"]).all():
        raise DamagedFile(f"{path.name} is damaged: an input is no number, or a seed is 2^63 or more")
    return SyncBatch(**columns)


def _array(archive: zipfile.ZipFile, name: str, dtype: type) -> NDArray[Any]:
    """The array `name` of this type; its header is checked before there is an array."""
    member = archive.getinfo(f"{name}.npy")
    if member.compress_type != zipfile.ZIP_STORED:  # we do not compress, and a few bytes may become gigabytes
        raise ValueError(f"{name} are compressed")
    file = io.BytesIO(archive.read(member))
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"{name} are of another version")
    shape, is_fortran, given = np.lib.format.read_array_header_1_0(file)
    if given != dtype or is_fortran:
        raise ValueError(f"{name} are {given}, not {np.dtype(dtype)}")
    return np.frombuffer(file.read(), dtype).reshape(shape)


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
        if wrong != ["dimensions"] or not _are_dimensions(values["dimensions"]):
            raise DamagedFile(f"{ABOUT} is damaged: a value is missing or of another type")
        for name, longest in _LONGEST.items():
            if not 0 < len(values[name]) <= longest:
                raise DamagedFile(f"{ABOUT} is damaged: {name} has {len(values[name]):,} characters")
        return cls(**values)

    def write(self, folder: Path) -> None:
        """Write it for the campaign in `folder`; from then on, others read the sync batches there."""
        write_json(folder, ABOUT, asdict(self))

    def settings(self) -> CampaignConfig:
        """The whole configuration."""
        try:
            config = CampaignConfig.from_json(self.config)
        except (PolicyFuzzError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise DamagedFile(f"{ABOUT} is damaged: its configuration cannot be read") from error
        texts = (
            config.target,
            config.strategy,
            config.policy_sha256,
            config.code_sha256,
            config.policy or "",
        )
        if not all(isinstance(text, str) for text in texts) or not isinstance(config.seed, int):
            raise DamagedFile(f"{ABOUT} is damaged: a value of its configuration is of another type")
        return config

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


@dataclass(frozen=True, slots=True)
class InstanceProgress:
    """How an instance is doing: the content of progress.json, for readers of its totals."""

    batches: int  #: sync batches that it has written
    at: float  #: seconds since 1970
    stop_reason: str | None
    last_finding_seconds: float | None  #: campaign time
    progress: Progress

    @classmethod
    def read(cls, folder: Path) -> "InstanceProgress":
        """The progress that the instance with the campaign in `folder` has written."""
        page = read_json(folder, PROGRESS)
        reason, last, totals = (
            page.get(name) for name in ("stop_reason", "last_finding_seconds", "progress")
        )
        kinds = get_type_hints(Progress)
        given: dict[str, Any] = totals if isinstance(totals, dict) else {"no totals": totals}
        is_right = (
            isinstance(reason, str | None)
            and (last is None or _is_total(last, float))
            and _is_total(page.get("at"), float)
            and all(
                _is_total(value, kinds.get(name, int)) or (name in _SHARES and isinstance(value, float))
                for name, value in given.items()
            )
            and given.keys() <= kinds.keys()
            and given.get("sample_crashes", 0) <= given.get("samples", 0) <= _MOST_SAMPLES
        )
        if not is_right:
            raise DamagedFile(f"{PROGRESS} is damaged: a value is missing, or of another type or size")
        return cls(count_in(page, "parcels"), page["at"], reason, last, Progress(**given))


def count_in(page: Mapping[str, Any], name: str) -> int:
    """The count `name` in a `page` of progress.json."""
    if not _is_total(page.get(name), int):
        raise DamagedFile(f"{PROGRESS} is damaged: it does not say how many {name} there are")
    return int(page[name])


def numbered_batches(folder: Path) -> Iterator[int]:
    """Numbers of all sync batches in the campaign `folder`."""
    with os.scandir(folder / FOLDER) as entries:
        for entry in entries:
            if found := re.fullmatch(r"([0-9]{6,9})\.npz", entry.name):
                yield int(found[1])


def instance_folders(folder: Path) -> Iterator[Path]:
    """Folders of instances in the sync `folder`, by name, except those that have not started to sync."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST_FOLDERS))
    except FileNotFoundError:
        return
    yield from (folder / name for name in names if os.path.lexists(folder / name / FOLDER / ABOUT))


def write_json(folder: Path, name: str, values: dict[str, Any]) -> None:
    """Write about.json or progress.json of the campaign in `folder`."""
    text = json.dumps({"format": FORMAT, **values}, indent=1)
    _write(folder / FOLDER / name, text.encode(), is_lasting=name == ABOUT)


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """The values in about.json or progress.json of the campaign in `folder`."""
    text = _read(folder / FOLDER / name, _MOST_PAGE_BYTES)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{name} is damaged: {error}") from error
    if not isinstance(values, dict) or "format" not in values:
        raise DamagedFile(f"{name} is damaged: it does not say its format")
    if values["format"] != FORMAT:
        raise DamagedFile(f"{name} has format {values['format']}, this policyfuzz reads {FORMAT}")
    return values


def _is_total(value: Any, kind: type) -> bool:
    """True if `value` can be a count (int) or seconds (float) of a campaign."""
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        return False
    return 0 <= value <= _MOST


def _are_dimensions(rows: Any) -> bool:
    """True if `rows` are name, kind and finite range of each dimension."""
    return (
        isinstance(rows, list)
        and 0 < len(rows) <= MOST_DIMENSIONS
        and all(isinstance(row, list) and len(row) == 4 for row in rows)
        and all(isinstance(text, str) for row in rows for text in row[:2])
        and all(_is_finite(row[2]) and _is_finite(row[3]) for row in rows)
    )


def _is_finite(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= sys.float_info.max


def _read(path: Path, most_bytes: int) -> bytes:
    """The content of the regular file at `path`; raises OSError where another try may help."""
    try:
        return read_regular(path, most_bytes)
    except PolicyFuzzError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None
        raise DamagedFile(error.message.replace(str(path), path.name)) from error


def _write(path: Path, data: bytes, is_lasting: bool = True) -> None:
    """Make the file at `path` appear with all of `data` in it, or not at all.

    If it `is_lasting`, that holds for a power failure too; a file that is soon replaced can do without.
    """
    path.parent.mkdir(exist_ok=True)
    if path.parent.is_symlink():  # what is behind it may be anybody's
        raise OSError(errno.ENOTDIR, "it is a link, expected a folder")
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    with unfinished.open("xb") as file:
        file.write(data)
        if is_lasting:
            file.flush()
            os.fsync(file.fileno())
    unfinished.replace(path)
