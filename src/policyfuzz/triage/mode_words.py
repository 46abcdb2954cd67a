"""One line of plain words about a failure mode, made only from what distinguishes it in the data."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import InputSpace
from policyfuzz.store.records import Finding
from policyfuzz.triage.descriptors import WINDOW

#: Share of the members that must be outside the band of passing episodes on the same side.
_MOST = 0.8
#: States and dimensions that are named at most.
_NAMED = 2
#: The range of a mode leaves out this share on either side.
_OUTLIERS = 0.05
#: A mode is narrow in a dimension if its range is at most this share of that of all findings.
_NARROW = 1 / 3
#: Members from which ranges are told.
_ENOUGH = 5


def words_of(
    kind: str,
    members: Sequence[Finding],
    sides: NDArray[np.int8],
    state_names: Sequence[str],
    space: InputSpace,
    units: NDArray[np.float64],
    is_member: NDArray[np.bool_],
) -> str:
    """One line about `members` of one `kind`, with `sides` (m, WINDOW, k) of those that were run again.

    `units` (n, d) are all findings of that kind in the unit cube, `is_member` (n,) those of the mode.
    """
    parts = [f"{kind} {_when([one.crash_step for one in members])}"]
    parts += _states_that_leave(sides, state_names)
    if not is_member.all() and len(members) >= _ENOUGH:
        parts += _narrow_dimensions(space, units, is_member)
    return "; ".join(parts)


def _when(steps: Sequence[int]) -> str:
    if len(steps) < _ENOUGH:
        low, high = min(steps), max(steps)
    else:
        low, high = np.quantile(steps, [_OUTLIERS, 1 - _OUTLIERS], method="nearest").tolist()
    return f"at step {low}" if low == high else f"at steps {low} to {high}"


def _states_that_leave(sides: NDArray[np.int8], names: Sequence[str]) -> list[str]:
    """Which states leave the band of passing episodes first, and where to, in most members."""
    if len(names) != sides.shape[2] or not len(sides):
        return []
    found = []
    for state, name in enumerate(names):
        for side, word in ((-1, "below"), (1, "above")):
            outside = (sides[:, :, state] == side).mean(axis=0) >= _MOST
            if outside[-1]:
                since = WINDOW - 1 - int(np.flatnonzero(~outside).max(initial=-1))
                bare = name.partition(" [")[0]  # without its unit
                found.append((-since, state, f"{bare} {word} the usual", since))
    found.sort()
    return [f"{text} {_since(since)}" for _, _, text, since in found[:_NAMED]]


def _since(steps: int) -> str:
    if steps >= WINDOW:
        return f"for the last {WINDOW} steps or longer"
    return "at the crash" if steps == 1 else f"for the last {steps} steps"


def _narrow_dimensions(
    space: InputSpace, units: NDArray[np.float64], is_member: NDArray[np.bool_]
) -> list[str]:
    """In which dimensions the mode is narrow, compared with all findings of its kind."""
    ends = [_OUTLIERS, 1 - _OUTLIERS]
    low, high = np.quantile(units[is_member], ends, axis=0, method="nearest")
    widths = np.ptp(np.quantile(units, ends, axis=0, method="nearest"), axis=0)
    shares = np.divide(high - low, widths, out=np.ones_like(widths), where=widths > 0)
    values = [space.from_unit(row[None])[0] for row in (low, high)]
    narrow = [place for place in np.argsort(shares, kind="stable").tolist() if shares[place] <= _NARROW]
    texts = []
    for place in narrow[:_NAMED]:
        dimension = space.dimensions[place]
        first, last = (_short(dimension.describe(float(value[place]))) for value in values)
        reach = first if first == last else f"{first} to {last}"
        texts.append(f"{dimension.name} {reach} {dimension.unit}".strip())
    return texts


def _short(text: str) -> str:
    """A number with as many digits as a reader wants; other texts as they are."""
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
