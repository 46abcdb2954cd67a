"""Takes pictures of an episode, and makes sure that they are pictures."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import TargetCodeError, blamed_on
from policyfuzz.simulators.protocol import Renders

Picture = NDArray[np.uint8]  #: (height, width, 3)

_SMALLEST = 2  #: pixels


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
