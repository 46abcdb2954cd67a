"""Films as files: MP4 where an encoder is installed, GIF anywhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from PIL import Image

from policyfuzz import extras
from policyfuzz.errors import CampaignError, UsageError
from policyfuzz.report.camera import Picture

#: Viewers show a GIF no faster than about this many pictures a second.
_FASTEST_GIF = 25


class Film(Protocol):
    """A film that is being written."""

    def add(self, picture: Picture) -> None:
        """Show `picture` next; all pictures of a film have one size, both sides even."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


def best_format() -> str:
    """The ending of the best kind of film that can be written here."""
    return ".mp4" if find_spec("imageio_ffmpeg") else ".gif"


def check_name(path: Path) -> None:
    """Refuse a `path` that no film can be written to."""
    if path.suffix.lower() not in _KINDS:
        raise UsageError(f"cannot film into {path.name!r}", f"name a file that ends in {' or '.join(_KINDS)}")
    if path.is_dir():
        raise UsageError(f"cannot film into {path}: it is a folder")


@contextmanager
def new_film(path: Path, pictures_per_second: int) -> Iterator[Film]:
    """A film that is at `path` once it is complete; its ending says of which kind it is."""
    check_name(path)
    # beside it, under an absolute name that no encoder takes for an option or a protocol
    unfinished = path.resolve().with_name(f"unfinished-{path.name}")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            film = _KINDS[path.suffix.lower()](unfinished, pictures_per_second)
        try:
            yield film
        finally:
            with writing(path):
                film.close()
        with writing(path):
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure to write into an error that names `path`."""
    try:
        yield
    except OSError as error:
        reason = str(error.strerror or error).strip().splitlines()[0]
        raise CampaignError(f"cannot write {path}: {reason}", hint="is the disk full?") from error


class _Mp4:
    def __init__(self, path: Path, pictures_per_second: int) -> None:
        self._encoder = extras.load("imageio_ffmpeg", "film")
        self._path = path
        self._rate = pictures_per_second
        self._writer: Any = None  #: opened by the first picture, whose size it needs
        path.touch()  # a file that cannot be written is noticed here, not by the encoder

    def add(self, picture: Picture) -> None:
        if self._writer is None:
            height, width, _ = picture.shape
            self._writer = self._encoder.write_frames(
                str(self._path), (width, height), fps=self._rate, quality=7, macro_block_size=2
            )
            self._writer.send(None)
        self._writer.send(np.ascontiguousarray(picture))

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Gif:
    def __init__(self, path: Path, pictures_per_second: int) -> None:
        self._path = path
        self._stride = -(-pictures_per_second // _FASTEST_GIF)
        self._milliseconds = round(1000 * self._stride / pictures_per_second)
        self._count = 0
        self._pictures: list[Image.Image] = []
        path.touch()

    def add(self, picture: Picture) -> None:
        if self._count % self._stride == 0:
            self._pictures.append(Image.fromarray(picture).quantize(128, dither=Image.Dither.NONE))
        self._count += 1

    def close(self) -> None:
        if self._pictures:
            first, *others = self._pictures
            first.save(self._path, save_all=True, append_images=others, duration=self._milliseconds, loop=0)


_KINDS: dict[str, Callable[[Path, int], Film]] = {".mp4": _Mp4, ".gif": _Gif}
