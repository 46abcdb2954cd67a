"""From what a network returns to actions of the environment, checked."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyError

if TYPE_CHECKING:
    from gymnasium import Space

#: Names of the output with the actions, the best first; compared without case.
ACTION_NAMES = (
    "action",
    "actions",
    "deterministic_continuous_actions",
    "deterministic_discrete_actions",
    "continuous_actions",
    "discrete_actions",
    "mu",
    "mean",
    "logits",
    "action_logits",
    "q_values",
    "q",
    "output",
    "policy",
)

_HINT = "was the policy trained for another environment, or does it give its actions in another output?"


def to_actions(outputs: NDArray[Any], space: "Space[Any]") -> NDArray[Any]:
    """Actions (m, ...) of `space` for `outputs` (m, ...), each row for itself.

    - Discrete: n columns are scores, and the highest one wins (the first of equals); one column is the
      action itself. Scores count from the space's `start`, an action itself does not.
    - MultiDiscrete: as many columns as actions are the actions themselves; as many as all choices together
      are scores.
    - MultiBinary: 1 where the output is positive, which is right for zeros and ones and for logits.
    - Box: in the shape and type of the space, clipped to its bounds.
    """
    from gymnasium import spaces

    flat = outputs.reshape(len(outputs), -1)
    if np.isnan(flat).any():
        raise PolicyError(
            "the policy gave NaN as an action",
            hint="its weights are damaged, or an observation lies far outside of what it was trained on",
        )
    match space:
        case spaces.Discrete():
            return _discrete(flat, int(space.n), int(space.start), space)
        case spaces.MultiDiscrete():
            return _multi_discrete(flat, space)
        case spaces.MultiBinary() if flat.shape[1] == math.prod(space.shape):
            return (flat > 0).astype(space.dtype).reshape(len(flat), *space.shape)
        case spaces.Box() if flat.shape[1] == math.prod(space.shape):
            return _box(flat.reshape(len(flat), *space.shape), space)
        case spaces.MultiBinary() | spaces.Box():
            raise _misfit(flat, f"{math.prod(space.shape)}", space)
    raise PolicyError(
        f"actions of {space} cannot be made from what a network gives",
        hint="write the policy as code: --policy py:FILE.py:FUNCTION",
    )


def rescaled(outputs: NDArray[Any], space: "Space[Any]") -> NDArray[Any]:
    """`outputs` (m, ...) between -1 and 1, stretched to the bounds of a Box."""
    low, high = getattr(space, "low", np.array(np.nan)), getattr(space, "high", np.array(np.nan))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise PolicyError(
            f"outputs cannot be rescaled to {space}: it has no finite bounds", hint="leave out ?rescale"
        )
    if math.prod(outputs.shape[1:]) != low.size:
        raise _misfit(outputs.reshape(len(outputs), -1), str(low.size), space)
    stretched: NDArray[Any] = low + 0.5 * (outputs.reshape(len(outputs), *low.shape) + 1.0) * (high - low)
    return stretched


def checked_actions(actions: NDArray[Any], count: int, meaning: tuple[str, ...]) -> NDArray[np.float64]:
    """`actions` as float64 (count, k), finite and one for each `meaning`, or a PolicyError."""
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


def _discrete(flat: NDArray[Any], count: int, start: int, space: "Space[Any]") -> NDArray[np.int64]:
    if flat.shape[1] == 1:
        return _whole_numbers(flat[:, 0], np.array(start), np.array(start + count - 1), space)
    if flat.shape[1] != count:
        raise _misfit(flat, f"1 or {count}", space)
    best: NDArray[np.int64] = flat.argmax(axis=1).astype(np.int64) + start
    return best


def _multi_discrete(flat: NDArray[Any], space: Any) -> NDArray[np.int64]:
    choices, start = space.nvec.ravel(), np.ravel(space.start)
    if flat.shape[1] == len(choices):
        actions = _whole_numbers(flat, start, start + choices - 1, space)
    elif flat.shape[1] == choices.sum():
        ends = np.cumsum(choices)
        scores = np.split(flat, ends[:-1], axis=1)
        actions = np.stack([part.argmax(axis=1) for part in scores], axis=1).astype(np.int64) + start
    else:
        raise _misfit(flat, f"{len(choices)} or {choices.sum()}", space)
    return actions.reshape(len(flat), *space.shape)


def _whole_numbers(
    values: NDArray[Any], low: NDArray[Any], high: NDArray[Any], space: "Space[Any]"
) -> NDArray[np.int64]:
    """`values` as whole numbers, if all of them are actions of `space`."""
    wrong = (values != np.rint(values)) | (values < low) | (values > high)
    if wrong.any():
        raise PolicyError(
            f"the policy gave {values[wrong][0]:g} as an action, which is not in {space}",
            hint="expected the number of the action, or a score for each of them",
        )
    return values.astype(np.int64)


def _box(values: NDArray[Any], space: Any) -> NDArray[Any]:
    clipped: NDArray[Any] = np.clip(values, space.low, space.high)
    if np.issubdtype(space.dtype, np.integer):
        clipped = np.rint(clipped)
    elif not np.isfinite(clipped).all():
        raise PolicyError(
            "the policy gave an infinite action", hint="its weights are damaged, or it diverges"
        )
    typed: NDArray[Any] = clipped.astype(space.dtype)
    return typed


def _misfit(flat: NDArray[Any], wanted: str, space: "Space[Any]") -> PolicyError:
    return PolicyError(
        f"the policy gives {flat.shape[1]} number(s) for an observation, expected {wanted} for {space}", _HINT
    )
