"""A synthetic target whose failure modes are known: a boat on water with hidden currents.

The input is a start: its first ACTIVE coordinates decide, all others play no part. Every current rules the
water nearest to it, by its own measure of distance, and carries the boat in its own direction. A boat that
starts within distance 1 of its current is lost, the sooner the nearer it starts; others get away. Currents
are thin slanted ellipsoids, some of them much smaller than others.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.inputs import InputSpace, Real
from policyfuzz.core.interfaces import Frame
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Target

ACTIVE = 3
STEPS = 60
#: Longest to shortest axis of a current.
_AXES = np.array([3.0, 1.0, 1 / 3])
#: Distance by its own measure that each current keeps from points that others drown at.
_APART = 1.6
_PLACEMENTS = 20_000
#: Length of a step of the boat in the middle of a current.
_SPEED = 0.004
#: How far coordinates without a part wander at each step.
_WANDER = 0.01


@dataclass(frozen=True, slots=True)
class Water:
    """Where the currents are."""

    centres: NDArray[np.float64]  #: (m, ACTIVE)
    measures: NDArray[np.float64]  #: (m, ACTIVE, ACTIVE) maps an offset to one of length 1 at the edge
    flows: NDArray[np.float64]  #: (m, ACTIVE) directions

    @classmethod
    def make(cls, sizes: NDArray[np.float64], seed: int) -> "Water":
        """Currents that hold shares `sizes` (m,) of all starts, at random places apart from each other."""
        rng = np.random.default_rng([seed, len(sizes)])
        ball = _in_ball(rng, 200)
        water = cls(np.empty((0, ACTIVE)), np.empty((0, ACTIVE, ACTIVE)), np.empty((0, ACTIVE)))
        for size in sorted(sizes.tolist(), reverse=True):
            radius = (size / (4 / 3 * np.pi)) ** (1 / 3)
            for _ in range(_PLACEMENTS):
                turn, _ = np.linalg.qr(rng.normal(size=(ACTIVE, ACTIVE)))
                shape = turn @ np.diag(radius * _AXES)
                points = rng.random(ACTIVE) + ball @ shape.T
                measure = np.linalg.inv(shape)
                centre = points.mean(axis=0)
                inside = ((points >= 0) & (points <= 1)).all()
                if inside and water._is_apart(points) and cls._one(centre, measure)._is_apart(water.points()):
                    break
            else:
                raise ValueError(f"{len(sizes)} currents do not fit")
            flow = rng.normal(size=ACTIVE)
            water = cls(
                np.vstack([water.centres, centre]),
                np.concatenate([water.measures, measure[None]]),
                np.vstack([water.flows, flow / np.linalg.norm(flow)]),
            )
        return water

    @classmethod
    def _one(cls, centre: NDArray[np.float64], measure: NDArray[np.float64]) -> "Water":
        return cls(centre[None], measure[None], np.zeros((1, ACTIVE)))

    def points(self) -> NDArray[np.float64]:
        """(p, ACTIVE) points all over the currents."""
        ball = _in_ball(np.random.default_rng(0), 200)
        shapes = [np.linalg.inv(one) for one in self.measures]
        clouds = [centre + ball @ shape.T for centre, shape in zip(self.centres, shapes, strict=True)]
        return np.concatenate([np.empty((0, ACTIVE)), *clouds])

    def nearest(self, inputs: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Number (n,) of the current that rules each of `inputs` (n, d), and the distance (n,) from it."""
        offsets = inputs[:, None, :ACTIVE] - self.centres
        distances = np.sqrt((np.einsum("mij,nmj->nmi", self.measures, offsets) ** 2).sum(axis=2))
        return distances.argmin(axis=1), distances.min(axis=1)

    def _is_apart(self, points: NDArray[np.float64]) -> bool:
        return not len(self.centres) or not len(points) or bool((self.nearest(points)[1] > _APART).all())


class BoatSimulator:
    """n boats. They have no rudder: actions do nothing."""

    signals: ClassVar[tuple[str, ...]] = ("room",)
    capacity: ClassVar[int | None] = None

    def __init__(self, water: Water) -> None:
        self._water = water
        self._places = self._flows = np.empty((0, 0))
        self._distances = np.empty(0)
        self._step = 0

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self._places = inputs.copy()
        ruling, self._distances = self._water.nearest(inputs)
        self._flows = _SPEED * self._water.flows[ruling] / np.maximum(self._distances, 1.0)[:, None]
        self._step = 0
        return self._frame(np.arange(len(inputs)))

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        self._step += 1
        self._places[rows, :ACTIVE] += self._flows[rows]
        self._places[rows, ACTIVE:] += _WANDER * np.sin(self._step + 40 * self._places[rows, ACTIVE:])
        return self._frame(rows)

    def _frame(self, rows: NDArray[np.int64]) -> Frame:
        room = self._distances[rows] - self._step / STEPS
        return Frame(
            observations=self._places[rows],
            states=self._places[rows],
            signals=room[:, None],
            rewards=room / STEPS if self._step else np.zeros(len(rows)),
            ended=room < 0,
        )


class DriftPolicy:
    """Does nothing."""

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.zeros((len(rows), 1))


def planted_target(water: Water, idle: int = 0) -> Target:
    """The target, with so many `idle` coordinates that play no part."""
    dimensions = [Real(f"x{number}", 0.0, 1.0) for number in range(ACTIVE)]
    dimensions += [Real(f"idle{number}", 0.0, 1.0) for number in range(idle)]
    return Target(
        name="python:planted",
        inputs=InputSpace(tuple(dimensions)),
        simulator=lambda: BoatSimulator(water),
        policy=DriftPolicy,
        oracle=Below("room", 0.0, kind="lost"),
        horizon=STEPS,
        batch_size=256,
    )


def _in_ball(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """(count, ACTIVE) points of the ball of radius 1, those on its surface among them."""
    directions = rng.normal(size=(count, ACTIVE))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    radii = rng.random(count) ** (1 / 3)
    radii[: count // 2] = 1.0
    return np.asarray(directions * radii[:, None])
