"""Turns observations of a space into inputs of a network, and its outputs into actions of a space."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyError

if TYPE_CHECKING:
    from gymnasium import Space

WRAPPER_HINT = (
    "does the policy belong to this environment? If it was trained with a wrapper such as FlattenObservation"
    " or FrameStackObservation, the environment needs the same one here"
)
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


@dataclass(frozen=True, slots=True)
class View:
    """One way to lay out observations: (m, ...) as the environment gives them to (m, *shape)."""

    shape: tuple[int, ...]
    convert: Callable[[NDArray[Any]], NDArray[Any]]
    note: str = ""  #: what a user should know about it

    def fits(self, wanted: Sequence[int | None]) -> bool:
        """True if an input of shape `wanted` (None for any size), without its batch axis, can take it.

        Axes of size 1 in front make no difference.
        """
        given, asked = list(self.shape), list(wanted)
        while len(asked) > len(given) and asked[0] in (1, None):
            del asked[0]
        while len(given) > len(asked) and given[0] == 1:
            del given[0]
        same = [size is None or size == have for size, have in zip(asked, given, strict=False)]
        return len(asked) == len(given) and all(same)


def views(space: "Space[Any]") -> tuple[View, ...]:
    """All ways to lay out observations of `space` as one array, the most likely first.

    None for dictionaries with text, of which a network may still take the other keys.
    """
    from gymnasium import spaces

    match space:
        case spaces.Box() | spaces.MultiBinary():
            return _array_views(tuple(space.shape))
        case spaces.Discrete():
            one_hot = _one_hot(np.array([space.n]), np.array([space.start]))
            note = f"observations are given one-hot, {space.n} numbers"
            return View((int(space.n),), one_hot, note), View((), _same)
        case spaces.MultiDiscrete():
            one_hot = _one_hot(space.nvec.ravel(), np.ravel(space.start))
            total = int(space.nvec.sum())
            return *_array_views(tuple(space.shape)), View(
                (total,), one_hot, "observations are given one-hot"
            )
        case spaces.Dict():
            return _dictionary_views(space)
    raise PolicyError(
        f"observations of {space} cannot be given to a network",
        hint="write the policy as code: --policy py:FILE.py:FUNCTION",
    )


def sample_observations(space: "Space[Any]", count: int) -> NDArray[Any]:
    """`count` different observations of `space`, the same in every run: (count, ...) as simulators give them.

    Near zero where the space allows, since many spaces are far larger than what ever occurs.
    """
    from gymnasium import spaces

    rng = np.random.default_rng(count)
    match space:
        case spaces.Box():
            spread = 1 if np.issubdtype(space.dtype, np.floating) else 100
            drawn = spread * rng.standard_normal((count, *space.shape))
            box: NDArray[Any] = np.clip(drawn, space.low, space.high).astype(space.dtype)
            return box
        case spaces.Discrete():
            return np.asarray(space.start + rng.integers(0, space.n, count), np.int64)
        case spaces.MultiDiscrete():
            numbers = space.start + rng.integers(0, space.nvec, (count, *space.shape))
            return np.asarray(numbers, space.dtype)
        case spaces.MultiBinary():
            return rng.integers(0, 2, (count, *space.shape)).astype(space.dtype)
        case spaces.Dict():
            return _sample_dictionaries(space, count)
    own = copy.deepcopy(space)
    own.seed(0)
    objects = np.empty(count, object)
    objects[:] = [own.sample() for _ in range(count)]
    return objects


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


def _array_views(shape: tuple[int, ...]) -> tuple[View, ...]:
    found = [View(shape, _same)]
    if len(shape) == 3:
        note = "pictures are given with their channels first"
        channels_first = View((shape[2], *shape[:2]), lambda batch: np.moveaxis(batch, -1, 1), note)
        found.append(channels_first)
    if len(shape) > 1:
        note = "observations are flattened"
        found.append(View((math.prod(shape),), lambda batch: batch.reshape(len(batch), -1), note))
    return tuple(found)


def _same(batch: NDArray[Any]) -> NDArray[Any]:
    return batch


def _one_hot(choices: NDArray[Any], start: NDArray[Any]) -> Callable[[NDArray[Any]], NDArray[np.float32]]:
    """The function from whole numbers (m, k) to zeros and ones (m, sum of `choices`)."""
    offsets = np.concatenate([[0], np.cumsum(choices)[:-1]]) - start

    def convert(batch: NDArray[Any]) -> NDArray[np.float32]:
        columns = batch.reshape(len(batch), -1) + offsets
        encoded = np.zeros((len(batch), int(choices.sum())), np.float32)
        encoded[np.arange(len(batch))[:, None], columns] = 1
        return encoded

    return convert


def _dictionary_views(space: Any) -> tuple[View, ...]:
    """Dictionaries in one row, key after key, whole numbers one-hot: what FlattenObservation gives."""
    try:
        found = {key: views(part) for key, part in space.spaces.items()}
    except PolicyError:  # there is text in it, or the like
        return ()
    if not all(found.values()):
        return ()
    chosen = [(key, _flattest(layouts)) for key, layouts in found.items()]

    def convert(batch: NDArray[Any]) -> NDArray[Any]:
        columns = [view.convert(batch[key]).reshape(len(batch), -1) for key, view in chosen]
        return np.concatenate(columns, axis=1)

    width = sum(math.prod(view.shape) for _, view in chosen)
    note = "observations are flattened, key after key: " + ", ".join(space.spaces)
    return (View((width,), convert, note),)


def _flattest(found: tuple[View, ...]) -> View:
    """The view in one row; of whole numbers the one-hot one, which is the widest."""
    return max((view for view in found if len(view.shape) < 2), key=lambda view: math.prod(view.shape))


def _sample_dictionaries(space: Any, count: int) -> NDArray[Any]:
    columns = {key: sample_observations(part, count) for key, part in space.spaces.items()}
    dtype = np.dtype([(key, column.dtype, column.shape[1:]) for key, column in columns.items()])
    batch = np.empty(count, dtype)
    for key, column in columns.items():
        batch[key] = column
    return batch


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
