"""On which ground a walker of `bipedal` fell: its course, as far as the walker came.

Obstacles behind the fall play no part in it, so inputs that differ only there are the same finding. Sizes,
gaps and roughness come from the case seed.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.interfaces import Frame
from policyfuzz.core.target import Target, split_options
from policyfuzz.targets.bipedal.terrain import CELL, SCALE, lay_course

#: Metres ahead of the hull at which an obstacle is reached: a stretched leg, thigh and shin of 34 pixels.
_LEG = 2 * 34 / SCALE


def has_courses(target: Target) -> bool:
    """True for walkers."""
    return split_options(target.name)[0] == "bipedal"


class CourseWatch:
    """An observer of n episodes that notes how far each walker came."""

    def __init__(self, count: int, signal: int) -> None:
        self._furthest = np.zeros(count)
        self._signal = signal

    @classmethod
    def of(cls, target: Target, count: int) -> "CourseWatch | None":
        """One for `count` episodes of `target`, None if they have no courses."""
        if not has_courses(target):
            return None
        from policyfuzz.targets.bipedal.simulator import WalkerSimulator

        return cls(count, WalkerSimulator.signals.index("x"))

    def __call__(
        self, _step: int, rows: NDArray[np.int64], _actions: NDArray[Any] | None, frame: Frame
    ) -> None:
        self._furthest[rows] = np.maximum(self._furthest[rows], frame.signals[:, self._signal])

    def courses(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """(n,) a hash of the case seed and of the types of all obstacles that were reached."""
        hashes = np.zeros(len(inputs), np.uint64)
        for row, (types, seed) in enumerate(
            zip(inputs.astype(np.int64).tolist(), seeds.tolist(), strict=True)
        ):
            reached = obstacles_reached(types, seed, float(self._furthest[row]))
            digest = hashlib.blake2b(f"{seed} {reached}".encode(), digest_size=8)
            hashes[row] = int.from_bytes(digest.digest(), "little")
        return hashes


def obstacles_reached(types: list[int], seed: int, furthest: float) -> list[int]:
    """Types of the obstacles on the course of a case that a walker reached whose hull came to `furthest`."""
    course = lay_course(types, np.random.default_rng(seed))
    reached = sum(start * CELL <= furthest + _LEG for start in course.starts)
    return course.obstacles[:reached]
