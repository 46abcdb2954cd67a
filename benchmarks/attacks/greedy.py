"""An environment that takes all memory at some inputs; with GREEDY_STAND_IN it is killed there instead."""

import os
import signal
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

STAND_IN = "GREEDY_STAND_IN"
_BLOCKS = 100  #: of 80 MB


class Greedy(gymnasium.Env[NDArray[np.float64], np.int64]):
    """A number that stays what it is; near its upper end memory runs out."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        """Draw the number."""
        super().reset(seed=seed)
        self.x, self.steps = self.np_random.uniform(-1, 1, 1), 0
        return self.x, {}

    def step(self, action: np.int64) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        """Do nothing, or too much."""
        self.steps += 1
        if self.x[0] > 0.95 and self.steps == 2:
            if STAND_IN in os.environ:
                os.kill(os.getpid(), signal.SIGKILL)
            self.hoard = [np.ones(10_000_000) for _ in range(_BLOCKS)]
        return self.x, float(self.x[0]), bool(self.x[0] < -0.9), self.steps >= 4, {}


def act(_observation: NDArray[np.float64]) -> int:
    """The policy."""
    return 0
