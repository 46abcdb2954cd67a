"""Distinct findings of several campaigns on the same target, none of them counted twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.inputs import Angle, Choice, InputSpace, Integer, Real, Seed
from policyfuzz.inputs.dimensions import Dimension
from policyfuzz.search.distinct import Packing


@dataclass(frozen=True, slots=True)
class Found:
    """The distinct findings of one campaign."""

    inputs: NDArray[np.float64]  #: (n, d)
    radius: float  #: within which it calls no two of them distinct


def distinct_together(dimensions: Sequence[Sequence[Any]], found: Sequence[Found]) -> int:
    """How many of all that was `found` are distinct.

    `dimensions` are name, kind and range of each coordinate. Where campaigns have another idea of distinct,
    the largest radius counts. The campaign with the most comes first, so that it keeps all of its own.
    """
    space = InputSpace(tuple(_dimension(*one) for one in dimensions))
    packing = Packing(max((one.radius for one in found), default=1.0), space.periods)
    for one in sorted(found, key=lambda one: -len(one.inputs)):
        if len(one.inputs):
            packing.add(space.to_unit(one.inputs))
    return len(packing)


def _dimension(name: str, kind: str, low: float, high: float) -> Dimension:
    """A dimension that maps to the unit interval as the stored one does."""
    if kind == Angle.kind:
        return Angle(name)
    if kind == Choice.kind:
        return Choice(name, tuple(str(number) for number in range(int(high) + 1)))
    if kind == Integer.kind:
        return Integer(name, int(low), int(high))
    if kind == Seed.kind:
        return Seed(name, int(low), int(high))
    return Real(name, low, high)
