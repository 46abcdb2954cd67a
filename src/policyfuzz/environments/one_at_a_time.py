"""A simulator that runs one episode at a time, as most people write theirs, for batches of episodes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyFuzzError, TargetCodeError, is_interrupt
from policyfuzz.core.forks import end_copy_of, this_process
from policyfuzz.core.inputs import Choice, Dimension, InputSpace, Integer, Seed
from policyfuzz.core.interfaces import RAISED, EpisodeError, Frame, traceback_text
from policyfuzz.environments.spaces import as_flag, as_reward

_RESET = ("observation", "signals")
_STEP = ("observation", "reward", "ended", "signals")


class Episode(Protocol):
    """What the user writes: one episode. It may have `render()` too, a picture uint8 (height, width, 3)."""

    def reset(self, values: Mapping[str, Any], seed: int) -> tuple[Any, Mapping[str, float]]:
        """Start at `values`, by name; `seed` feeds all chance. First observation, and signals by name."""
        ...

    def step(self, action: Any) -> tuple[Any, float, bool, Mapping[str, float]]:
        """Observation, reward, whether the episode has ended, and signals by name."""
        ...


class OneAtATime:
    """n objects that `make` gives, a new one for every episode, so nothing is left over from the last.

    Observations are numbers or arrays of one shape; the density sees them too. Reset and every step give all
    `signals`. An episode that raises ends with an error; the others continue.
    """

    capacity: ClassVar[int | None] = None

    def __init__(self, make: Callable[[], Episode], inputs: InputSpace, signals: Sequence[str]) -> None:
        self.signals = tuple(signals)
        self._make, self._dimensions = make, inputs.dimensions
        self._episodes: list[Any] = []
        self._shape: tuple[int, ...] | None = None  #: of an observation
        self._time = 0
        if hasattr(make(), "render"):
            self.render = self._picture

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self._time, process = 0, this_process()
        self._episodes = [self._make() for _ in inputs]
        table = _Table(len(inputs), self.signals)
        for row, (values, seed) in enumerate(zip(inputs.tolist(), seeds.tolist(), strict=True)):
            named = {
                one.name: _value(one, value) for one, value in zip(self._dimensions, values, strict=True)
            }
            try:
                observation, signals = _parts(self._episodes[row].reset(named, seed), "reset", _RESET)
                table.put(row, self._seen(observation), 0.0, False, signals)
            except PolicyFuzzError:
                raise
            except BaseException as error:  # whatever the user's own code raises
                if is_interrupt(error):
                    raise
                table.fail(row, EpisodeError(RAISED, 0, traceback_text(error)))
            end_copy_of(process)
        return table.frame(self._shape)

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        self._time += 1
        process = this_process()
        table = _Table(len(rows), self.signals)
        for position, (row, action) in enumerate(zip(rows.tolist(), actions, strict=True)):
            try:
                observation, *rest = _parts(self._episodes[row].step(action), "step", _STEP)
                table.put(position, self._seen(observation), *rest)
            except PolicyFuzzError:
                raise
            except BaseException as error:  # whatever the user's own code raises
                if is_interrupt(error):
                    raise
                table.fail(position, EpisodeError(RAISED, self._time, traceback_text(error)))
            end_copy_of(process)
        return table.frame(self._shape)

    def _picture(self, row: int) -> NDArray[np.uint8]:
        return np.asarray(self._episodes[row].render())

    def _seen(self, observation: Any) -> NDArray[Any]:
        array = np.asarray(observation)
        if array.dtype.kind not in "biuf":
            raise TargetCodeError(
                f"the simulator gave the observation {observation!r}",
                "expected a number, or an array of numbers",
            )
        self._shape = array.shape if self._shape is None else self._shape
        if array.shape != self._shape:
            raise TargetCodeError(
                f"the simulator gave an observation of shape {array.shape} after one of {self._shape}",
                "all observations have one shape",
            )
        return array


class _Table:
    """What m episodes gave in one step."""

    def __init__(self, count: int, signals: tuple[str, ...]) -> None:
        self._names = signals
        self.observations: list[NDArray[Any] | None] = [None] * count
        self.signals = np.zeros((count, len(signals)))
        self.rewards = np.zeros(count)
        self.ended = np.zeros(count, np.bool_)
        self.errors: dict[int, EpisodeError] = {}

    def put(
        self, row: int, seen: NDArray[Any], reward: float, ended: bool, signals: Mapping[str, float]
    ) -> None:
        """Note what a reset or step gave."""
        if set(signals) != set(self._names):
            raise TargetCodeError(
                f"the simulator gave the signals {', '.join(signals) or 'none'}, and announced"
                f" {', '.join(self._names) or 'none'}",
                "reset and step give all that OneAtATime(..., signals=...) names, and no others",
            )
        self.rewards[row], self.ended[row] = as_reward(reward), as_flag(ended, "ended")
        self.observations[row] = seen
        self.signals[row] = [signals[name] for name in self._names]

    def fail(self, row: int, error: EpisodeError) -> None:
        """Note that the episode at `row` has ended in an `error`; its numbers mean nothing."""
        self.errors[row] = error
        self.ended[row] = True
        self.observations[row], self.rewards[row] = None, 0.0

    def frame(self, shape: tuple[int, ...] | None) -> Frame:
        """All of it; `shape` is that of an observation, None while there has been none."""
        nothing = np.zeros(shape or ())
        seen = np.array([nothing if one is None else one for one in self.observations])
        states = seen.reshape(len(seen), -1).astype(np.float64)
        return Frame(seen, states, self.signals, self.rewards, self.ended, self.errors)


def _parts(given: Any, method: str, expected: tuple[str, ...]) -> Any:
    """`given` by a method of the user's, a tuple of what is `expected`."""
    if isinstance(given, tuple) and len(given) == len(expected) and isinstance(given[-1], Mapping):
        return given
    shown = f"a tuple of {len(given)}" if isinstance(given, tuple) else f"a {type(given).__name__}"
    raise TargetCodeError(
        f"{method} of the simulator returned {shown}",
        f"expected {', '.join(expected)}; the signals are a dictionary, and may be empty",
    )


def _value(dimension: Dimension, value: float) -> Any:
    """`value` as a user would write it: a name, a whole number or a number."""
    if isinstance(dimension, Choice):
        return dimension.options[int(value)]
    return int(value) if isinstance(dimension, Integer | Seed) else value
