"""Relative motion of two aircraft at constant speeds, seen from the ownship.

Feet, seconds, radians. The ownship looks along its own x axis and left is positive: a state is the
range and bearing of the intruder and its heading relative to the ownship's.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Rates of turn of the five advisories: clear of conflict, weak left, weak right, strong left, strong right.
TURN_RATES = np.deg2rad(np.array([0.0, 1.5, -1.5, 3.0, -3.0]))
#: The advisory that the mirror image of an encounter calls for.
MIRRORED = np.array([0, 2, 1, 4, 3])


@dataclass(frozen=True, slots=True)
class States:
    """Relative positions, each field (n,)."""

    distance: Floats
    bearing: Floats
    heading: Floats

    def mirrored(self) -> "States":
        """The same encounters with left and right exchanged."""
        return States(self.distance, -self.bearing, -self.heading)


@dataclass(frozen=True, slots=True)
class Speeds:
    """Both aircraft's speeds in feet per second: numbers, or arrays (n,)."""

    own: float | Floats
    intruder: float | Floats


def arc(rate: float | Floats, seconds: float | Floats) -> tuple[Floats, Floats]:
    """Displacement (ahead, left) per unit of speed of a turn at `rate` for `seconds`."""
    angle = np.asarray(rate, np.float64) * seconds
    chord = seconds * np.sinc(angle / (2 * np.pi))
    return chord * np.cos(angle / 2), chord * np.sin(angle / 2)


def advance(
    states: States,
    speeds: Speeds,
    own_rate: float | Floats,
    intruder_rate: float | Floats,
    seconds: float | Floats,
) -> tuple[States, Floats]:
    """The states after turning for `seconds`, and the closest approach (n,) on the way there.

    The closest approach takes the relative path as a straight line, which for turns of a few degrees
    is right to about ten feet.
    """
    ahead = states.distance * np.cos(states.bearing)
    left = states.distance * np.sin(states.bearing)
    own_ahead, own_left = arc(own_rate, seconds)
    along, across = arc(intruder_rate, seconds)
    cosine, sine = np.cos(states.heading), np.sin(states.heading)
    move_ahead = speeds.intruder * (along * cosine - across * sine) - speeds.own * own_ahead
    move_left = speeds.intruder * (along * sine + across * cosine) - speeds.own * own_left
    closest = _closest_on_segment(ahead, left, move_ahead, move_left)
    ahead, left = ahead + move_ahead, left + move_left
    own_turn = np.asarray(own_rate) * seconds
    turn = np.asarray(intruder_rate) * seconds - own_turn
    return (
        States(np.hypot(ahead, left), wrap(np.arctan2(left, ahead) - own_turn), wrap(states.heading + turn)),
        closest,
    )


def wrap(angle: Floats) -> Floats:
    """`angle` (any shape) brought into [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def _closest_on_segment(x: Floats, y: Floats, dx: Floats, dy: Floats) -> Floats:
    """Smallest distance (n,) from the origin to the segments that start at (x, y) and span (dx, dy)."""
    length = np.maximum(dx * dx + dy * dy, 1e-9)
    share = np.clip(-(x * dx + y * dy) / length, 0.0, 1.0)
    return np.hypot(x + share * dx, y + share * dy)
