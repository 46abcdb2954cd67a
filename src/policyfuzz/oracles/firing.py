"""At which step an oracle fires."""

import numpy as np
from numpy.typing import NDArray

from policyfuzz.oracles.verdicts import NONE, Trajectories, Verdicts


def at_first(fired: NDArray[np.bool_], margins: NDArray[np.float64] | None = None) -> Verdicts:
    """The verdicts of an oracle with one kind that fires at the first True of each row of `fired` (n, t)."""
    crashed = fired.any(axis=1)
    return Verdicts(
        kinds=np.where(crashed, 0, NONE),
        steps=np.where(crashed, fired.argmax(axis=1), NONE),
        margins=np.empty(0) if margins is None else margins,
    )


def at_end(
    trajectories: Trajectories, fired: NDArray[np.bool_], margins: NDArray[np.float64] | None = None
) -> Verdicts:
    """The verdicts of an oracle with one kind that fires in the last state where `fired` (n,).

    It stays silent on episodes that an error ended: nobody knows how they would have gone on.
    """
    crashed = fired & trajectories.sound
    return Verdicts(
        kinds=np.where(crashed, 0, NONE),
        steps=np.where(crashed, trajectories.lengths - 1, NONE),
        margins=np.empty(0) if margins is None else margins,
    )
