"""How findings differ: what their episodes looked like, and which lie apart from all earlier ones."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.executions import Executions, concatenate
from policyfuzz.core.settings import DISTINCT_RADIUS
from policyfuzz.core.target import Run, Target
from policyfuzz.search.algorithm import Validator
from policyfuzz.search.behaviour import behaviour_of
from policyfuzz.search.distinct import DistinctFindings, DistinctSet

#: Random episodes that say how much behaviour varies, and the seed that they are drawn with.
_EPISODES, _SEED = 512, 20_240_229
#: Spread, relative to the size of the numbers, below which a coordinate counts as constant.
_CONSTANT = 1e-9
#: Standard deviations that no coordinate goes beyond, so that one that diverges stays a number.
_FARTHEST = 1e6


@dataclass(frozen=True, slots=True)
class Radii:
    """How near is the same."""

    close: float = 0.01  #: in the unit cube of inputs: of packings
    near: float = 0.05  #: in the unit cube: of packings, and of the failure mass that a finding covers
    far: float = 0.1  #: the same
    behaviour: float = 0.5  #: root mean square, in standard deviations of random episodes

    def describe(self) -> dict[str, float]:
        """As plain data."""
        return asdict(self)


RADII = Radii()


@dataclass(frozen=True, slots=True)
class Novelty:
    """(f,) True where a claim is a finding that lies apart from all earlier ones."""

    distinct: NDArray[np.bool_]  #: as campaigns count
    close: NDArray[np.bool_]  #: by its input, at `Radii.close`
    near: NDArray[np.bool_]  #: by its input, at `Radii.near`
    far: NDArray[np.bool_]  #: by its input, at `Radii.far`
    behaviour: NDArray[np.bool_]  #: by what the episode looked like


def novelty(
    unit: NDArray[np.float64],
    periods: NDArray[np.float64],
    behaviours: NDArray[np.float64],
    descriptors: NDArray[np.float64],
    found: NDArray[np.bool_],
    radii: Radii = RADII,
) -> Novelty:
    """Which claims are new, of those that are `found` (f,).

    They are at `unit` (f, d) with `periods` (d,), have `behaviours` (f, k) of whole episodes, and
    `descriptors` (f, q) of what led to the crash, as campaigns see it.
    """
    flat = np.zeros(max(behaviours.shape[1], 1))
    # where nothing about behaviour ever varies, all findings behave alike
    behaviours = behaviours if behaviours.shape[1] else np.zeros((len(unit), 1))
    return Novelty(
        distinct=_distinct(unit, periods, descriptors, found),
        close=_packed(unit, found, DistinctSet(radii.close, periods)),
        near=_packed(unit, found, DistinctSet(radii.near, periods)),
        far=_packed(unit, found, DistinctSet(radii.far, periods)),
        behaviour=_packed(behaviours, found, DistinctSet(radii.behaviour, flat)),
    )


def _distinct(
    unit: NDArray[np.float64],
    periods: NDArray[np.float64],
    descriptors: NDArray[np.float64],
    found: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """(f,) True where a campaign would call a claim distinct."""
    fits = np.zeros(len(unit), np.bool_)
    if found.any():
        fits[found] = DistinctFindings(DISTINCT_RADIUS, periods).add(unit[found], descriptors[found])
    return fits


def _packed(points: NDArray[np.float64], found: NDArray[np.bool_], packing: DistinctSet) -> NDArray[np.bool_]:
    fits = np.zeros(len(points), np.bool_)
    if found.any():
        fits[found] = packing.add(points[found])
    return fits


def random_episodes(target: Target, run: Run) -> Executions:
    """Episodes of random valid inputs, the same at every time, that say how much behaviour varies."""
    rng = np.random.default_rng(_SEED)
    validator = Validator(target.inputs, target.solvable)
    _, inputs = validator.fill(_EPISODES, lambda n: (np.full(n, -1), target.inputs.sample(rng, n)))
    seeds = rng.integers(0, 2**63, _EPISODES, dtype=np.uint64)
    starts = range(0, _EPISODES, target.batch_size)
    parts = [slice(start, start + target.batch_size) for start in starts]
    return concatenate([run(inputs[part], seeds[part]) for part in parts])


@dataclass(frozen=True, slots=True)
class BehaviourScale:
    """Turns behaviour into standard deviations of what random episodes do.

    Coordinates are divided by the root of their number as well, so that the Euclidean distance of two
    behaviours is the root of their mean squared difference, whatever the number of coordinates.
    """

    mean: NDArray[np.float64]  #: (2 k,)
    deviation: NDArray[np.float64]  #: (2 k,) 0 where random episodes are all alike

    @classmethod
    def of(cls, behaviours: NDArray[np.float64]) -> "BehaviourScale":
        """The scale in which `behaviours` (n, 2 k) have mean 0 and deviation 1."""
        mean, deviation = behaviours.mean(axis=0), behaviours.std(axis=0)
        is_constant = deviation <= _CONSTANT * np.maximum(1.0, np.abs(mean))
        return cls(mean, np.where(is_constant, 0.0, deviation))

    @property
    def size(self) -> int:
        """Coordinates that are not constant."""
        return int(np.count_nonzero(self.deviation))

    def __call__(self, executions: Executions) -> NDArray[np.float64]:
        """(n, size) behaviour of each episode in this scale."""
        behaviours = behaviour_of(executions)
        if behaviours.shape[1] != len(self.mean):  # no episode of these got as far as a state
            behaviours = np.broadcast_to(self.mean, (len(executions), len(self.mean)))
        varies = self.deviation > 0
        scaled = (behaviours - self.mean)[:, varies] / self.deviation[varies] / np.sqrt(max(self.size, 1))
        return np.asarray(np.clip(np.nan_to_num(scaled), -_FARTHEST, _FARTHEST))
