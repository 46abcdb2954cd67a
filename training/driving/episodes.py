"""Episodes of the driving target, driven by one network while another says what it would have done."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policyfuzz.targets.driving import scenario
from policyfuzz.targets.driving.simulator import DrivingSimulator

#: (275,) observation to (2,) action.
Driver = Callable[[NDArray[np.float32]], NDArray[np.float64]]
SEED = np.zeros(1, np.uint64)
ROW = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class Episode:
    """What was seen, and how it ended."""

    observations: NDArray[np.float32]  #: (t, 275)
    outcome: str  #: arrived, survived, collision, off-road or struck (from behind)
    metres: float  #: driven along the road


def draw_inputs(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """(count, d) valid and solvable inputs from the nominal distribution of the target."""
    found = np.empty((0, len(scenario.DIMENSIONS)))
    while len(found) < count:
        drawn = scenario.INPUTS.sample(rng, 1000)
        drawn = drawn[scenario.INPUTS.is_valid(drawn)]
        found = np.concatenate([found, drawn[scenario.is_solvable(drawn)]])
    return found[:count]


def drive(simulator: DrivingSimulator, row: NDArray[np.float64], driver: Driver, horizon: int) -> Episode:
    """One episode of input `row` (d,), at most `horizon` steps."""
    frame = simulator.reset(row[None], SEED)
    observations, start = [], _driven(simulator)
    for _ in range(horizon):
        observations.append(frame.observations[0])
        frame = simulator.step(driver(frame.observations[0])[None], ROW)
        if frame.ended[0]:
            break
    outcome = _outcome(simulator, frame.signals[0], bool(frame.ended[0]))
    return Episode(np.array(observations), outcome, _driven(simulator) - start)


def _driven(simulator: DrivingSimulator) -> float:
    return float(simulator.environment.agent.navigation.travelled_length)


def _outcome(simulator: DrivingSimulator, signals: NDArray[np.float64], has_ended: bool) -> str:
    if signals[0] < 0:
        return "collision"
    if signals[1] < 0:
        return "off-road"
    if simulator.is_struck_from_behind:
        return "struck"
    return "arrived" if has_ended else "survived"
