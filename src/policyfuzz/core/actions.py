"""Actions as rows of numbers: what a target may do instead of what its policy does."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError

#: Of an action of several agents: which of them take part, and no number that anybody chooses.
_ALIVE = "alive"


@dataclass(frozen=True, slots=True)
class Macro:
    """An action that is worth holding for a while, such as a hard turn."""

    name: str  #: for a reader: "strong left"
    numbers: tuple[float, ...]  #: (a,) NaN where the policy's own number stays


@dataclass(frozen=True, slots=True)
class ActionSpace:
    """Actions of `a` numbers each, in the order in which the policy's own action lies in memory."""

    low: NDArray[np.float64]  #: (a,)
    high: NDArray[np.float64]  #: (a,)
    is_whole: NDArray[np.bool_]  #: (a,) True for numbers that stand for one of several choices
    macros: tuple[Macro, ...]  #: the simplest first
    names: tuple[str, ...] = field(default=())  #: of the numbers; empty if they have none

    def __post_init__(self) -> None:
        count = len(self.low)
        is_sound = (
            np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low <= self.high).all()
        )
        if not count or len(self.high) != count or len(self.is_whole) != count or not is_sound:
            raise UsageError(
                f"an action has bounds {self.low.tolist()} and {self.high.tolist()}",
                "give finite bounds for every number, low first",
            )
        if any(len(macro.numbers) != count for macro in self.macros) or len(self.names) not in (0, count):
            raise UsageError(f"a macro action or the names of actions do not have {count} numbers")

    @classmethod
    def choices(cls, names: Sequence[str], start: int = 0) -> "ActionSpace":
        """One of several choices, numbered from `start`."""
        macros = tuple(Macro(name, (float(start + number),)) for number, name in enumerate(names))
        low, high = np.array([float(start)]), np.array([float(start + len(names) - 1)])
        return cls(low, high, np.array([True]), macros)

    @classmethod
    def box(
        cls, low: NDArray[Any], high: NDArray[Any], names: Sequence[str] = (), whole: bool = False
    ) -> "ActionSpace":
        """Numbers between bounds (a,); its macros rest, and drive each number to either end."""
        bottom, top = np.ravel(low).astype(np.float64), np.ravel(high).astype(np.float64)
        rest = np.clip(0.0, bottom, top)
        rest = np.rint(rest) if whole else rest
        labels = tuple(names) or tuple(f"action {number}" for number in range(1, len(bottom) + 1))
        macros = [Macro("rest", tuple(rest.tolist()))]
        for number, label in enumerate(labels):
            for end, word in ((bottom, "low"), (top, "high")):
                numbers = rest.copy()
                numbers[number] = end[number]
                macros.append(Macro(f"{label} {word}", tuple(numbers.tolist())))
        if len(bottom) > 1:
            macros += [Macro("all low", tuple(bottom.tolist())), Macro("all high", tuple(top.tolist()))]
        return cls(bottom, top, np.full(len(bottom), whole), tuple(macros), tuple(names))

    @classmethod
    def joint(cls, parts: Sequence[tuple[str, "ActionSpace"]]) -> "ActionSpace":
        """The actions of several agents, one after another; a macro is that of one agent, or of all."""
        sizes = [len(space.low) for _, space in parts]
        starts = np.cumsum([0, *sizes]).tolist()
        macros: list[Macro] = []
        shared = [macro.name for macro in parts[0][1].macros]
        if len(parts) > 1 and all([one.name for one in space.macros] == shared for _, space in parts):
            for number, name in enumerate(shared):
                everyone = [value for _, space in parts for value in space.macros[number].numbers]
                macros.append(Macro(f"all: {name}", tuple(everyone)))
        for (who, space), start in zip(parts, starts, strict=False):
            for macro in space.macros:
                numbers = np.full(starts[-1], np.nan)
                numbers[start : start + len(space.low)] = macro.numbers
                macros.append(Macro(f"{who}: {macro.name}", tuple(numbers.tolist())))
        labels = tuple(
            f"{who} {name}" for who, space in parts for name in (space.names or _numbered(len(space.low)))
        )
        return cls(
            np.concatenate([space.low for _, space in parts]),
            np.concatenate([space.high for _, space in parts]),
            np.concatenate([space.is_whole for _, space in parts]),
            tuple(macros),
            labels,
        )

    def sample(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """(count, a) actions, uniform between the bounds."""
        drawn = self.low + rng.random((count, len(self.low))) * (self.high - self.low)
        choices = np.floor(self.low + rng.random(drawn.shape) * (self.high - self.low + 1))
        return np.where(self.is_whole, np.minimum(choices, self.high), drawn)

    def allowed(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """`numbers` (..., a) brought within the bounds, whole where they must be."""
        bounded = np.clip(numbers, self.low, self.high)
        return np.where(self.is_whole, np.rint(bounded), bounded)

    def added(self, own: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """`numbers` (..., a) on top of a policy's `own` (..., a), within the bounds.

        Choices go round in a circle, so that adding 1 to the last one gives the first, which is another.
        """
        count = np.where(self.is_whole, self.high - self.low + 1, 1.0)
        turned = self.low + np.mod(np.rint(own + numbers) - self.low, count)
        return np.where(self.is_whole, turned, np.clip(own + numbers, self.low, self.high))

    def nearest_macro(self, numbers: NDArray[np.float64]) -> Macro | None:
        """The macro that `numbers` (a,) are, or the nearest one; None if there are none."""
        span = np.where(self.high > self.low, self.high - self.low, 1.0)

        def distance(macro: Macro) -> float:
            return float(np.nansum(((np.array(macro.numbers) - numbers) / span) ** 2))

        return min(self.macros, key=distance, default=None)


def action_numbers(actions: NDArray[Any]) -> NDArray[np.float64]:
    """(m, a) the numbers of `actions` (m, ...), whatever their shape; of records, part after part."""
    if actions.dtype.names is not None:
        parts = [action_numbers(actions[name]) for name in actions.dtype.names if name != _ALIVE]
        return np.concatenate(parts, axis=1)
    return actions.reshape(len(actions), -1).astype(np.float64)


def with_numbers(actions: NDArray[Any], numbers: NDArray[np.float64]) -> NDArray[Any]:
    """`actions` (m, ...) with other `numbers` (m, a), in the same shape and type."""
    if actions.dtype.names is None:
        return numbers.reshape(actions.shape).astype(actions.dtype)
    changed, start = actions.copy(), 0
    for name in actions.dtype.names:
        if name != _ALIVE:
            width = action_numbers(actions[name]).shape[1]
            changed[name] = with_numbers(actions[name], numbers[:, start : start + width])
            start += width
    return changed


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, count + 1))
