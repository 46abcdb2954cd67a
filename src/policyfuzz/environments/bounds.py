"""Learns what the environment's own reset draws, and sets the bounds of the input by it.

`own` keeps every dimension within what reset draws. A factor scales these ranges about their centre, up to
the wide bounds of the family. `wide` are those bounds themselves.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UsageError
from policyfuzz.core.inputs import Choice, Dimension, Integer, Seed
from policyfuzz.core.own_reset import OwnRange, OwnReset, tidy
from policyfuzz.environments.changed_start import Change, changed
from policyfuzz.environments.find_start import InputChanges
from policyfuzz.environments.simulator import Watchdog
from policyfuzz.environments.starts import OptionsStart, Start, UsersStart

OWN, WIDE = "own", "wide"
#: Resets that show what is drawn; their seeds are fixed. Each bound that they show leaves out 1 in 200 draws.
RESETS = 200
#: Seconds for the resets of environments whose bounds do not depend on them, and for one without an answer.
_SECONDS, _PATIENCE_SECONDS = 0.3, 10.0
#: Factors that make sense: from a part of what reset draws to anything that is physically possible.
_SMALLEST, _LARGEST = 1e-3, 1e6


def learn_own_reset(start: Start, env: Any, is_needed: bool = False) -> OwnReset:
    """What resets of `env`, the innermost environment, draw of the input of `start`.

    What cannot be read is left out. Resets of environments that we do not know stop after a short time,
    unless all of them are needed.
    """
    dimensions = start.inputs.dimensions
    known: Mapping[str, tuple[float, float]] | None = getattr(start, "own_ranges", None)
    resets = 0
    if known is None:
        known = {one.name: (one.low, one.high) for one in dimensions if isinstance(one, Seed)}
        if len(known) < len(dimensions):
            is_known_kind = not isinstance(start, UsersStart | OptionsStart)
            drawn = _draw(start, env, math.inf if is_known_kind or is_needed else _SECONDS)
            resets = len(drawn)
            known = {**_ranges(dimensions, drawn), **known}
    ranges = {
        one.name: OwnRange(float(low), float(high), one.unit, float(one.high - one.low))
        for one in dimensions
        if one.name in known
        for low, high in (known[one.name],)
    }
    return OwnReset(ranges, resets=resets)


@dataclass(frozen=True, slots=True)
class BoundedStart:
    """A start whose bounds have been chosen."""

    start: Start
    own_reset: OwnReset
    note: str  #: for the user: which bounds they are


def bounded(
    start: Start, pending: Mapping[str, Change], env: Any, asked: InputChanges, text: str | None
) -> BoundedStart:
    """`start` of `env`, the innermost environment, within the bounds that `text` asks for.

    `text` is own, wide or a factor, None for what is usual in this kind of environment. `pending` changes are
    made as well, and dimensions that the user has `asked` for keep the bounds that he gave.
    """
    chosen = usual_bounds(start) if text is None else text
    factor = _factor(chosen)
    own = learn_own_reset(start, env, is_needed=text is not None)
    free = [one for one in start.inputs.dimensions if one.name not in asked.of_dimensions]
    moved = {} if factor is None else _moved(free, own, factor)
    if factor is not None and free and not any(one.name in own.ranges for one in free):
        raise UsageError(
            f"bounds is {chosen}, and what the environment's own reset draws cannot be read",
            "give bounds: --input NAME=LOW..HIGH",
        )
    if moved and not any(isinstance(change, tuple) for change in moved.values()) and len(moved) == len(free):
        raise UsageError(
            f"bounds is {chosen}, and the environment's own reset draws nothing of"
            f" {', '.join(moved)}: they never vary",
            "use --bounds wide, or vary what chance there is: --input seed",
        )
    made = changed(start, {**moved, **pending})
    fixed = {name: value for name, value in getattr(made, "fixed_values", {}).items() if name in own.ranges}
    return BoundedStart(made, OwnReset(own.ranges, fixed, own.resets), _note(chosen, own, start, moved))


def _moved(free: list[Dimension], own: OwnReset, factor: float) -> dict[str, Change]:
    """The bounds of the `free` dimensions, by name, of which the own range is known."""
    scaled = {one.name: _scaled(one, own.ranges[one.name], factor) for one in free if one.name in own.ranges}
    return {name: change for name, change in scaled.items() if change is not None}


def usual_bounds(start: Start) -> str:
    """The bounds that are used where nobody says: wide unless the family says otherwise."""
    return str(getattr(start, "usual_bounds", WIDE))


def _factor(text: str) -> float | None:
    """By what to scale the own ranges; None for wide bounds."""
    if text in (OWN, WIDE):
        return 1.0 if text == OWN else None
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not _SMALLEST <= factor <= _LARGEST:
        raise UsageError(
            f"bounds is {text!r}, expected own, wide or a factor such as 3",
            "bounds of one dimension are given by --input NAME=LOW..HIGH",
        )
    return factor


def _scaled(dimension: Dimension, own: OwnRange, factor: float) -> Change | None:
    """The bounds of `dimension` when its own range is scaled, or its one value; None: they stay."""
    if isinstance(dimension, Seed):
        return None  # reset takes any
    if own.is_constant:
        return dimension.options[int(own.low)] if isinstance(dimension, Choice) else own.low
    if isinstance(dimension, Choice):
        return None
    if factor == 1.0:
        return own.low, own.high
    centre, half = (own.low + own.high) / 2, factor * (own.high - own.low) / 2
    lowest, highest = min(dimension.low, own.low), max(dimension.high, own.high)
    low, high = max(tidy(centre - half, half), lowest), min(tidy(centre + half, half), highest)
    if isinstance(dimension, Integer):
        low, high = math.ceil(low), math.floor(high)
        return (low, high) if low <= high else float(round(centre))
    return low, high


def _note(chosen: str, own: OwnReset, start: Start, moved: Mapping[str, Change]) -> str:
    names = [one.name for one in start.inputs.dimensions if not isinstance(one, Seed)]
    unknown = [name for name in names if name not in own.ranges]
    constant = [name for name, change in moved.items() if not isinstance(change, tuple)]
    said = {
        OWN: "what the environment's own reset draws, each dimension by itself",
        WIDE: "wide, as far as the task makes sense",
    }.get(chosen, f"{chosen} times what the environment's own reset draws, and not beyond wide ones")
    parts = [f"bounds: {said}; --bounds own, wide or a factor changes them"]
    parts += [f"fixed, since reset never varies it: {_listed(constant)}"] if constant else []
    of_some = "" if len(unknown) == len(names) else f" of {_listed(unknown)}"
    parts += [f"what reset draws is not known{of_some}"] if unknown else []
    return "; ".join(parts)


def _listed(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 5 else f"{names[0]}, {names[1]} ... {names[-1]} ({len(names)})"


def _draw(start: Start, env: Any, seconds: float) -> NDArray[np.float64]:
    """(n, d) the inputs that n resets amount to; none where they cannot be read."""
    measure: Callable[[Any, int], NDArray[np.float64]]
    measure = getattr(start, "measure", None) or (lambda env, seed: _measured(start, env, seed))
    rows: list[NDArray[np.float64]] = []
    end = time.monotonic() + seconds
    try:
        with Watchdog(_PATIENCE_SECONDS) as watchdog:
            for seed in range(RESETS):
                rows.append(np.asarray(measure(env, seed), np.float64))
                watchdog.beats += 1
                if time.monotonic() > end:
                    break
        drawn = np.array(rows)
    except (Exception, SystemExit):  # whatever it is, episodes will show it
        return np.empty((0, len(start.inputs.dimensions)))
    is_readable = drawn.shape == (len(rows), len(start.inputs.dimensions))
    return drawn if is_readable else np.empty((0, len(start.inputs.dimensions)))


def _measured(start: Start, env: Any, seed: int) -> NDArray[np.float64]:
    env.reset(seed=seed)
    return start.read(env)


def _ranges(dimensions: tuple[Dimension, ...], drawn: NDArray[np.float64]) -> dict[str, tuple[float, float]]:
    """Lowest and highest of what was `drawn` (n, d), by dimension; without those never read as a number."""
    return {
        one.name: (float(column[known].min()), float(column[known].max()))
        for one, column, known in zip(dimensions, drawn.T, np.isfinite(drawn).T, strict=True)
        if known.any()
    }
