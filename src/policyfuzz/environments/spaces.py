"""Arrays of what many environments take and give in a step: actions, observations, rewards, signals."""

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.core.interfaces import EpisodeError
from policyfuzz.environments.state_names import action_names, state_names

#: Numbers of an observation up to which the density sees them as they are; of more it sees a sketch.
_MAX_STATE_NUMBERS = 64
#: More choices than that are no actions of a controller, and there is no time to try them.
_MOST_CHOICES = 1000
#: Numbers of an image that a sketch is made of at most, drawn once: neighbours say much the same.
_MAX_SKETCHED = 4096


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


def action_space_of(space: Any, env: Any) -> ActionSpace | None:
    """The actions of `space` as numbers, with names where those of `env` are known; None if that cannot be.

    Spaces of text, sequences and the like have no numbers, and nothing can be drawn between infinite bounds.
    """
    from gymnasium import spaces

    match space:
        case spaces.Discrete():
            count = int(space.n)
            names = action_names(env, count) or tuple(f"action {number}" for number in range(count))
            return ActionSpace.choices(names, int(space.start)) if count <= _MOST_CHOICES else None
        case spaces.MultiDiscrete():
            first = np.ravel(space.start)
            return ActionSpace.box(first, first + np.ravel(space.nvec) - 1, whole=True)
        case spaces.MultiBinary():
            size = int(np.prod(space.shape))
            return ActionSpace.box(np.zeros(size), np.ones(size), whole=True)
        case spaces.Box():
            names = action_names(env, int(np.prod(space.shape)))
            is_whole = np.issubdtype(space.dtype, np.integer)
            try:
                return ActionSpace.box(space.low, space.high, names, is_whole)
            except UsageError:  # it has no bounds
                return None
    return None


def row_type(space: Any) -> np.dtype[Any]:
    """The type of one observation: a sub-array, a record of the parts of a Dict or Tuple, or any object."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return np.dtype([(str(name), row_type(part)) for name, part in parts])
    if isinstance(space, spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
        return np.dtype((space.dtype, space.shape))
    return np.dtype(object)


class ObservationTable:
    """Puts single observations of `space` into arrays of m of them, and tells about those."""

    def __init__(self, space: Any) -> None:
        self._space = space
        self._type = row_type(space)
        self._shape = self._type.shape
        self._is_record = self._type.names is not None
        numbers = _count(self._type)
        self._has_floats = _has_floats(self._type)
        self._sketch = _Sketch(numbers) if numbers > _MAX_STATE_NUMBERS else None

    def empty(self, count: int) -> NDArray[Any]:
        """An array for `count` observations, all zero."""
        return np.zeros(count, self._type)

    def put(self, table: NDArray[Any], row: int, observation: Any) -> None:
        """Write `observation` into `table`; refuse one that is not of this space's shape."""
        if self._is_record:
            table[row] = _as_record(observation, self._type)
            return
        if np.shape(observation) != self._shape and self._type.kind != "O":
            raise ValueError(
                f"an observation has shape {np.shape(observation)}, its space says {self._shape}"
            )
        table[row] = observation

    def states(self, table: NDArray[Any]) -> NDArray[np.float64]:
        """(m, k) the observations as numbers for the density; infinite ones are made large."""
        flat = _flat(table, None if self._sketch is None else self._sketch.chosen)
        if self._has_floats and np.isinf(flat).any():
            flat = np.nan_to_num(flat, nan=np.nan, posinf=1e9, neginf=-1e9)
        return flat if self._sketch is None else self._sketch(flat)

    def names(self, env: Any) -> tuple[str, ...]:
        """Names of the numbers that `states` gives for observations of `env`; empty where they have none."""
        return () if self._sketch is not None else state_names(env, self._type)

    def is_broken(self, table: NDArray[Any], may_be_infinite: bool) -> NDArray[np.bool_]:
        """(m,) True where an observation has a NaN in it, or an infinite number unless that may be."""
        if not self._has_floats:
            return np.zeros(len(table), np.bool_)
        flat = _flat(table)
        return np.asarray((np.isnan(flat) if may_be_infinite else ~np.isfinite(flat)).any(axis=1))

    def is_outside(self, table: NDArray[Any]) -> NDArray[np.bool_]:
        """(m,) True where an observation is not in its space."""
        if hasattr(self._space, "low") and not self._is_record:
            axes = tuple(range(1, table.ndim))
            return np.asarray(((table < self._space.low) | (table > self._space.high)).any(axis=axes))
        return np.array([not self._space.contains(_as_observation(row, self._space)) for row in table])


class StepTable:
    """What m environments gave in one step."""

    def __init__(self, count: int, observations: ObservationTable, signals: Sequence[str]) -> None:
        self._table = observations
        self.observations = observations.empty(count)
        self.signals = np.zeros((count, len(signals)))
        self.rewards = np.zeros(count)
        self.errors: dict[int, EpisodeError] = {}

    def begin(self, row: int, observation: Any, info: dict[str, Any], info_keys: Sequence[str]) -> None:
        """Write what the reset of an environment gave into row `row`."""
        self.put(row, observation, 0.0, False, False, info, info_keys)

    def put(
        self,
        row: int,
        observation: Any,
        reward: Any,
        terminated: Any,
        truncated: Any,
        info: dict[str, Any],
        info_keys: Sequence[str],
    ) -> None:
        """Write what a step of an environment gave into row `row`."""
        self._table.put(self.observations, row, observation)
        self.rewards[row] = as_reward(reward)
        terminated, truncated = as_flag(terminated, "terminated"), as_flag(truncated, "truncated")
        if terminated or truncated:
            # a limit that is reached in the very step in which the episode ends by itself has cut nothing
            self.signals[row, 0], self.signals[row, 1] = terminated, not terminated
        for column, key in enumerate(info_keys, start=3):
            self.signals[row, column] = as_number((info or {}).get(key))

    def fail(self, row: int, error: EpisodeError) -> None:
        """Note that row `row` has ended in an `error`; its numbers mean nothing."""
        self.errors[row] = error
        self.rewards[row] = 0.0
        self.observations[row] = self._table.empty(1)[0]


def as_number(value: Any) -> float:
    """A value of `info` as a number, NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def as_flag(value: Any, name: str) -> bool:
    """`value`, which a step gave as `name`, if it is true or false: words and lists are neither."""
    if value is True or value is False:  # nearly always, at every step of every episode
        return value is True
    flag = np.asarray(value)
    if flag.ndim == 0 and (flag.dtype.kind == "b" or (flag.dtype.kind in "iu" and flag in (0, 1))):
        return bool(flag)
    raise ValueError(f"step gave {name} = {reprlib.repr(value)}, expected True or False")


def as_reward(value: Any) -> float:
    """`value`, which a step gave as reward, if it is one number; numpy would make one of a text, too."""
    if isinstance(value, float | int):
        return float(value)
    reward = np.asarray(value)
    if reward.size == 1 and reward.dtype.kind in "fiub":
        return float(reward.item())
    raise ValueError(f"step gave the reward {reprlib.repr(value)}, expected a number")


def _as_record(observation: Any, kind: np.dtype[Any]) -> Any:
    """`observation`, a mapping or sequence, as a value of the record type `kind`."""
    record = np.zeros((), kind)
    for position, (name, (wanted, *_)) in enumerate((kind.fields or {}).items()):
        part = observation[name] if isinstance(observation, dict) else observation[position]
        if wanted.names is not None:
            record[name] = _as_record(part, wanted)
        elif wanted.kind != "O" and np.shape(part) != wanted.shape:
            raise ValueError(f"{name} of an observation has shape {np.shape(part)}, not {wanted.shape}")
        else:
            record[name] = part
    return record


def _as_observation(row: Any, space: Any) -> Any:
    """One row of a table as the environment gave it."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return {name: _as_observation(row[name], part) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_as_observation(row[str(i)], part) for i, part in enumerate(space.spaces))
    return row


def _count(kind: np.dtype[Any]) -> int:
    """Numbers in one observation of the type."""
    if kind.names is not None and kind.fields is not None:
        return sum(_count(kind.fields[name][0]) for name in kind.names)
    return 0 if kind.base.kind == "O" else int(np.prod(kind.shape, dtype=np.int64))


def _has_floats(kind: np.dtype[Any]) -> bool:
    """True where an observation of the type can hold NaN."""
    if kind.names is not None and kind.fields is not None:
        return any(_has_floats(kind.fields[name][0]) for name in kind.names)
    return kind.base.kind == "f"


def _flat(table: NDArray[Any], chosen: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
    """(m, k) all numbers of the observations, or the `chosen` ones."""
    if table.dtype.names is not None:
        flat = np.concatenate([_flat(table[name]) for name in table.dtype.names], axis=1)
        return flat if chosen is None else flat[:, chosen]
    if table.dtype.kind == "O":
        return np.empty((len(table), 0))
    rows = table.reshape(len(table), -1)
    return (rows if chosen is None else rows[:, chosen]).astype(np.float64)


class _Sketch:
    """A fixed random sketch: every number is added to, or taken from, one of a few sums.

    It keeps distances about as they are, and unlike a matrix product it gives a row the same bits
    whatever the other rows are.
    """

    def __init__(self, numbers: int) -> None:
        self.size = _MAX_STATE_NUMBERS // 2
        rng = np.random.default_rng(numbers)
        self.chosen = rng.permutation(numbers)[:_MAX_SKETCHED]
        count = len(self.chosen)
        self._signs = rng.choice([-1.0, 1.0], count)
        self._starts = np.linspace(0, count, self.size, endpoint=False).astype(np.int64)
        self._scale = np.sqrt(self.size / count)

    def __call__(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """(m, size) of the `chosen` numbers `flat` (m, k)."""
        return np.asarray(np.add.reduceat(flat * self._signs, self._starts, axis=1) * self._scale)
