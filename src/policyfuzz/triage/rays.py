"""Rays: inputs in one direction from a finding, the nearest first, and which of them crash."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import Dimension, Inputs
from policyfuzz.triage.neighbourhood import Neighbourhood

#: Steps along a ray, as shares of the range: the smallest, the factor between two, and the one tried first.
_SMALLEST, _FACTOR, _FIRST = 1e-5, 1.2, 0.01
#: Kinds of dimensions whose values have no order.
WITHOUT_ORDER = ("choice", "seed")
#: Values of a dimension without order that are tried at most, where it has more.
_MOST_OPTIONS = 6


@dataclass(slots=True, eq=False)
class Ray:
    """m inputs in one direction from a finding. All of them may be tried."""

    inputs: Inputs  #: (m, d), the nearest first
    distances: NDArray[np.float64]  #: (m,) of the finding to them, in the unit cube
    dimensions: tuple[int, ...]  #: that differ from the finding
    is_ordered: bool = True  #: False: a step farther is no larger change
    first: float = _FIRST  #: distance that is tried first
    answers: dict[int, bool | None] = field(default_factory=dict)  #: position to whether it crashes

    @property
    def high(self) -> int | None:
        """Position of the nearest input known to pass."""
        return min((place for place, crashes in self.answers.items() if crashes is False), default=None)

    @property
    def low(self) -> int | None:
        """Position of the last input known to crash before one that passes; None for the finding itself."""
        if not self.is_ordered:
            return None
        end = len(self.inputs) if self.high is None else self.high
        return max(
            (place for place, crashes in self.answers.items() if crashes and place < end), default=None
        )

    @property
    def high_distance(self) -> float:
        """Distance of the nearest input known to pass; infinite without one."""
        return np.inf if self.high is None else float(self.distances[self.high])

    @property
    def low_distance(self) -> float:
        """Distance of the last input known to crash."""
        return 0.0 if self.low is None else float(self.distances[self.low])

    @property
    def following(self) -> int | None:
        """Position to try next; None if there is nothing more to learn here."""
        untried = [place for place in range(len(self.inputs)) if place not in self.answers]
        if not self.is_ordered:
            return untried[0] if untried and self.high is None else None
        if self.high is None:
            # a little, then as much as there is, then the middle: a crash at all three will hardly go away
            last = len(self.inputs) - 1
            start = int(np.searchsorted(self.distances, self.first))
            start = start if start < last else last // 2
            places = (start, last, (start + last) // 2)
            return next((place for place in places if place in untried), None)
        low = -1 if self.low is None else self.low
        between = [place for place in untried if low < place < self.high]
        return between[len(between) // 2] if between else None

    @property
    def is_hopeless(self) -> bool:
        """True if nothing on it passes, as far as anybody tries."""
        tried = sum(crashes is not None for crashes in self.answers.values())
        return self.high is None and self.following is None and tried >= min(2, len(self.inputs))

    def sharpened(self, around: Neighbourhood, steps: int) -> "Ray":
        """The part between the last crash and the first pass, in finer and even steps."""
        assert self.high is not None, "only what is between a crash and a pass can be sharpened"
        crashing = around.row if self.low is None else self.inputs[self.low]
        passing = self.inputs[self.high]
        shares = np.linspace(0.0, 1.0, steps + 1)[1:-1]
        inner = _between(crashing, passing, shares, around.space.dimensions)
        inner = inner[
            around.allowed(inner) & (inner != crashing).any(axis=1) & (inner != passing).any(axis=1)
        ]
        rows = np.vstack([crashing, _each_once(inner), passing])
        answers: dict[int, bool | None] = {0: True, len(rows) - 1: False}
        return replace(self, inputs=rows, distances=around.distances(rows), answers=answers)


def advance(around: Neighbourhood, rays: Sequence[Ray], keep: int) -> bool:
    """Try the next input of each of `rays`, the first ones first, and keep this many episodes.

    False if there was nothing to try.
    """
    pairs = [(ray, ray.following) for ray in rays]
    some = [(ray, place) for ray, place in pairs if place is not None][: max(around.left - keep, 0)]
    if not some:
        return False
    answers = around.crashes(np.array([ray.inputs[place] for ray, place in some]))
    for (ray, place), crashes in zip(some, answers, strict=True):
        ray.answers[place] = crashes
    return True


def axis_rays(around: Neighbourhood, place: int, rng: np.random.Generator) -> list[Ray]:
    """The rays along dimension number `place`: both ways, or through its other options."""
    dimension, value = around.space.dimensions[place], float(around.row[place])
    is_ordered = dimension.kind not in WITHOUT_ORDER
    if not is_ordered:
        ways = [_other_options(dimension, value, rng)]
    elif dimension.kind == "integer":
        rooms = ((-1, value - dimension.low), (1, dimension.high - value))
        ways = [value + sign * np.unique(np.round(_steps(room, 1.0))) for sign, room in rooms]
    else:
        unit = float(dimension.to_unit(np.array([value]))[0])
        rooms = ((-1, 0.5), (1, 0.5)) if dimension.is_periodic else ((-1, unit), (1, 1 - unit))
        ways = [dimension.from_unit(unit + sign * _steps(room, _SMALLEST)) for sign, room in rooms]
        if not dimension.is_periodic:  # rounding may lead beyond
            ways = [np.clip(values, dimension.low, dimension.high) for values in ways]
    rays = []
    for values in ways:
        rows = np.repeat(around.row[None], len(values), axis=0)
        rows[:, place] = values
        rays += _rays(around, rows, (place,), is_ordered)
    return rays


def ray_towards(around: Neighbourhood, other: NDArray[np.float64], smallest: float = _SMALLEST) -> list[Ray]:
    """The ray to `other` (d,), with steps from `smallest` on; none if nothing on it may be tried."""
    way = float(around.distances(other[None])[0])
    rows = _between(around.row, other, _steps(1.0, smallest / max(way, smallest)), around.space.dimensions)
    rows[-1] = other
    return _rays(around, rows, tuple(np.flatnonzero(around.row != other).tolist()), is_ordered=True)


def _rays(around: Neighbourhood, rows: Inputs, dimensions: tuple[int, ...], is_ordered: bool) -> list[Ray]:
    """The ray through those of `rows` (n, d) that may be tried and are not the finding, if there are any."""
    rows = _each_once(rows[around.allowed(rows) & (rows != around.row).any(axis=1)])
    return [Ray(rows, around.distances(rows), dimensions, is_ordered)] if len(rows) else []


def _between(
    start: NDArray[np.float64],
    end: NDArray[np.float64],
    shares: NDArray[np.float64],
    dimensions: tuple[Dimension, ...],
) -> Inputs:
    """Inputs (n, d) at `shares` (n,) of the way from `start` (d,) to `end` (d,), the short way round.

    Values that do not change are kept to the last bit.
    """
    columns = []
    for dimension, first, last in zip(dimensions, start, end, strict=True):
        if dimension.kind in WITHOUT_ORDER:  # there is nothing in between
            columns.append(np.where(shares < 0.5, first, last))
            continue
        unit, other = dimension.to_unit(np.array([first, last]))
        way = (other - unit + 0.5) % 1.0 - 0.5 if dimension.is_periodic else other - unit
        columns.append(np.where(first == last, first, dimension.from_unit(unit + shares * way)))
    return np.column_stack(columns)


def _each_once(rows: Inputs) -> Inputs:
    """`rows` in their order, without those that repeat an earlier one: whole numbers do along a line."""
    _, first = np.unique(rows, axis=0, return_index=True)
    return rows[np.sort(first)]


def _steps(reach: float, smallest: float) -> NDArray[np.float64]:
    """Steps from about `smallest` up to `reach`, each larger than the last by the same factor."""
    if reach <= 0:
        return np.empty(0)
    count = max(int(np.log(reach / smallest) / np.log(_FACTOR)), 0)
    return np.asarray(reach * _FACTOR ** np.arange(-count, 1.0))


def _other_options(dimension: Dimension, value: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Other values of a dimension without order, not too many."""
    count = int(dimension.high - dimension.low) + 1
    places = np.arange(count) if count <= _MOST_OPTIONS + 1 else rng.choice(count, _MOST_OPTIONS + 1, False)
    values = dimension.low + places.astype(np.float64)
    return np.asarray(values[values != value][:_MOST_OPTIONS])
