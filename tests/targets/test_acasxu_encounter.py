import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import UsageError
from policyfuzz.core.rollout import rollout
from policyfuzz.oracles import NONE, Below
from policyfuzz.targets.acasxu import encounter
from policyfuzz.targets.acasxu.encounter import EncounterSimulator
from policyfuzz.targets.registry import load_target

some_examples = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**32 - 1)

TURN_DEGREES_PER_SECOND = (0.0, 1.5, -1.5, 3.0, -3.0)
STRONG_LEFT, STRONG_RIGHT = 3, 4


def wrapped(angle):
    return math.atan2(math.sin(angle), math.cos(angle))


def scalar_intruder(own_speed, x, y, heading):
    """Heading and speed of the intruder of one input."""
    if x == 0:
        return heading, own_speed / 2 if y > 0 else min(2 * own_speed, 1600.0)
    if heading == math.pi / 2:
        return heading, own_speed
    bearing = math.atan2(y, x) - math.pi / 2
    speed = own_speed * math.sin(bearing) / math.sin(bearing + math.pi / 2 - heading)
    return (heading, speed) if speed >= 0 else (heading + math.pi, -speed)


def scalar_flight(row, advisories):
    """Observations (t, 5) in natural units of one encounter under a list of advisories, and its return."""
    own_speed, x, y, _ = row
    intruder_heading, intruder_speed = scalar_intruder(*row)
    own_x = own_y = total = 0.0
    own_heading = math.pi / 2

    def observe():
        east, north = x - own_x, y - own_y
        bearing = math.atan2(north, east) - own_heading
        return [
            math.hypot(east, north),
            wrapped(bearing),
            wrapped(intruder_heading - own_heading),
            own_speed,
            intruder_speed,
        ]

    seen = [observe()]
    for advisory in advisories:
        own_heading += math.radians(TURN_DEGREES_PER_SECOND[advisory]) * 0.1
        own_x += own_speed * math.cos(own_heading) * 0.1
        own_y += own_speed * math.sin(own_heading) * 0.1
        x += intruder_speed * math.cos(intruder_heading) * 0.1
        y += intruder_speed * math.sin(intruder_heading) * 0.1
        seen.append(observe())
        total = 0.99 * total + seen[-1][0] / 60261 - (100 if seen[-1][0] < 200 else 0)
    return np.array(seen), total


class Recited:
    """A policy that knows its advisories (n, t) in advance."""

    def __init__(self, advisories):
        self._advisories = advisories

    def begin(self, count):
        self._step = -1

    def act(self, observations, rows):
        self._step += 1
        return self._advisories[rows, self._step]


def fly(inputs, advisories):
    return rollout(
        EncounterSimulator(),
        Recited(advisories),
        Below("range", 200.0, kind="collision"),
        inputs,
        np.zeros(len(inputs), np.uint64),
        horizon=advisories.shape[1],
        decay=encounter.RETURN_DECAY,
    )


def natural(observations):
    """Observations of the networks back in feet, radians and feet per second."""
    return observations * [60261, 2 * np.pi, 2 * np.pi, 1100, 1200] + [19791.091, 0, 0, 650, 600]


def encounters(rng, count):
    """(count, 4) valid encounters, half of them close."""
    inputs = encounter.sample(rng, 4 * count)
    inputs[::2, 1:3] *= rng.uniform(0.02, 0.1, (2 * count, 1))
    return inputs[encounter.is_valid(inputs)][:count]


def assert_same_flight(row, advisories, states, episode_return):
    seen, total = scalar_flight(row, advisories)
    got = natural(states)
    np.testing.assert_allclose(got[:, [0, 3, 4]], seen[:, [0, 3, 4]], rtol=1e-9, atol=1e-5)
    turned = got[:, 1:3] - seen[:, 1:3]
    np.testing.assert_allclose(np.exp(1j * turned), 1.0, atol=1e-8)
    assert episode_return == pytest.approx(total, rel=1e-9, abs=1e-9)


@some_examples
@given(seeds)
def test_flight_equals_a_scalar_simulation(seed):
    rng = np.random.default_rng(seed)
    inputs, advisories = encounters(rng, 4), rng.integers(0, 5, (4, 100))
    executions = fly(inputs, advisories)
    for row in range(4):
        assert_same_flight(inputs[row], advisories[row], executions.states[row], executions.returns[row])


@pytest.mark.parametrize(
    "row",
    [
        (500.0, 0.0, 5000.0, -np.pi / 2),
        (500.0, 0.0, -5000.0, np.pi / 2),
        (1000.0, 0.0, -5000.0, 1.0),
        (500.0, 3000.0, 1000.0, np.pi / 2),
        (500.0, -3000.0, 1000.0, 0.3),
        (500.0, 3000.0, 1000.0, 0.3),
    ],
    ids=["ahead", "behind", "behind and fast", "parallel", "from the left", "turned round"],
)
def test_flight_equals_a_scalar_simulation_when_the_pose_is_special(row):
    advisories = np.random.default_rng(0).integers(0, 5, (1, 100))
    executions = fly(np.array([row]), advisories)
    assert_same_flight(row, advisories[0], executions.states[0], executions.returns[0])


@pytest.mark.parametrize(
    ("row", "speed"),
    [
        ((500.0, 0.0, 5000.0, 1.0), 250.0),
        ((500.0, 0.0, -5000.0, 1.0), 1000.0),
        ((1000.0, 0.0, -5000.0, 1.0), 1600.0),
        ((500.0, 3000.0, 1000.0, np.pi / 2), 500.0),
        # a right-angled triangle: both reach the point (0, 1000) at the same time
        ((500.0, 3000.0, 1000.0, np.pi), 1500.0),
        ((500.0, -3000.0, 1000.0, 0.0), 1500.0),
    ],
)
def test_intruder_has_the_speed_at_which_the_tracks_meet(row, speed):
    _, got = encounter.intruder_velocity(np.array([row]))
    assert got[0] == pytest.approx(speed)


@some_examples
@given(seeds)
def test_straight_tracks_meet_at_the_same_time(seed):
    inputs = encounters(np.random.default_rng(seed), 20)
    headings, speeds = encounter.intruder_velocity(inputs)
    own = np.column_stack([np.zeros(len(inputs)), inputs[:, 0]])
    intruder = speeds[:, None] * np.column_stack([np.cos(headings), np.sin(headings)])
    relative, start = intruder - own, inputs[:, 1:3]
    # the intruder comes straight on in the frame of the ownship (or goes straight away)
    cross = start[:, 0] * relative[:, 1] - start[:, 1] * relative[:, 0]
    scale = np.linalg.norm(start, axis=1) * np.maximum(np.linalg.norm(relative, axis=1), 1.0)
    np.testing.assert_allclose(cross / scale, 0.0, atol=1e-9)


@some_examples
@given(seeds)
def test_crash_is_the_first_step_below_two_hundred_feet(seed):
    rng = np.random.default_rng(seed)
    inputs, advisories = encounters(rng, 4), np.zeros((4, 100), np.int64)
    executions = fly(inputs, advisories)
    for row in range(4):
        ranges = scalar_flight(inputs[row], advisories[row])[0][:, 0]
        if np.abs(ranges - 200).min() > 1e-5:
            fallen = np.flatnonzero(ranges < 200)
            assert executions.verdicts.steps[row] == (fallen[0] if len(fallen) else NONE)


def solvable_of(name):
    """The test of solvability that the target called `name` uses."""
    solvable = load_target(name).solvable
    assert solvable is not None
    return solvable


def test_solvable_of_the_paper_agrees_with_flying_both_constant_turns():
    rng = np.random.default_rng(0)
    inputs = encounters(rng, 150)
    solvable = solvable_of("acasxu:solvable=paper")(inputs)
    for row, got in zip(inputs, solvable, strict=True):
        closest = [
            scalar_flight(row, [advisory] * 100)[0][1:, 0].min() for advisory in (STRONG_LEFT, STRONG_RIGHT)
        ]
        assert got == (max(closest) >= 200)
    assert 0.02 < 1 - solvable.mean() < 0.9  # both kinds were among them


def closest_range(row, side, turn_steps, steps=2000):
    """The smallest range of an encounter that begins with a hard turn, left for side 1 and right for -1."""
    own_speed, x, y, _ = row
    heading, speed = scalar_intruder(*row)
    number = np.arange(steps + 1)
    own_heading = math.pi / 2 + side * math.radians(0.3) * np.minimum(number, turn_steps)[1:]
    own_x = np.append(0.0, np.cumsum(0.1 * own_speed * np.cos(own_heading)))
    own_y = np.append(0.0, np.cumsum(0.1 * own_speed * np.sin(own_heading)))
    gone = 0.1 * speed * number
    return np.hypot(x + gone * math.cos(heading) - own_x, y + gone * math.sin(heading) - own_y).min()


@pytest.mark.parametrize("kind", ["avoidable", "delayed only", "unavoidable"])
def test_solvable_agrees_with_flying_every_turn_until_the_encounter_is_over(kind):
    inputs = encounters(np.random.default_rng(3), 8000)
    inputs = inputs[(inputs[:, 0] > 200) & (np.hypot(inputs[:, 1], inputs[:, 2]) < 10_000)]  # soon over
    for_good, within_the_episode = encounter.is_solvable(inputs), encounter.is_solvable_in_paper(inputs)
    chosen = {
        "avoidable": for_good,
        "delayed only": within_the_episode & ~for_good,
        "unavoidable": ~within_the_episode,
    }[kind]
    assert chosen.any()
    for row in inputs[chosen][:8]:
        turns = ((side, steps) for steps in range(601) for side in (1, -1))
        assert any(closest_range(row, *turn) >= 200 for turn in turns) == (kind == "avoidable")


def crossing(own_speed, seconds, intruder_speed):
    """The encounter with an intruder from the left that would meet a straight ownship after `seconds`."""
    return np.array([[own_speed, -intruder_speed * seconds, own_speed * seconds, 0.0]])


def furthest_from_meeting(own_speed, seconds):
    """Feet from where a straight ownship would be after `seconds` to where a hard turn takes it."""
    angle = math.radians(3.0) * seconds
    radius = own_speed / math.radians(3.0)
    return math.hypot(radius * (1 - math.cos(angle)), own_speed * seconds - radius * math.sin(angle))


@some_examples
@given(st.floats(10, 40), st.integers(120, 250), st.floats(300, 1200))
def test_a_turn_that_only_delays_the_collision_is_refused(own_speed, steps, intruder_speed):
    # however a slow aircraft turns, it is still near the place at which the intruder arrives
    assume(furthest_from_meeting(own_speed, steps / 10) < 190)
    row = crossing(own_speed, steps / 10, intruder_speed)
    assert encounter.is_solvable_in_paper(row)[0]  # nothing happens before the episode ends
    assert not encounter.is_solvable(row)[0]


@some_examples
@given(st.floats(100, 1100), st.integers(120, 400), st.floats(100, 1200))
def test_an_encounter_is_accepted_when_a_turn_leaves_time_and_room(own_speed, steps, intruder_speed):
    # by turning back, the ownship is far south of the intruder's track when that arrives
    assume(furthest_from_meeting(own_speed, steps / 10) > 3000)
    row = crossing(own_speed, steps / 10, intruder_speed)
    assume(encounter.is_valid(row)[0])
    assert encounter.is_solvable(row)[0]


def test_solvable_of_an_encounter_does_not_depend_on_its_neighbours():
    inputs = encounters(np.random.default_rng(4), 200)
    together = encounter.is_solvable(inputs)
    alone = [encounter.is_solvable(row[None])[0] for row in inputs]
    np.testing.assert_array_equal(together, alone)


def test_solvable_says_no_when_the_aircraft_are_too_near_at_once():
    assert not encounter.is_solvable(np.array([[500.0, 150.0, 0.0, np.pi / 2]]))[0]


def test_solvable_for_good_is_the_default_and_the_name_tells_the_other():
    target, papers = load_target("acasxu"), load_target("acasxu:solvable=paper,bucket=3")
    assert target.name == load_target("acasxu:solvable=lasting").name == "acasxu"
    assert papers.name == "acasxu:bucket=3,solvable=paper"
    row = crossing(10.0, 16.0, 1000.0)
    assert not solvable_of(target.name)(row)[0]
    assert solvable_of(papers.name)(row)[0]
    with pytest.raises(UsageError, match="lasting or paper"):
        load_target("acasxu:solvable=maybe")


@pytest.mark.parametrize("advisory", range(5))
def test_surviving_agrees_with_the_simulator_when_one_advisory_is_kept(advisory):
    inputs = encounters(np.random.default_rng(1), 150)
    executions = fly(inputs, np.full((150, 100), advisory))
    np.testing.assert_array_equal(encounter.survives_turning(inputs, advisory), ~executions.crashed)


def test_seventy_percent_of_samples_are_valid_and_solvable():
    inputs = encounter.sample(np.random.default_rng(0), 20_000)
    good = encounter.is_valid(inputs) & encounter.is_solvable(inputs)
    assert good.mean() == pytest.approx(0.703, abs=0.01)


def test_samples_have_the_ranges_of_the_literature():
    own_speed, x, y, heading = encounter.sample(np.random.default_rng(0), 5000).T
    distance = np.hypot(x, y)
    assert ((own_speed >= 10) & (own_speed <= 1100)).all()
    assert ((distance >= 1000 - 1e-6) & (distance <= 60261 + 1e-6)).all()
    assert (np.abs(heading) <= np.pi).all()
    assert np.median(distance) == pytest.approx(30_630, rel=0.03)


def test_sampled_headings_lie_between_north_and_straight_at_the_ownship():
    _, x, y, heading = encounter.sample(np.random.default_rng(0), 2000).T
    towards = np.exp(1j * (np.arctan2(-y, -x) - np.pi / 2))
    turned = np.exp(1j * (heading - np.pi / 2))
    same_side = np.sign(np.angle(turned)) == np.sign(np.angle(towards))
    assert same_side.all()
    assert (np.abs(np.angle(turned)) <= np.abs(np.angle(towards)) + 1e-9).all()


@pytest.mark.parametrize(
    ("row", "valid"),
    [
        ((500.0, 3000.0, 1000.0, np.pi / 2), True),
        ((500.0, 300.0, 100.0, np.pi / 2), False),
        ((500.0, 60_000.0, 10_000.0, np.pi / 2), False),
        ((500.0, 3000.0, 1000.0, np.pi), False),
        ((500.0, 0.0, -5000.0, 1.0), True),
        ((700.0, 0.0, -5000.0, 1.0), False),
    ],
    ids=["good", "too near", "too far", "intruder too fast", "behind", "behind and too fast"],
)
def test_validity_asks_for_a_range_and_an_intruder_speed_in_bounds(row, valid):
    assert encounter.is_valid(np.array([row]))[0] == valid


def test_an_input_is_invalid_when_the_tracks_never_meet():
    # heading along the line of sight: no speed makes the tracks meet
    row = np.array([[500.0, 3000.0, 3000.0, np.pi / 4]])
    assert not encounter.is_valid(row)[0]


def test_an_episode_is_bitwise_the_same_when_it_runs_alone():
    rng = np.random.default_rng(0)
    inputs, advisories = encounters(rng, 50), rng.integers(0, 5, (50, 100))
    together = fly(inputs, advisories)
    for row in range(0, 50, 9):
        alone = fly(inputs[row : row + 1], advisories[row : row + 1])
        assert alone.returns[0] == together.returns[row]
        np.testing.assert_array_equal(alone.states[0], together.states[row])
