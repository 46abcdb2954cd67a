"""What a policy is: observations of many episodes in, actions out."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Policy(Protocol):
    """Acts for n episodes at once; may remember something about each of them.

    The action of an episode must not depend on the other rows of the batch, bit for bit.
    """

    def begin(self, count: int) -> None:
        """Forget everything and prepare for `count` new episodes."""
        ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
        """Actions (m, ...) for `observations` (m, ...) of episodes `rows` (m,)."""
        ...
