"""Two-aircraft encounters: what an input means, how the aircraft fly, and the vectorised simulator.

Feet, seconds, radians; angles are counter-clockwise from the x axis. The ownship starts at the
origin and heads along +y. The intruder flies straight, at the speed that makes both tracks meet.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.compiled import kernel
from policyfuzz.core.inputs import wrap_angle
from policyfuzz.core.interfaces import Frame

STEP_SECONDS = 0.1
STEPS = 100
COLLISION_FEET = 200.0
RANGE_FEET = (1000.0, 60261.0)
OWN_SPEED = (10.0, 1100.0)
INTRUDER_SPEED = (0.0, 1200.0)  #: as in the public code; the paper says 1,100
NORTH = np.pi / 2

ADVISORIES = ("clear of conflict", "weak left", "weak right", "strong left", "strong right")
#: Turn per step of each advisory, in radians; left is positive.
TURNS = np.deg2rad(np.array([0.0, 1.5, -1.5, 3.0, -3.0])) * STEP_SECONDS
_TURN_COS, _TURN_SIN = np.cos(TURNS), np.sin(TURNS)

#: What the networks see is (value - centre) / span of range, bearing, relative heading and both speeds.
OBSERVATION_CENTRE = np.array([19791.091, 0.0, 0.0, 650.0, 600.0])
OBSERVATION_SPAN = np.array([60261.0, 2 * np.pi, 2 * np.pi, 1100.0, 1200.0])

#: Columns of the flight state (n, 11) that `fly` advances.
OWN_X, OWN_Y, OWN_DX, OWN_DY, OWN_HEADING, OWN_V, INT_X, INT_Y, INT_VX, INT_VY, INT_HEADING = range(11)

#: Longest avoiding turn of `is_solvable`: half a circle, after which the ownship flies back.
LONGEST_TURN = round(np.pi / abs(TURNS[3]))

_COLLISION_COST = 100.0
#: Of the return: r <- RETURN_DECAY · r + reward.
RETURN_DECAY = 0.99

#: The largest batch whose past is kept for pictures.
_FILMED = 8


class EncounterSimulator:
    """n encounters flown at once; actions are advisories 0-4."""

    signals: ClassVar[tuple[str, ...]] = ("range",)
    #: Of what the networks see: ranges and speeds come in their own scale, angles in turns.
    state_names: ClassVar[tuple[str, ...]] = (
        "range [scaled]",
        "bearing of the intruder [turns to the left]",
        "relative heading of the intruder [turns]",
        "own speed [scaled]",
        "intruder speed [scaled]",
    )
    capacity: ClassVar[int | None] = None

    def __init__(self) -> None:
        self.flights = np.empty((0, 11))  #: (n, 11) see the columns above
        self._intruder_speeds = np.empty(0)
        #: For pictures: flights (n, 11) up to now and the advisories between them, of small batches only.
        self._flown: list[NDArray[np.float64]] = []
        self._advised: list[NDArray[np.int64]] = []

    def reset(self, inputs: NDArray[np.float64], seeds: NDArray[np.uint64]) -> Frame:
        self.flights = take_off(inputs)
        _, self._intruder_speeds = intruder_velocity(inputs)
        self._flown, self._advised = [self.flights.copy()], []
        return self._frame(np.arange(len(inputs)), is_start=True)

    def step(self, actions: NDArray[Any], rows: NDArray[np.int64]) -> Frame:
        fly(self.flights, rows, actions)
        if len(self.flights) <= _FILMED:
            self._flown.append(self.flights.copy())
            self._advised.append(np.zeros(len(self.flights), np.int64))
            self._advised[-1][rows] = actions
        return self._frame(rows)

    def render(self, row: int) -> NDArray[np.uint8]:
        """A picture (640, 640, 3) of encounter `row`; in large batches without its past."""
        from policyfuzz.targets.acasxu.picture import View, draw_encounter_now

        if len(self.flights) > _FILMED:
            return draw_encounter_now(View(self._flown[0][row]), [self.flights[row]], [])
        flights = [flights[row] for flights in self._flown]
        return draw_encounter_now(View(flights[0]), flights, [int(given[row]) for given in self._advised])

    def _frame(self, rows: NDArray[np.int64], is_start: bool = False) -> Frame:
        observations, ranges = np.empty((len(rows), 5)), np.empty(len(rows))
        observe(self.flights, self._intruder_speeds, rows, observations, ranges)
        return Frame(
            observations=observations,
            states=observations,
            signals=ranges[:, None],
            rewards=np.zeros(len(rows)) if is_start else reward(ranges),
            ended=np.zeros(len(rows), np.bool_),
        )


def intruder_velocity(
    inputs: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Heading and speed (n,) of the intruder of each input row (own speed, x, y, intruder heading)."""
    own_speed, x, y, heading = inputs.T
    bearing = wrap_angle(np.arctan2(y, x) - NORTH)
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = own_speed * np.sin(bearing) / np.sin(bearing + NORTH - heading)
    speed = np.where(heading == NORTH, own_speed, speed)
    ahead_or_behind = np.where(y > 0, own_speed / 2, np.minimum(2 * own_speed, 1600.0))
    speed = np.where(x == 0, ahead_or_behind, speed)
    turned = speed < 0
    return np.where(turned, heading + np.pi, heading), np.abs(speed)


def is_valid(inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where the intruder's speed and the initial range are ones the system is made for."""
    _, speed = intruder_velocity(inputs)
    distance = np.hypot(inputs[:, 1], inputs[:, 2])
    return (
        (speed >= INTRUDER_SPEED[0])
        & (speed <= INTRUDER_SPEED[1])
        & (distance >= RANGE_FEET[0])
        & (distance <= RANGE_FEET[1])
    )


def sample(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """(count, 4) encounters as they are drawn in the literature; about 70 % of them are valid."""
    own_speed = rng.uniform(*OWN_SPEED, count)
    distance = rng.uniform(*RANGE_FEET, count)
    angle = rng.uniform(-np.pi, np.pi, count)
    return _encounters(own_speed, distance, angle, rng.uniform(0.0, 1.0, count))


def from_uniform(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 4) encounters as `sample` draws them, from uniform numbers (n, 4)."""
    low, high = np.array([OWN_SPEED, RANGE_FEET, (-np.pi, np.pi), (0.0, 1.0)]).T
    return _encounters(*(low + uniform * (high - low)).T)


def _encounters(
    own_speed: NDArray[np.float64],
    distance: NDArray[np.float64],
    angle: NDArray[np.float64],
    turned: NDArray[np.float64],
) -> NDArray[np.float64]:
    """(n, 4) inputs; the intruder's heading is `turned` (n,) by a share of the way towards the ownship."""
    bearing = wrap_angle(angle - NORTH)
    towards_ownship = bearing - np.copysign(np.pi, bearing)
    heading = NORTH + turned * towards_ownship
    return np.column_stack(
        [own_speed, distance * np.cos(angle), distance * np.sin(angle), wrap_angle(heading)]
    )


def reward(ranges: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) reward of a step that ends at `ranges` (n,)."""
    return ranges / RANGE_FEET[1] - _COLLISION_COST * (ranges < COLLISION_FEET)


def take_off(inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The flight state (n, 11) at the start of each encounter."""
    heading, speed = intruder_velocity(inputs)
    flights = np.zeros((len(inputs), 11))
    flights[:, OWN_DY] = 1.0
    flights[:, OWN_HEADING] = NORTH
    flights[:, OWN_V] = inputs[:, 0]
    flights[:, [INT_X, INT_Y]] = inputs[:, 1:3]
    flights[:, INT_VX] = speed * np.cos(heading)
    flights[:, INT_VY] = speed * np.sin(heading)
    flights[:, INT_HEADING] = heading
    return flights


@kernel
def _move(flight: NDArray[np.float64], turn: float, turn_cos: float, turn_sin: float) -> float:
    """Advance one flight state (11,) by one step; return the new range."""
    dx, dy = flight[OWN_DX], flight[OWN_DY]
    flight[OWN_DX] = dx * turn_cos - dy * turn_sin
    flight[OWN_DY] = dx * turn_sin + dy * turn_cos
    flight[OWN_HEADING] += turn
    flight[OWN_X] += flight[OWN_DX] * flight[OWN_V] * STEP_SECONDS
    flight[OWN_Y] += flight[OWN_DY] * flight[OWN_V] * STEP_SECONDS
    flight[INT_X] += flight[INT_VX] * STEP_SECONDS
    flight[INT_Y] += flight[INT_VY] * STEP_SECONDS
    return float(np.hypot(flight[INT_X] - flight[OWN_X], flight[INT_Y] - flight[OWN_Y]))


@kernel
def observe(
    flights: NDArray[np.float64],
    intruder_speeds: NDArray[np.float64],
    rows: NDArray[np.int64],
    observations: NDArray[np.float64],
    ranges: NDArray[np.float64],
) -> None:
    """Write what the networks see of flights `rows` into `observations` (m, 5), `ranges` (m,)."""
    for i in range(rows.shape[0]):
        flight = flights[rows[i]]
        east, north = flight[INT_X] - flight[OWN_X], flight[INT_Y] - flight[OWN_Y]
        ahead = east * flight[OWN_DX] + north * flight[OWN_DY]
        left = north * flight[OWN_DX] - east * flight[OWN_DY]
        ranges[i] = np.sqrt(east * east + north * north)
        heading = flight[INT_HEADING] - flight[OWN_HEADING]
        while heading > np.pi:
            heading -= 2 * np.pi
        while heading < -np.pi:
            heading += 2 * np.pi
        observations[i, 0] = (ranges[i] - OBSERVATION_CENTRE[0]) / OBSERVATION_SPAN[0]
        observations[i, 1] = np.arctan2(left, ahead) / OBSERVATION_SPAN[1]
        observations[i, 2] = heading / OBSERVATION_SPAN[2]
        observations[i, 3] = (flight[OWN_V] - OBSERVATION_CENTRE[3]) / OBSERVATION_SPAN[3]
        observations[i, 4] = (intruder_speeds[rows[i]] - OBSERVATION_CENTRE[4]) / OBSERVATION_SPAN[4]


@kernel
def fly(flights: NDArray[np.float64], rows: NDArray[np.int64], advisories: NDArray[np.int64]) -> None:
    """Advance flights `rows` (m,) in place by one step under `advisories` (m,)."""
    for i in range(rows.shape[0]):
        advisory = advisories[i]
        _move(flights[rows[i]], TURNS[advisory], _TURN_COS[advisory], _TURN_SIN[advisory])


@kernel
def _constant_turn_is_safe(flights: NDArray[np.float64], turn: float, safe: NDArray[np.bool_]) -> None:
    turn_cos, turn_sin = np.cos(turn), np.sin(turn)
    for i in range(flights.shape[0]):
        flight = flights[i]
        closest = np.inf
        for _ in range(STEPS):
            closest = min(closest, _move(flight, turn, turn_cos, turn_sin))
        safe[i] = closest >= COLLISION_FEET


def survives_turning(inputs: NDArray[np.float64], advisory: int) -> NDArray[np.bool_]:
    """(n,) True where following `advisory` throughout keeps the aircraft apart."""
    safe = np.empty(len(inputs), np.bool_)
    _constant_turn_is_safe(take_off(inputs), TURNS[advisory], safe)
    return safe


def is_solvable_in_paper(inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where turning hard to one side avoids the collision for as long as the episode lasts."""
    return survives_turning(inputs, 3) | survives_turning(inputs, 4)


def is_solvable(inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """(n,) True where a hard turn to one side, and then flying straight on, avoids the collision for good.

    The turn lasts as long as it has to, up to `LONGEST_TURN` steps; the range is at least 200 ft at every
    step of it and of all the time after, whatever the horizon is.
    """
    solvable = np.empty(len(inputs), np.bool_)
    _can_turn_away(take_off(inputs), solvable)
    return solvable


@kernel
def _can_turn_away(flights: NDArray[np.float64], can: NDArray[np.bool_]) -> None:
    flight = np.empty(flights.shape[1])
    for i in range(flights.shape[0]):
        can[i] = False
        for advisory in (3, 4):
            if not can[i]:
                flight[:] = flights[i]
                can[i] = _turns_away(flight, advisory)


@kernel
def _turns_away(flight: NDArray[np.float64], advisory: int) -> bool:
    """True if `flight` (11,), which is changed, can leave some turn under `advisory` and fly straight on."""
    distance = np.hypot(flight[INT_X] - flight[OWN_X], flight[INT_Y] - flight[OWN_Y])
    for _ in range(LONGEST_TURN + 1):
        if distance < COLLISION_FEET:
            return False
        if _closest_if_straight(flight) >= COLLISION_FEET:
            return True
        distance = _move(flight, TURNS[advisory], _TURN_COS[advisory], _TURN_SIN[advisory])
    return False


@kernel
def _closest_if_straight(flight: NDArray[np.float64]) -> float:
    """The smallest range of all steps, now and for ever, if neither aircraft of `flight` (11,) turns."""
    x, y = flight[INT_X] - flight[OWN_X], flight[INT_Y] - flight[OWN_Y]
    by_x = (flight[INT_VX] - flight[OWN_DX] * flight[OWN_V]) * STEP_SECONDS
    by_y = (flight[INT_VY] - flight[OWN_DY] * flight[OWN_V]) * STEP_SECONDS
    square = by_x * by_x + by_y * by_y
    # the square of the range is a parabola over time, so of all steps the nearest to its vertex is lowest
    steps = max(0.0, np.round(-(x * by_x + y * by_y) / square)) if square > 0.0 else 0.0
    return float(np.hypot(x + steps * by_x, y + steps * by_y))
