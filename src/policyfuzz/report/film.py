"""A film of an episode: what its simulator renders, captioned, the crash marked; beside it a witness."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from policyfuzz.core import extras
from policyfuzz.core.branches import Segment
from policyfuzz.core.errors import TargetCodeError, UsageError, blamed_on
from policyfuzz.core.executions import Executions
from policyfuzz.core.interfaces import Renders
from policyfuzz.core.recording import record
from policyfuzz.core.target import Target, split_options
from policyfuzz.core.visible import visible_line
from policyfuzz.core.whole_file import make_folder_of, whole_file, writing
from policyfuzz.report.marks import LAST_CHANCE, POLICY, WITNESS, witness_name
from policyfuzz.store.triage_records import Avoidance
from policyfuzz.triage.replay import Replay

Picture = NDArray[np.uint8]  #: (height, width, 3)

#: Pixels of the smallest side of a picture.
_SMALLEST = 2
#: Viewers show a GIF no faster than about this many pictures a second.
_FASTEST_GIF = 25
#: Seconds for which the film stands still at the crash and at the end.
_PAUSE_SECONDS = 1.0
#: Pixels: height of the caption, width of the frame round a crash.
_CAPTION, _FRAME = 40, 6
#: Pixels of two pictures side by side: a wider one is scaled down to this, space between, names above.
_WIDEST_HALF, _GAP, _HEADER = 560, 8, 28
#: Sizes of the caption's font, in pixels, the best first.
_FONT_SIZES = (15, 13, 11)
_PAPER, _INK, _FAINT, _RED = (250, 250, 248), (40, 40, 40), (200, 200, 196), (208, 32, 32)


def can_film(target: Target) -> bool:
    """True if the simulator of `target` renders."""
    return isinstance(target.for_film().simulator(), Renders)


def film_replay(replay: Replay, path: Path, avoidance: Avoidance | None = None) -> Picture:
    """Film the episode of `replay` into `path`, an .mp4 or .gif file; beside it the witness, if one is known.

    The point of no return is marked where `avoidance` has one. Returns the picture of the crash, or the last.
    """
    if avoidance is not None and avoidance.branch and replay.target.actions is not None:
        return _film_both(replay, path, avoidance)
    target, finding, camera = replay.target, replay.finding, Camera()
    marks = Marks.of(replay, avoidance)
    pause = round(_PAUSE_SECONDS * target.film_steps_per_second)
    stills: list[Picture] = []  # up to the crash only the newest is kept
    with new_film(path, target.film_steps_per_second) as film:

        def look(step: int, simulator: Renders) -> None:
            picture = caption(camera.shoot(simulator), step, replay, marks)
            _keep_still(stills, picture, step, marks)
            with writing(path):
                for _ in range(1 + pause * (step in (replay.crash_step, replay.steps))):
                    film.add(picture)

        record(target, finding.input, finding.case_seed, look)
    return stills[0]


def _keep_still(stills: list[Picture], picture: Picture, step: int, marks: "Marks") -> None:
    """Keep the newest `picture` up to the crash."""
    if marks.crash_step is None or step <= marks.crash_step:
        stills[:] = [picture]


def _film_both(replay: Replay, path: Path, avoidance: Avoidance) -> Picture:
    """Film policy and witness side by side; whichever ends first stands still."""
    # one after the other: some simulators run only one episode per process
    policy, witness = _Reel.of(replay, ()), _Reel.of(replay, avoidance.branch)
    said = witness_name(avoidance, witness.executions)
    if avoidance.words:
        said = f"{said}: {avoidance.words}"
    marks = Marks(max(len(policy), len(witness)) - 1, replay.crash_step, avoidance.last_chance)
    is_crash = witness.executions.crashed[0]
    of_witness = Marks(marks.steps, int(witness.executions.verdicts.steps[0]) if is_crash else None)
    rate = replay.target.film_steps_per_second
    stops = {replay.crash_step, marks.steps, avoidance.last_chance}
    stills: list[Picture] = []
    with new_film(path, rate) as film:
        for step in range(marks.steps + 1):
            crashed = marks.has_crashed(step), of_witness.has_crashed(step)
            both = side_by_side((policy.at(step), witness.at(step)), ("policy", said), crashed)
            picture = caption(both, step, replay, marks, is_framed=False)
            _keep_still(stills, picture, step, marks)
            with writing(path):
                for _ in range(1 + round(_PAUSE_SECONDS * rate) * (step in stops)):
                    film.add(picture)
    return stills[0]


@dataclass(frozen=True, slots=True)
class Marks:
    """What the time line of a film shows."""

    steps: int  #: of the film
    crash_step: int | None
    last_chance: int | None = None  #: the point of no return

    @classmethod
    def of(cls, replay: Replay, avoidance: Avoidance | None = None) -> "Marks":
        """Those of the policy's episode alone."""
        return cls(replay.steps, replay.crash_step, None if avoidance is None else avoidance.last_chance)

    def has_crashed(self, step: int) -> bool:
        """True from the crash of the policy on."""
        return self.crash_step is not None and step >= self.crash_step


@dataclass(frozen=True, slots=True)
class _Reel:
    """All pictures of one episode, packed: a long episode would fill the memory."""

    size: tuple[int, int]  #: width and height
    packed: list[bytes]
    executions: Executions

    @classmethod
    def of(cls, replay: Replay, branch: Sequence[Segment]) -> "_Reel":
        camera, packed = Camera(), []
        width = height = 0

        def look(_step: int, simulator: Renders) -> None:
            nonlocal width, height
            image = Image.fromarray(camera.shoot(simulator))
            scale = min(1.0, _WIDEST_HALF / image.width)
            width, height = max(1, round(image.width * scale)), max(1, round(image.height * scale))
            small = image if scale == 1.0 else image.resize((width, height), Image.Resampling.BOX)
            packed.append(zlib.compress(small.tobytes(), 1))

        finding = replay.finding
        recording = record(replay.target, finding.input, finding.case_seed, look, branch)
        return cls((width, height), packed, recording.executions)

    def __len__(self) -> int:
        return len(self.packed)

    def at(self, step: int) -> Image.Image:
        """The picture of `step`, or the last one."""
        data = zlib.decompress(self.packed[min(step, len(self.packed) - 1)])
        return Image.frombytes("RGB", self.size, data)


def side_by_side(
    pictures: tuple[Image.Image, Image.Image], names: tuple[str, str], crashed: tuple[bool, bool]
) -> Picture:
    """The pictures of policy and witness in one, each under its name, in a red frame if it has `crashed`."""
    height, left = max(picture.height for picture in pictures), 0
    sheet = Image.new("RGB", (sum(one.width for one in pictures) + _GAP, _HEADER + height), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for picture, name, colour, has_crashed in zip(pictures, names, (POLICY, WITNESS), crashed, strict=True):
        right = left + picture.width - 1
        sheet.paste(picture, (left, _HEADER))
        draw.rectangle((left, _HEADER - 4, right, _HEADER - 1), fill=colour)
        text, font = _fitting(draw, visible_line(name), picture.width - 12)
        draw.text((left + 6, (_HEADER - 4) / 2), text, _INK, font, anchor="lm")
        if has_crashed:
            bottom = _HEADER + picture.height - 1
            draw.rectangle((left, _HEADER, right, bottom), outline=_RED, width=_FRAME)
        left = right + 1 + _GAP
    return np.asarray(sheet)


def _fitting(draw: ImageDraw.ImageDraw, text: str, room: int) -> tuple[str, Any]:
    """`text`, or what of it fits into `room`, and the largest font that it fits in."""
    for size in _FONT_SIZES:
        font = ImageFont.load_default(size=size)
        if draw.textlength(text, font) <= room:
            return text, font
    while text and draw.textlength(f"{text}...", font) > room:
        text = text[:-1]
    return f"{text}..." if text else "", font


@dataclass(slots=True)
class Camera:
    """Renders one episode; all its pictures have one size."""

    _size: tuple[int, ...] = field(init=False, default=())

    def shoot(self, simulator: Renders, row: int = 0) -> Picture:
        """A picture of episode `row` as it is now."""
        with blamed_on("render(row) of the simulator"):
            picture = np.asarray(simulator.render(row))
        shape = picture.shape
        if picture.dtype != np.uint8 or len(shape) != 3 or shape[2] != 3 or min(shape[:2]) < _SMALLEST:
            raise TargetCodeError(
                f"render(row) of the simulator gave {picture.dtype} {shape}",
                hint="expected a picture: uint8 (height, width, 3)",
            )
        self._size = self._size or shape
        if shape != self._size:
            raise TargetCodeError(
                f"render(row) of the simulator gave a picture of {shape}, the one before was {self._size}",
                hint="pictures of a film must have one size",
            )
        return picture


def caption(picture: Picture, step: int, replay: Replay, marks: Marks, is_framed: bool = True) -> Picture:
    """`picture` (h, w, 3) with a caption and a time line under it, `is_framed` in red from the crash on."""
    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2  # films want even sizes
    sheet = Image.new("RGB", (width, height + _CAPTION), _PAPER)
    sheet.paste(Image.fromarray(picture[:height, :width]))
    draw = ImageDraw.Draw(sheet)
    has_crashed = marks.has_crashed(step)
    ink = _RED if has_crashed else _INK
    if has_crashed and is_framed:
        draw.rectangle((0, 0, width - 1, height - 1), outline=_RED, width=_FRAME)
    middle = height + _CAPTION * 0.62
    title, said, font = _texts(draw, width - 40, step, replay, marks)
    draw.text((width - 10, middle), said, ink, font, anchor="rm")
    draw.text((10, middle), title, _INK, font, anchor="lm")
    _draw_time_line(draw, width, height, step, marks)
    return np.asarray(sheet)


def _texts(
    draw: ImageDraw.ImageDraw, room: int, step: int, replay: Replay, marks: Marks
) -> tuple[str, str, Any]:
    """What to write on the left and on the right, and the largest font in which all of it fits into `room`.

    A narrow picture gets less to read, but no text that is cut off.
    """
    name, number = split_options(replay.target.name)[0].rpartition("/")[2], f"finding {replay.finding.id}"
    time = said = f"step {step} of {marks.steps}"
    if marks.has_crashed(step):
        said = f"{replay.kind} at step {marks.crash_step}  ·  {time}"
    elif marks.last_chance is not None and step >= marks.last_chance:
        said = f"point of no return at step {marks.last_chance}  ·  {time}"
    name, said = visible_line(name), visible_line(said)
    pairs = ((f"{name}, {number}", said), (number, said), (number, time), ("", time))
    for pair in pairs:
        for size in _FONT_SIZES:
            font = ImageFont.load_default(size=size)
            if sum(draw.textlength(text, font) for text in pair) <= room:
                return *pair, font
    return "", "", ImageFont.load_default(size=_FONT_SIZES[-1])


def _draw_time_line(draw: ImageDraw.ImageDraw, width: int, top: int, step: int, marks: Marks) -> None:
    """How far it has come, its point of no return and its crash, along the upper edge of the caption."""
    per_step = (width - 1) / max(marks.steps, 1)
    draw.rectangle((0, top, width - 1, top + 5), fill=_FAINT)
    draw.rectangle((0, top, step * per_step, top + 5), fill=_INK)
    for when, colour in ((marks.last_chance, LAST_CHANCE), (marks.crash_step, _RED)):
        if when is not None:
            at = when * per_step
            draw.rectangle((at - 2, top, at + 2, top + 9), fill=colour)


class Film(Protocol):
    """A film that is being written."""

    def add(self, picture: Picture) -> None:
        """Show `picture` next; all pictures of a film have one size, both sides even."""
        ...

    def close(self) -> None:
        """Finish the file."""
        ...


def best_format() -> str:
    """The ending of the best film format that is installed."""
    return ".mp4" if find_spec("imageio_ffmpeg") else ".gif"


def check_name(path: Path) -> None:
    """Refuse a `path` that is no name for a film."""
    if path.suffix.lower() not in _FORMATS:
        raise UsageError(
            f"cannot film into {path.name!r}", f"name a file that ends in {' or '.join(_FORMATS)}"
        )
    if path.is_dir():
        raise UsageError(f"cannot film into {path}: it is a folder")


@contextmanager
def new_film(path: Path, pictures_per_second: int) -> Iterator[Film]:
    """A film that appears at `path` once it is complete; the ending of `path` decides its format."""
    check_name(path)
    make_folder_of(path)
    # the name is absolute, which no encoder takes for an option or a protocol
    with whole_file(path) as unfinished:
        film = _FORMATS[path.suffix.lower()](unfinished, pictures_per_second)
        try:
            yield film
        finally:
            film.close()


class _Mp4:
    def __init__(self, path: Path, pictures_per_second: int) -> None:
        self._encoder = extras.load("imageio_ffmpeg", "film")
        self._path = path
        self._rate = pictures_per_second
        self._writer: Any = None  #: opened by the first picture, whose size it needs
        path.touch()  # notices here, not in the encoder, if the file cannot be written

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


_FORMATS: dict[str, Callable[[Path, int], Film]] = {".mp4": _Mp4, ".gif": _Gif}
