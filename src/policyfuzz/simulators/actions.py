"""What a simulator may ask of the actions it is given."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError


def checked_actions(actions: NDArray[Any], count: int, meaning: tuple[str, ...]) -> NDArray[np.float64]:
    """`actions` as float64 (count, k), after making sure that they are finite and one for each `meaning`."""
    given, shape = np.asarray(actions), (count, len(meaning))
    if given.shape != shape:
        problem = f"shape {given.shape}"
    elif given.dtype.kind not in "fiub" or not np.isfinite(given).all():
        problem = "values that are NaN, infinite or no numbers"
    else:
        return given.astype(np.float64, copy=False)
    raise PolicyError(
        f"the policy's actions have {problem}, expected finite numbers {shape}: {', '.join(meaning)}",
        hint="does this policy belong to this target?",
    )
