"""Pictures of a walker: gymnasium draws an environment of its own, in which bodies are put where ours are."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.environments.families.bipedal_walker import ToldTypes as ToldTypes
from policyfuzz.targets.bipedal.lidar import ray_ends
from policyfuzz.targets.bipedal.terrain import SCALE
from policyfuzz.targets.bipedal.walkers import package

#: Position and angle of a body.
Pose = tuple[tuple[float, float], float]


class Camera:
    """Draws walkers; what it draws it has built itself, so that no episode can notice."""

    def __init__(self) -> None:
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
        self._env: Any = package().BipedalWalker(hardcore=True, render_mode="rgb_array")
        self._case: tuple[tuple[int, ...], int] | None = None

    def picture(
        self, obstacles: Sequence[int], seed: int, poses: Sequence[Pose], lidar: NDArray[np.float32]
    ) -> NDArray[np.uint8]:
        """(400, 600, 3) RGB: the course of a case, hull and legs at `poses`, rays of length `lidar` (10,)."""
        env = self._env
        if self._case != (tuple(obstacles), seed):
            self._case = tuple(obstacles), seed
            env.np_random = ToldTypes(obstacles, seed)
            env.reset()
        for body, (position, angle) in zip((env.hull, *env.legs), poses, strict=True):
            body.transform = position, angle
        hull = poses[0][0]
        env.scroll = hull[0] - 600 / SCALE / 5
        for ray, end in zip(env.lidar, ray_ends(hull, lidar).tolist(), strict=True):
            ray.p1, ray.p2 = hull, end
        picture: NDArray[np.uint8] = env.render()
        return picture
