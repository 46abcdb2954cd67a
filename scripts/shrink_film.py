"""Make a film small enough for the gallery: python scripts/shrink_film.py FILM.gif SMALL.gif WIDTH."""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageSequence

#: Pictures of the small film, and milliseconds: how long each stays at least, and how long the last one does.
PICTURES, SHORTEST, LAST = 50, 80, 2500
#: Colours: the most frequent ones, and others that are far from each other.
FREQUENT, OTHERS = 32, 64
#: Pixels that differ less than this from the picture before are taken to be the same.
SAME = 5
#: The transparent colour.
CLEAR = 255


def shrink(film: Path, small: Path, width: int) -> None:
    """Write `film` to `small`, `width` pixels wide, with fewer pictures and colours; a short one slowly."""
    with Image.open(film) as opened:
        count = opened.n_frames
        chosen = sorted({*range(0, count, max(1, count // PICTURES)), count - 1})
        seconds = sum(int(one.info.get("duration", 40)) for one in ImageSequence.Iterator(opened)) / 1000
        size = (width, round(opened.height * width / opened.width))
        pictures = []
        for number in chosen:
            opened.seek(number)
            pictures.append(opened.convert("RGB").resize(size, Image.Resampling.LANCZOS))
    durations = [max(SHORTEST, round(1000 * seconds / len(chosen)))] * len(chosen)
    durations[-1] = LAST
    palette = palette_of(pictures)
    drawn, shown = [], None
    for picture in pictures:
        colours = np.asarray(picture).astype(int)
        indexes = np.array(picture.quantize(palette=palette, dither=Image.Dither.NONE))
        if shown is not None:
            indexes[np.abs(colours - shown).max(axis=2) < SAME] = CLEAR  # long runs of it pack well
        shown = colours if shown is None else np.where((indexes != CLEAR)[..., None], colours, shown)
        frame = Image.fromarray(indexes.astype(np.uint8))
        frame.putpalette(palette.getpalette())
        drawn.append(frame)
    kept = {"duration": durations, "loop": 0, "disposal": 1, "transparency": CLEAR, "optimize": False}
    drawn[0].save(small, save_all=True, append_images=drawn[1:], **kept)


def palette_of(pictures: list[Image.Image]) -> Image.Image:
    """One palette for all, from all of them: palettes of their own would make colours flicker."""
    rows = np.concatenate([np.asarray(one) for one in pictures[:: max(1, len(pictures) // 12)]])
    colours, counts = np.unique(rows.reshape(-1, 3), axis=0, return_counts=True)
    frequent = colours[np.argsort(-counts, kind="stable")[:FREQUENT]]
    spread = Image.fromarray(rows).quantize(OTHERS, method=Image.Quantize.MAXCOVERAGE).getpalette()
    chosen = [*frequent.flatten().tolist(), *(spread or [])[: 3 * OTHERS]]
    palette = Image.new("P", (1, 1))
    palette.putpalette(chosen + chosen[:3] * (256 - len(chosen) // 3))
    return palette


if __name__ == "__main__":
    shrink(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
