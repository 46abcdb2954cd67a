"""Ripple: a swimmer flees from a wave. Which inputs crash is known exactly, in any dimension.

The input is a start in the unit cube. A stone falls at the nearest of some hidden centres, and its wave
spreads at constant speed; the policy swims straight away from it, a little too slowly. The wave gains
h / STEPS on the swimmer in each step, so exactly the starts within h of a centre (in the maximum norm over
the first ACTIVE_DIMENSIONS coordinates) are caught, at step ceil(STEPS · distance / h). Each region is a
box of probability (2 h)^a under uniform sampling, a the number of active coordinates.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Target, number

STEPS = 50
#: Further coordinates do not matter: a box of small probability in all of 50 would fill half the cube.
ACTIVE_DIMENSIONS = 10
#: Tries to place the regions apart from each other before giving up.
_PLACEMENTS = 10_000


@dataclass(frozen=True, slots=True)
class Pond:
    """Where the crash regions are."""

    centres: NDArray[np.float64]  #: (regions, a) in the active coordinates
    half_width: float  #: of every region, h

    @classmethod
    def make(cls, dimensions: int, regions: int, probability: float) -> "Pond":
        """Place `regions` disjoint regions of `probability` each; the same three give the same pond."""
        active = min(dimensions, ACTIVE_DIMENSIONS)
        half_width = probability ** (1 / active) / 2
        rng = np.random.default_rng([dimensions, regions])
        centres = np.empty((0, active))
        for _ in range(_PLACEMENTS):
            candidate = rng.uniform(half_width, 1 - half_width, active)
            if (np.abs(centres - candidate).max(axis=1) > 2 * half_width).all():
                centres = np.vstack([centres, candidate])
            if len(centres) == regions:
                return cls(centres, half_width)
        raise UsageError(
            f"{regions} regions of probability {probability:g} do not fit apart into {dimensions} dimensions",
            hint="ask for fewer or smaller regions",
        )

    def nearest(self, inputs: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Index (n,) of the nearest centre and distance (n,) to it, for `inputs` (n, d)."""
        active = inputs[:, None, : self.centres.shape[1]]
        distances = np.abs(active - self.centres).max(axis=2)
        return distances.argmin(axis=1), distances.min(axis=1)

    def crash_steps(self, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n,) step at which each start is caught, in closed form; infinite where it never is."""
        _, distances = self.nearest(inputs)
        steps = np.maximum(np.ceil(STEPS * distances / self.half_width), 1.0)
        return np.where(steps <= STEPS, steps, np.inf)


class RippleSimulator:
    """n swimmers; an action is a velocity in units of the wave's speed, at most one in each coordinate."""

    signals: ClassVar[tuple[str, ...]] = ("gap",)
    capacity: ClassVar[int | None] = None

    def __init__(self, pond: Pond) -> None:
        self._pond = pond
        self._gain = pond.half_width / STEPS
        self._wave_speed = 2 * self._gain
        self._positions = self._centres = np.empty((0, 0))
        self._step = 0

    @property
    def state_names(self) -> tuple[str, ...]:
        """A name for each number of a state; empty before the first reset."""
        return tuple(f"position {number}" for number in range(self._positions.shape[1]))

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self._positions = inputs.copy()
        nearest, _ = self._pond.nearest(inputs)
        self._centres = self._pond.centres[nearest]
        self._step = 0
        return self._frame(np.arange(len(inputs)))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        active = self._centres.shape[1]
        self._positions[rows, :active] += self._wave_speed * np.clip(actions, -1.0, 1.0)
        self._step += 1
        return self._frame(rows)

    def _frame(self, rows: NDArray[np.int64]) -> Frame:
        offsets = self._positions[rows, : self._centres.shape[1]] - self._centres[rows]
        gaps = np.abs(offsets).max(axis=1) - self._wave_speed * self._step
        caught = gaps < 0
        return Frame(
            observations=offsets,
            states=self._positions[rows],
            signals=gaps[:, None],
            rewards=gaps / STEPS - caught if self._step else np.zeros(len(rows)),
            ended=caught,
        )


class FleePolicy:
    """Swims straight away from the centre, at half the speed of the wave."""

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        distances = np.abs(observations).max(axis=1, keepdims=True)
        away = np.divide(observations, distances, out=np.ones_like(observations), where=distances > 0)
        return np.asarray(0.5 * away)


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options: dimensions, regions, probability."""
    if policy is not None:
        raise PolicyError(
            f"ripple cannot use policy {policy!r}", hint="its policy is part of the closed form"
        )
    dimensions = number(options, "dimensions", 4, int, 1, 10_000)
    regions = number(options, "regions", 1, int, 1, 100)
    probability = number(options, "probability", 1e-3, float, 1e-12, 0.5)
    pond = Pond.make(dimensions, regions, probability)
    text = ",".join(f"{key}={value}" for key, value in sorted(options.items()))
    return Target(
        name=f"ripple:{text}" if text else "ripple",
        inputs=InputSpace(tuple(Real(f"x{i}", 0.0, 1.0) for i in range(dimensions))),
        simulator=lambda: RippleSimulator(pond),
        policy=FleePolicy,
        oracle=Below("gap", 0.0, kind="caught"),
        horizon=STEPS,
        policy_name="flees at half the speed of the wave",
        solvable=lambda inputs: np.ones(len(inputs), np.bool_),
        actions=ActionSpace.box(-np.ones(pond.centres.shape[1]), np.ones(pond.centres.shape[1])),
        batch_size=256,
    )
