"""One line of plain words about a failure mode, made only from what distinguishes it in the data."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import InputSpace
from policyfuzz.store.records import Finding
from policyfuzz.triage.descriptors import WINDOW, Descriptors

#: Share of the members that must be outside the band of passing episodes on the same side.
_MOST = 0.8
#: States and dimensions that are named at most.
_NAMED = 2
#: The range of a mode leaves out this share on either side.
_OUTLIERS = 0.05
#: A range distinguishes a mode if at least this share of the other findings lies outside it.
_ELSEWHERE = 0.75
#: Members from which ranges are told.
_ENOUGH = 5


def words_of(
    kind: str,
    members: Sequence[Finding],
    described: Descriptors,
    is_described: NDArray[np.bool_],
    state_names: Sequence[str],
    space: InputSpace,
    units: NDArray[np.float64],
    is_member: NDArray[np.bool_],
) -> str:
    """One line about `members` of one `kind`, compared with all other findings of that kind.

    `described` are those that were run again, `is_described` the ones among them that are of the mode;
    `units` (n, d) are all of them in the unit cube, `is_member` (n,) those of the mode.
    """
    parts = [f"{kind} {_when([one.crash_step for one in members])}"]
    if len(state_names) == described.sides.shape[2]:
        parts += _states_that_leave(described.sides, is_described, state_names)
        for state in _distinguishing(described.last, is_described):
            low, high = (_short(f"{value:.6g}") for value in _range(described.last[is_described][:, state]))
            parts.append(f"{state_names[state]} {_reach(low, high)} at the crash")
    for place in _distinguishing(units, is_member):
        dimension = space.dimensions[place]
        row = np.repeat(units[is_member][:1], 2, axis=0)
        row[:, place] = _range(units[is_member][:, place])
        low, high = (
            _short(dimension.describe(float(value))) for value in space.from_unit(row)[:, place].tolist()
        )
        parts.append(f"{dimension.name} {_reach(low, high)} {dimension.unit}".strip())
    return "; ".join(parts)


def _when(steps: Sequence[int]) -> str:
    if len(steps) < _ENOUGH:
        low, high = min(steps), max(steps)
    else:
        low, high = np.quantile(steps, [_OUTLIERS, 1 - _OUTLIERS], method="nearest").tolist()
    return f"at step {low}" if low == high else f"at steps {low} to {high}"


def _states_that_leave(
    sides: NDArray[np.int8], is_member: NDArray[np.bool_], names: Sequence[str]
) -> list[str]:
    """Which states leave the band of passing episodes first in most members, but not in most others."""
    found = []
    for state, name in enumerate(names):
        for side, word in ((-1, "below"), (1, "above")):
            is_out = sides[:, :, state] == side
            outside = is_out[is_member].mean(axis=0) >= _MOST
            is_common = not is_member.all() and is_out[~is_member, -1].mean() > 1 - _ELSEWHERE
            if outside[-1] and not is_common:
                since = WINDOW - 1 - int(np.flatnonzero(~outside).max(initial=-1))
                found.append((-since, state, f"{name.partition(' [')[0]} {word} the usual {_since(since)}"))
    return [text for _, _, text in sorted(found)[:_NAMED]]


def _since(steps: int) -> str:
    if steps >= WINDOW:
        return f"for the last {WINDOW} steps or longer"
    return "at the crash" if steps == 1 else f"for the last {steps} steps"


def _distinguishing(values: NDArray[np.float64], is_member: NDArray[np.bool_]) -> list[int]:
    """Columns of `values` (n, c) in which few other findings lie within the range of the members."""
    if is_member.all() or int(is_member.sum()) < _ENOUGH:
        return []
    low, high = np.array([_range(column) for column in values[is_member].T]).T
    others = values[~is_member]
    elsewhere = ((others < low) | (others > high)).mean(axis=0)
    order = np.argsort(-elsewhere, kind="stable")[:_NAMED]
    return [int(place) for place in order if elsewhere[place] >= _ELSEWHERE]


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    """What all but a few of `values` lie within."""
    low, high = np.quantile(values, [_OUTLIERS, 1 - _OUTLIERS], method="nearest").tolist()
    return low, high


def _reach(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _short(text: str) -> str:
    """A number with as many digits as a reader wants; other texts as they are."""
    try:
        value = float(text)
    except ValueError:
        return text
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
