"""States to train on: all over the domain, and dense where a decision matters."""

from dataclasses import dataclass

import numpy as np

from acasxu.grid import FARTHEST_FEET
from acasxu.motion import TURN_RATES, Floats, Speeds, States, advance, wrap


@dataclass(frozen=True, slots=True)
class Mixture:
    """Shares of the kinds of states; the rest of them are collision courses of up to two minutes."""

    anywhere: float = 0.15  #: uniform in range and angles
    close_by: float = 0.15  #: uniform in angles and in the square root of the range
    soon: float = 0.5  #: collision courses of up to `soon_seconds`
    soon_seconds: float = 20.0
    later_seconds: float = 120.0
    miss_feet: float = 600.0  #: standard deviation of the closest approach
    turned_seconds: float = 6.0  #: collision courses are left by a turn of up to this long


def draw_states(rng: np.random.Generator, count: int, speeds: Speeds, mixture: Mixture) -> States:
    """`count` states of aircraft with these speeds, in random order."""
    kind = rng.choice(
        4,
        count,
        p=[
            mixture.anywhere,
            mixture.close_by,
            mixture.soon,
            1 - mixture.anywhere - mixture.close_by - mixture.soon,
        ],
    )
    share = rng.uniform(size=count)
    spread = _spread_out(rng, np.where(kind == 0, share, share**2) * FARTHEST_FEET)
    seconds = share * np.where(kind == 2, mixture.soon_seconds, mixture.later_seconds)
    courses = _collision_courses(rng, seconds, speeds, mixture)
    on_course = (kind >= 2) & (courses.distance < FARTHEST_FEET)
    return States(
        np.where(on_course, courses.distance, spread.distance),
        np.where(on_course, courses.bearing, spread.bearing),
        np.where(on_course, courses.heading, spread.heading),
    )


def _spread_out(rng: np.random.Generator, distance: Floats) -> States:
    return States(
        distance,
        rng.uniform(-np.pi, np.pi, len(distance)),
        rng.uniform(-np.pi, np.pi, len(distance)),
    )


def _collision_courses(rng: np.random.Generator, seconds: Floats, speeds: Speeds, mixture: Mixture) -> States:
    """States that straight flight brings close after `seconds` (n,), then left by a turn to either side."""
    count = len(seconds)
    heading = rng.uniform(-np.pi, np.pi, count)
    closing_ahead = speeds.intruder * np.cos(heading) - speeds.own
    closing_left = speeds.intruder * np.sin(heading)
    across = np.arctan2(closing_left, closing_ahead) + np.pi / 2
    miss = rng.normal(0.0, mixture.miss_feet, count)
    ahead = miss * np.cos(across) - seconds * closing_ahead
    left = miss * np.sin(across) - seconds * closing_left
    course = States(np.hypot(ahead, left), wrap(np.arctan2(left, ahead)), heading)
    # Half of the turns are of no length: what a network sees first is a straight course.
    turned = np.maximum(rng.uniform(-1.0, 1.0, count), 0.0) * mixture.turned_seconds
    rate = TURN_RATES[rng.integers(0, len(TURN_RATES), count)]
    return advance(course, speeds, rate, 0.0, turned)[0]
