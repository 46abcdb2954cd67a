"""PNG files of figures: the names that they may have, and how they are written."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from policyfuzz.core.errors import UsageError
from policyfuzz.core.whole_file import make_folder_of, whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_png(path: Path | None) -> None:
    """Raise if `path`, which a user has named for a picture, has another ending."""
    if path is not None and path.suffix.lower() != ".png":
        raise UsageError(f"cannot draw into {path.name!r}", "name a file that ends in .png")


def write_png(draw: "Callable[[], Figure]", path: Path, dots_per_inch: int) -> None:
    """Write the figure that `draw` makes into the PNG file `path`."""
    from matplotlib import rc_context  # not for those who only check a name

    check_png(path)
    make_folder_of(path)
    # matplotlib reads a matplotlibrc in the current folder, which may be a stranger's, and TeX is a program
    with rc_context({"text.usetex": False}), whole_file(path) as unfinished:
        draw().savefig(unfinished, dpi=dots_per_inch, format="png")
