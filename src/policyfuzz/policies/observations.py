"""Ways to lay out observations for a network, and sample observations to try it with."""

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


def _sample_dictionaries(space: Any, count: int) -> NDArray[Any]:
    columns = {key: sample_observations(part, count) for key, part in space.spaces.items()}
    dtype = np.dtype([(key, column.dtype, column.shape[1:]) for key, column in columns.items()])
    batch = np.empty(count, dtype)
    for key, column in columns.items():
        batch[key] = column
    return batch
