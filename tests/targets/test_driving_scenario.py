"""Inputs of the driving target: where they put vehicles, and which of them are fair. Needs no MetaDrive."""

import numpy as np
import pytest

from policyfuzz.targets.driving import scenario
from policyfuzz.targets.driving.roads import LANE_WIDTH, LANES, ROADS
from policyfuzz.targets.driving.scenario import clearances

EGO_LANE, EGO_SPEED = 1, 4
CAR1_LANE, CAR1_AHEAD, CAR1_SPEED = 5, 6, 9


def draw(count, seed=0):
    return scenario.INPUTS.sample(np.random.default_rng(seed), count)


def alone(**values):
    """Everyone at rest, the others far apart in the lanes beside the ego vehicle; then `values` by name."""
    row = np.zeros(len(scenario.DIMENSIONS))
    row[EGO_LANE] = 1
    for number in range(scenario.OTHERS):
        row[CAR1_LANE + 5 * number] = 2 * (number % 2)
        row[CAR1_AHEAD + 5 * number] = scenario.AHEAD[0] + 10 * number
    for name, value in values.items():
        row[scenario.INPUTS.names.index(name)] = value
    return row[None]


def test_noise_and_bounds_keep_columns_where_the_scene_reads_them():
    names = scenario.INPUTS.names
    assert names[EGO_LANE] == "ego_lane"
    assert names[EGO_SPEED] == "ego_speed"
    assert [names[i] for i in (CAR1_LANE, CAR1_AHEAD, CAR1_SPEED)] == [
        "car1_lane",
        "car1_ahead",
        "car1_speed",
    ]


def test_no_two_vehicles_of_a_valid_input_touch():
    inputs = draw(2000)
    valid = inputs[scenario.INPUTS.is_valid(inputs)]
    assert len(valid) > 200
    for placed in scenario.poses(valid):
        for number in range(len(placed) - 1):
            assert clearances(placed[number], placed[number + 1 :]).min() > 0.1


def test_vehicles_that_overlap_are_invalid():
    assert scenario.INPUTS.is_valid(alone())[0]
    assert not scenario.INPUTS.is_valid(alone(car1_lane=1, car1_ahead=3.0))[0]


def test_gap_that_is_wanted_grows_with_the_speed_difference():
    gap = scenario.VEHICLE_LENGTH + 4.0
    assert scenario.INPUTS.is_valid(alone(car1_lane=1, car1_ahead=gap, ego_speed=1.0))[0]
    assert not scenario.INPUTS.is_valid(alone(car1_lane=1, car1_ahead=gap, ego_speed=8.0))[0]
    assert scenario.INPUTS.is_valid(alone(car1_lane=1, car1_ahead=gap, ego_speed=8.0, car1_speed=8.0))[0]


def test_order_of_the_vehicles_does_not_matter():
    inputs = draw(500, seed=1)
    turned = inputs.copy()
    turned[:, 5:] = inputs[:, 5:].reshape(-1, scenario.OTHERS, 5)[:, ::-1].reshape(len(inputs), -1)
    np.testing.assert_array_equal(scenario.is_valid(turned), scenario.is_valid(inputs))
    np.testing.assert_array_equal(scenario.is_solvable(turned), scenario.is_solvable(inputs))


def test_start_from_which_brakes_cannot_stop_is_not_solvable():
    speed = 12.0
    stop = speed * scenario.REACTION_SECONDS + float(scenario.stopping_distance(np.array(speed)))
    near, far = scenario.VEHICLE_LENGTH + stop, scenario.VEHICLE_LENGTH + stop + scenario.STANDSTILL_GAP
    assert not scenario.is_solvable(alone(car1_lane=1, car1_ahead=near, ego_speed=speed))[0]
    assert scenario.is_solvable(alone(car1_lane=1, car1_ahead=far, ego_speed=speed))[0]


def test_enough_of_the_nominal_draws_can_be_used():
    inputs = draw(4000, seed=2)
    usable = scenario.INPUTS.is_valid(inputs) & scenario.is_solvable(inputs)
    assert usable.mean() > 0.15


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.name)
def test_lanes_go_on_where_the_piece_before_ends(road):
    lanes = np.arange(LANES)
    for number in range(1, len(road.pieces)):
        joint = road.lengths[:number].sum(axis=0)
        before = road.poses(lanes, joint - 1e-9, np.zeros(LANES))
        after = road.poses(lanes, joint + 1e-9, np.zeros(LANES))
        np.testing.assert_allclose(before, after, atol=1e-6)


@pytest.mark.parametrize("road", ROADS, ids=lambda road: road.name)
def test_offsets_go_to_the_right_and_lanes_lie_beside_each_other(road):
    along = np.linspace(1.0, 150.0, 40)
    for lane in range(LANES - 1):
        lanes = np.full(40, lane)
        centre = road.poses(lanes, along, np.zeros(40))
        right = road.poses(lanes, along, np.full(40, LANE_WIDTH))
        shift = right[:, :2] - centre[:, :2]
        expected = LANE_WIDTH * np.column_stack([np.sin(centre[:, 2]), -np.cos(centre[:, 2])])
        np.testing.assert_allclose(shift, expected, atol=1e-9)
        number, into = road.locate(lanes, along)
        beside = road.lengths[:, lane + 1] / road.lengths[:, lane]
        begun = np.concatenate([[0.0], np.cumsum(road.lengths[:, lane + 1])])[number]
        neighbour = road.poses(lanes + 1, begun + into * beside[number], np.zeros(40))
        np.testing.assert_allclose(neighbour, right, atol=1e-9)
