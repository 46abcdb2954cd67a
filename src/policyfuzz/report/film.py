"""A film of an episode: what its simulator renders, captioned, the crash marked."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from policyfuzz.report.camera import Camera, Picture
from policyfuzz.report.film_files import new_film, writing
from policyfuzz.report.recording import record
from policyfuzz.simulators.protocol import Renders
from policyfuzz.target import Target
from policyfuzz.triage.replay import Replay

#: Seconds for which the film stands still at the crash and at the end.
_PAUSE_SECONDS = 1.0
#: Pixels: height of the caption, width of the frame round a crash.
_CAPTION, _FRAME = 40, 6
_PAPER, _INK, _FAINT, _RED = (250, 250, 248), (40, 40, 40), (200, 200, 196), (208, 32, 32)


def can_film(target: Target) -> bool:
    """True where the simulator of `target` renders."""
    return isinstance(target.for_film().simulator(), Renders)


def film_replay(replay: Replay, path: Path) -> None:
    """Film the episode of `replay` into `path`, an .mp4 or .gif file."""
    target, finding, camera = replay.target, replay.finding, Camera()
    pause = round(_PAUSE_SECONDS * target.film_steps_per_second)
    with new_film(path, target.film_steps_per_second) as film:

        def look(step: int, simulator: Renders) -> None:
            picture = caption(camera.shoot(simulator), step, replay)
            with writing(path):
                for _ in range(1 + pause * (step in (replay.crash_step, replay.steps))):
                    film.add(picture)

        record(target, finding.input, finding.case_seed, look)


def caption(picture: Picture, step: int, replay: Replay) -> Picture:
    """`picture` (h, w, 3) with a caption and a time line under it, and a red frame from the crash on."""
    height, width = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2  # films want even sizes
    sheet = Image.new("RGB", (width, height + _CAPTION), _PAPER)
    sheet.paste(Image.fromarray(picture[:height, :width]))
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(size=15)
    has_crashed = replay.crash_step is not None and step >= replay.crash_step
    ink = _RED if has_crashed else _INK
    if has_crashed:
        draw.rectangle((0, 0, width - 1, height - 1), outline=_RED, width=_FRAME)
    middle = height + _CAPTION * 0.62
    said = f"step {step} of {replay.steps}"
    if has_crashed:
        said = f"{replay.kind} at step {replay.crash_step}  ·  {said}"
    draw.text((width - 10, middle), said, ink, font, anchor="rm")
    title = f"{replay.target.name}, finding {replay.finding.id}"
    room = width - 40 - draw.textlength(said, font)
    while title and draw.textlength(title, font) > room:
        title = title[1:]  # its end tells more
    draw.text((10, middle), title, _INK, font, anchor="lm")
    _draw_time_line(draw, width, height, step, replay)
    return np.asarray(sheet)


def _draw_time_line(draw: ImageDraw.ImageDraw, width: int, top: int, step: int, replay: Replay) -> None:
    """How far the episode has come, and where it crashes, along the upper edge of the caption."""
    per_step = (width - 1) / max(replay.steps, 1)
    draw.rectangle((0, top, width - 1, top + 5), fill=_FAINT)
    draw.rectangle((0, top, step * per_step, top + 5), fill=_INK)
    if replay.crash_step is not None:
        crash = replay.crash_step * per_step
        draw.rectangle((crash - 2, top, crash + 2, top + 9), fill=_RED)
