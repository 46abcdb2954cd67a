"""Which findings differ from all earlier ones: greedy packings in the order of discovery."""

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import InputSpace
from policyfuzz.search.distinct import Packing


@dataclass(frozen=True, slots=True)
class Radii:
    """How near is the same."""

    distinct: float = 0.01  #: in the unit cube of inputs
    apart: float = 0.05  #: in the unit cube, times the root of the number of dimensions
    behaviour: float = 0.5  #: root mean square, in standard deviations of random episodes

    def describe(self) -> dict[str, float]:
        """As plain data."""
        return asdict(self)


RADII = Radii()


@dataclass(frozen=True, slots=True)
class Novelty:
    """(f,) True where a claim is a finding that lies apart from all earlier ones."""

    distinct: NDArray[np.bool_]  #: by its input
    apart: NDArray[np.bool_]  #: far, by its input
    behaviour: NDArray[np.bool_]  #: by what the episode looked like


def novelty(
    space: InputSpace,
    inputs: NDArray[np.float64],
    behaviours: NDArray[np.float64],
    found: NDArray[np.bool_],
    radii: Radii = RADII,
) -> Novelty:
    """Which claims `inputs` (f, d) with `behaviours` (f, k), `found` (f,) where one counts, are new."""
    unit = np.zeros(inputs.shape)
    unit[found] = space.to_unit(inputs[found])
    periods, flat = space.periods, np.zeros(max(behaviours.shape[1], 1))
    # where nothing about behaviour ever varies, all findings behave alike
    behaviours = behaviours if behaviours.shape[1] else np.zeros((len(inputs), 1))
    return Novelty(
        distinct=_packed(unit, found, Packing(radii.distinct, periods)),
        apart=_packed(unit, found, Packing(radii.apart * math.sqrt(len(periods)), periods)),
        behaviour=_packed(behaviours, found, Packing(radii.behaviour, flat)),
    )


def _packed(points: NDArray[np.float64], found: NDArray[np.bool_], packing: Packing) -> NDArray[np.bool_]:
    fits = np.zeros(len(points), np.bool_)
    if found.any():
        fits[found] = packing.add(points[found])
    return fits
