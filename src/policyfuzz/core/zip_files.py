"""Zip and .npz archives that strangers may have made: what they unpack to is bounded before it is read."""

import io
import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

#: Of the table at the end of an archive, which is read as a whole: some 100,000 names.
_MOST_TABLE_BYTES = 1 << 23
#: Ways to pack that can be stopped at a size; the models we know are written with these.
_BOUNDED_WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class DamagedZip(Exception):
    """An archive that cannot be read, or would unpack to more than it may."""


class ZipReader:
    """Members of an archive by name, each read within a bound."""

    def __init__(self, source: bytes | BinaryIO) -> None:
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        guarded = _GuardedReads(file)
        with _explained():
            self._archive = zipfile.ZipFile(guarded)
        guarded.most_bytes = None
        self.names = tuple(self._archive.namelist())

    def check_total(self, most_bytes: int) -> None:
        """Raise if all members together unpack to more than `most_bytes`, by what the archive says."""
        total = sum(member.file_size for member in self._archive.infolist())
        if total > most_bytes:
            raise DamagedZip(f"it unpacks to {total:,} bytes, expected {most_bytes:,} at most")

    def read(self, name: str, most_bytes: int) -> bytes:
        """The member `name`, of `most_bytes` at most."""
        with _explained():
            member = self._archive.getinfo(name)
            if member.file_size > most_bytes:
                raise DamagedZip(
                    f"{name} unpacks to {member.file_size:,} bytes, expected {most_bytes:,} at most"
                )
            if member.compress_type not in _BOUNDED_WAYS:
                raise DamagedZip(f"{name} is packed in a way that is not known (expected deflate)")
            with self._archive.open(member) as file:
                content = file.read(member.file_size)  # without a number it unpacks whatever there is
            if len(content) < member.file_size:
                raise DamagedZip(f"{name} ends after {len(content):,} of {member.file_size:,} bytes")
            return content


def read_arrays(source: bytes | BinaryIO, most_bytes: int) -> dict[str, NDArray[Any]]:
    """All arrays of an .npz archive by name, of `most_bytes` at most together; no pickles.

    Sizes are compared with the headers before any array is made: a header of a few bytes can ask for
    terabytes.
    """
    archive = ZipReader(source)
    arrays: dict[str, NDArray[Any]] = {}
    for name in archive.names:
        content = archive.read(name, most_bytes)
        most_bytes -= len(content)
        arrays[name.removesuffix(".npy")] = _array(name, content)
    return arrays


def _array(name: str, content: bytes) -> NDArray[Any]:
    """The array in a .npy file with this `content`."""
    file = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, _, dtype = readers[version](file)
        wanted = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or dtype.hasobject or wanted != len(content) - file.tell():
            raise ValueError(
                f"its header says {dtype} {shape}, and {len(content) - file.tell():,} bytes follow"
            )
        file.seek(0)
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:  # the parser of headers raises nearly anything
        raise DamagedZip(f"{name} is no array of numbers: {error or type(error).__name__}") from error
    return array


class _GuardedReads:
    """A file that refuses to read more than `most_bytes` at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.most_bytes: int | None = _MOST_TABLE_BYTES

    def read(self, size: int = -1) -> bytes:
        if self.most_bytes is not None and size > self.most_bytes:
            raise zipfile.BadZipFile(f"its table of names has {size:,} bytes")
        return self._file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _explained() -> Iterator[None]:
    """Turn whatever a damaged archive raises into one error."""
    try:
        yield
    except DamagedZip:
        raise
    except Exception as error:  # zlib.error, EOFError, struct.error, RuntimeError for a password, and more
        raise DamagedZip(str(error) or type(error).__name__) from error
