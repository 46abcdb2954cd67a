"""How much better than expected a decision turned out (generalised advantage estimation)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bipedal.walks import Floats, Walks


@dataclass(frozen=True, slots=True)
class Aim:
    """What is to be gained."""

    discount: float = 0.99
    smoothing: float = 0.95  #: lambda in the paper
    reward_scale: float = 0.1


def advantages(walks: Walks, values: Floats, aim: Aim) -> Floats:
    """(n, t) advantages of the steps of `walks` under `values` (n, t + 1).

    Only a fall is an end with nothing behind it. Who arrives, or runs out of time, would have gone on: the
    observation does not tell how far the end is.
    """
    count, steps = walks.rewards.shape
    result = np.zeros((count, steps), np.float32)
    following = np.zeros(count, np.float32)
    counted, is_last = walks.counted, _last_steps(walks)
    for step in reversed(range(steps)):
        falls = is_last[:, step] & walks.has_fallen
        outlook = np.where(falls, 0.0, values[:, step + 1])
        surprise = aim.reward_scale * walks.rewards[:, step] + aim.discount * outlook - values[:, step]
        following = np.where(is_last[:, step], 0.0, following)
        following = np.where(counted[:, step], surprise + aim.discount * aim.smoothing * following, 0.0)
        result[:, step] = following
    return result


def _last_steps(walks: Walks) -> NDArray[np.bool_]:
    """(n, t) True at the last step of each walk."""
    last: NDArray[np.bool_] = np.arange(walks.rewards.shape[1]) == walks.lengths[:, None] - 1
    return last
