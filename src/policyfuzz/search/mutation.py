"""Mutation: ways to change inputs in the unit cube, for dimensions of every kind."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import Choice, InputSpace, Integer, Seed

Unit = NDArray[np.float64]

#: Shares of the dimensions that change, each as likely as the others; at least one dimension always does.
_CHANGED_SHARES = np.array([1.0, 0.5, 0.0])
#: Largest share of the values without an order that change at once.
_MOST_REDRAWN = 0.7
#: Small noise on inputs that are combined from others, so that every dimension keeps varying.
_SMALL_NOISE = 0.001
#: How far children go towards the neighbours of their parent, and how much that varies, as a logarithm.
_REACH = 0.7
#: Neighbours per dimension that give directions; and the share of them that each child combines.
_NEIGHBOURS, _COMBINED = 2, 0.5
#: Least noise on a whole number, as a share of the way to the next one.
_LEAST_SPREAD = 0.5


@dataclass(slots=True)
class Mutator:
    """Changes points of the unit cube. Coordinates are reflected at its walls, or wrap round."""

    space: InputSpace
    _wraps: NDArray[np.bool_] = field(init=False)  #: (d,)
    has_order: NDArray[np.bool_] = field(init=False)  #: (d,) False if close values have nothing in common
    _levels: NDArray[np.float64] = field(init=False)  #: (d,) number of values, infinite for real numbers

    def __post_init__(self) -> None:
        dimensions = self.space.dimensions
        self._wraps = self.space.periods > 0
        self.has_order = np.array([not isinstance(one, Choice | Seed) for one in dimensions])
        is_whole = [isinstance(one, Choice | Seed | Integer) for one in dimensions]
        levels = [float(one.high - one.low + 1) for one in dimensions]
        self._levels = np.where(is_whole, levels, np.inf)

    @property
    def is_discrete(self) -> bool:
        """True if no dimension is a real number, so that inputs may repeat."""
        return bool(np.isfinite(self._levels).all())

    def inputs(self, unit: Unit, parents: Unit, parent_inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inputs at `unit` (n, d); unchanged coordinates keep the exact values of the parents."""
        return np.where(unit == parents, parent_inputs, self.space.from_unit(unit))

    def settled(self, unit: Unit) -> Unit:
        """`unit` (n, d) where its inputs lie: a whole number has one place, however it was drawn."""
        return self.space.to_unit(self.space.from_unit(unit)) if np.isfinite(self._levels).any() else unit

    def jump(self, unit: Unit, scale: NDArray[np.float64], rng: np.random.Generator) -> Unit:
        """`unit` (n, d) with Gaussian noise of `scale` (n,) in some of its dimensions."""
        noise = rng.normal(size=unit.shape) * scale[:, None]
        steps = np.isfinite(self._levels)
        whole = np.sign(noise[:, steps]) * np.maximum(np.abs(noise[:, steps]), 1 / self._levels[steps])
        is_outside = np.abs(unit[:, steps] + whole - 0.5) > 0.5
        # at least one value on, and away from a wall, which would reflect it to where it was
        noise[:, steps] = np.where(is_outside, -whole, whole)
        changed = np.where(self._masks(len(unit), rng), unit + noise, unit)
        if not self.has_order.all():
            loose = np.flatnonzero(~self.has_order)
            changed[:, loose] = self._redrawn(unit[:, loose], scale, rng)
        return self.folded(changed)

    def around(
        self,
        centres: Unit,
        spread: Unit,
        parents: Unit,
        scale: NDArray[np.float64],
        rng: np.random.Generator,
    ) -> Unit:
        """`centres` (n, d) with Gaussian noise of `spread` (n, d).

        Values without an order come from `parents` (n, d), and are drawn again more often at a larger `scale`
        (n,). Whole numbers vary enough for the next one to be reached.
        """
        least = _LEAST_SPREAD / self._levels
        moved = centres + rng.normal(size=centres.shape) * np.maximum(spread, least)
        if not self.has_order.all():
            loose = np.flatnonzero(~self.has_order)
            moved[:, loose] = self._redrawn(parents[:, loose], scale, rng)
        return self.folded(moved)

    def cross(self, unit: Unit, first: Unit, second: Unit, rng: np.random.Generator) -> Unit:
        """`unit` (n, d) moved along the difference of two others (n, d), as in differential evolution."""
        step = self.apart(first, second) * rng.normal(size=(len(unit), 1)) / 2
        moved = unit + np.where(self._masks(len(unit), rng), step, 0.0)
        return self._combined(moved, unit, first, rng)

    def span(self, unit: Unit, others: Unit, rng: np.random.Generator) -> Unit:
        """`unit` (n, d) moved within the directions to the nearest of `others` (m, d).

        If the others lie on a thin sheet, so do the results, whatever its direction.
        """
        offsets = self.apart(others[None], unit[:, None])
        distances = (offsets**2).sum(axis=2)
        distances[distances == 0] = np.inf  # the point itself
        count = min(len(others), _NEIGHBOURS * unit.shape[1])
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        rows = np.arange(len(unit))[:, None]
        weights = rng.normal(size=nearest.shape) * (rng.random(nearest.shape) < _COMBINED)
        weights[np.isinf(distances[rows, nearest])] = 0.0
        weights /= np.sqrt(np.maximum(np.count_nonzero(weights, axis=1), 1))[:, None]
        weights *= _REACH * np.exp(_REACH * rng.normal(size=(len(unit), 1)))
        moved = unit + np.einsum("nk,nkd->nd", weights, offsets[rows, nearest])
        return self._combined(moved, unit, others[nearest[:, 0]], rng)

    def distances(self, unit: Unit, others: Unit) -> NDArray[np.float64]:
        """(n, m) squared distances between `unit` (n, d) and `others` (m, d)."""
        return np.asarray((self.apart(unit[:, None], others[None]) ** 2).sum(axis=2))

    def apart(self, first: Unit, second: Unit) -> Unit:
        """From `second` to `first`, the short way round where a coordinate wraps."""
        apart = first - second
        apart[..., self._wraps] = (apart[..., self._wraps] + 0.5) % 1.0 - 0.5
        return apart

    def folded(self, unit: Unit) -> Unit:
        """`unit`, reflected at the walls of the cube or wrapped round."""
        folded = np.where(self._wraps, unit % 1.0, 1 - np.abs(1 - unit % 2.0))
        return np.where((unit >= 0) & (unit <= 1), unit, folded)  # points inside keep their bits

    def _combined(self, moved: Unit, unit: Unit, mates: Unit, rng: np.random.Generator) -> Unit:
        """`moved` with small noise; values without an order come from either parent."""
        moved = moved + _SMALL_NOISE * rng.normal(size=moved.shape)
        taken = rng.random(moved.shape) < 0.5
        return self.folded(np.where(self.has_order, moved, np.where(taken, mates, unit)))

    def _masks(self, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
        """(n, d) True in the dimensions that change."""
        dimensions = len(self._wraps)
        mask = (
            rng.random((count, dimensions))
            < _CHANGED_SHARES[rng.integers(0, len(_CHANGED_SHARES), count)][:, None]
        )
        mask[np.arange(count), rng.integers(0, dimensions, count)] = True
        return np.asarray(mask)

    def _redrawn(self, values: Unit, scale: NDArray[np.float64], rng: np.random.Generator) -> Unit:
        """`values` (n, c) without an order, some of them drawn again: more at a larger `scale`."""
        rates = np.clip(2 * scale, 1 / len(self._wraps), _MOST_REDRAWN)
        chosen = rng.random(values.shape) < rates[:, None]
        if not self.has_order.any():  # nothing else would change
            still = np.flatnonzero(~chosen.any(axis=1))
            chosen[still, rng.integers(0, values.shape[1], len(still))] = True
        return np.where(chosen, rng.random(values.shape), values)
