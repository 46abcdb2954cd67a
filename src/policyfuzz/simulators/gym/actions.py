"""What environments are given to do: actions of many episodes, one by one, in the type of their space."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError


class ActionReader:
    """Turns actions (m, ...) of a policy into m actions of `space`, or says what is wrong with them."""

    def __init__(self, space: Any) -> None:
        from gymnasium import spaces

        self._space = space
        self._shape = space.shape
        self._is_discrete = isinstance(space, spaces.Discrete)
        self._is_known = isinstance(
            space, spaces.Discrete | spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary
        )

    def __call__(self, actions: Any, count: int) -> Sequence[Any]:
        """One action for each of `count` episodes."""
        if not self._is_known:  # nothing is known about its shape; the environment will say
            return list(actions)
        given = np.asarray(actions)
        if self._is_discrete and given.shape == (count, 1):
            given = given[:, 0]
        if given.shape != (count, *self._shape):
            raise self._unfit(f"have shape {given.shape}, expected {(count, *self._shape)}")
        if given.dtype.kind not in "fiub" or not np.isfinite(given).all():
            raise self._unfit("have values that are NaN, infinite or no numbers")
        if self._is_discrete:
            return self._whole(given)
        return list(given.astype(self._space.dtype, copy=False))

    def _whole(self, given: NDArray[Any]) -> Sequence[Any]:
        low, high = int(self._space.start), int(self._space.start + self._space.n)
        if not ((given >= low) & (given < high) & (given == np.floor(given))).all():
            raise self._unfit(f"are not whole numbers from {low} to {high - 1}")
        return list(given.astype(self._space.dtype, copy=False))

    def _unfit(self, what: str) -> PolicyError:
        return PolicyError(
            f"the policy's actions {what}, for action space {self._space}",
            hint="does this policy belong to this environment?",
        )
