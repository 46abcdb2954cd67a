"""Inputs and routes on a small town of our own, read by the real package without a server.

The town in CARLA's coordinates (y to the right of x): a road along the x axis, a junction behind its 200 m
where it goes on straight, turns left or turns right, a road of 100 m behind each exit, and a bend apart.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policyfuzz.core.errors import UsageError
from policyfuzz.targets.carla.roads import Command, RoadMap, plan
from policyfuzz.targets.carla.traffic import (
    HALF_LENGTH,
    HALF_WIDTH,
    all_apart,
    input_space,
    is_valid,
    overlap,
    poses_of,
    sample,
)

pytest.importorskip("carla", reason="needs the package carla")

some_examples = settings(max_examples=200, deadline=None, derandomize=True)
LANE = 3.5
RADIUS = 20.0
ARC = RADIUS * math.pi / 2


def lane(number):
    return (
        f'<lane id="{number}" type="driving" level="false">'
        f'<width sOffset="0" a="{LANE}" b="0" c="0" d="0"/></lane>'
    )


def road(number, start, length, *, bend=0.0, junction=-1, before="", after="", lanes=(1, -1)):
    """One road from `start` (x, y, heading; y to the left here); `bend` is its curvature."""
    x, y, heading = start
    shape = f'<arc curvature="{bend}"/>' if bend else "<line/>"
    left = "".join(lane(one) for one in lanes if one > 0)
    right = "".join(lane(one) for one in lanes if one < 0)
    return (
        f'<road name="" length="{length}" id="{number}" junction="{junction}"><link>{before}{after}</link>'
        f'<planView><geometry s="0" x="{x}" y="{y}" hdg="{heading}" length="{length}">{shape}</geometry>'
        f'</planView><lanes><laneSection s="0">{f"<left>{left}</left>" if left else ""}'
        f'<center><lane id="0" type="none" level="false"/></center><right>{right}</right>'
        "</laneSection></lanes></road>"
    )


def link(kind, element, number, contact=""):
    where = f' contactPoint="{contact}"' if contact else ""
    return f'<{kind} elementType="{element}" elementId="{number}"{where}/>'


def town_text():
    """Roads 1 (in), 2 straight, 3 right, 4 left behind junction 100, and 9, a bend far away."""
    quarter = math.pi / 2
    exits = {2: (220.0, 0.0, 0.0), 3: (220.0, -20.0, -quarter), 4: (220.0, 20.0, quarter)}
    bends = {2: 0.0, 3: -1 / RADIUS, 4: 1 / RADIUS}
    parts = [road(1, (0, 0, 0), 200.0, after=link("successor", "junction", 100))]
    connections = []
    for number, start in exits.items():
        ways = link("predecessor", "road", 1, "end"), link("successor", "road", number, "start")
        length = ARC if bends[number] else RADIUS
        parts.append(
            road(
                10 + number,
                (200, 0, 0),
                length,
                bend=bends[number],
                junction=100,
                before=ways[0],
                after=ways[1],
                lanes=(-1,),
            ).replace('type="driving" level="false">', 'type="driving" level="false">' + LANE_LINK)
        )
        parts.append(road(number, start, 100.0, before=link("predecessor", "junction", 100)))
        connections.append(
            f'<connection id="{number}" incomingRoad="1" connectingRoad="{10 + number}" contactPoint="start">'
            '<laneLink from="-1" to="-1"/></connection>'
        )
    parts.append(road(9, (0, 300, 0), ARC, bend=1 / RADIUS))
    junction = f'<junction id="100" name="">{"".join(connections)}</junction>'
    header = '<header revMajor="1" revMinor="4" name="" version="1" north="0" south="0" east="0" west="0"/>'
    return f'<?xml version="1.0"?><OpenDRIVE>{header}{"".join(parts)}{junction}</OpenDRIVE>'


LANE_LINK = '<link><predecessor id="-1"/><successor id="-1"/></link>'


@pytest.fixture(scope="module")
def town():
    return RoadMap.read("town", town_text())


def row(ego, *others, turn=1):
    """An input (1, d) of poses (x, y, yaw)."""
    return np.array([[*ego, turn, *(value for pose in others for value in pose)]], np.float64)


# on the first road: right lane at y = 1.75 towards +x, left lane at y = -1.75 towards -x
EGO = (50.0, 1.75, 0.0)


@pytest.mark.parametrize(
    ("pose", "valid"),
    [
        (EGO, True),
        ((50.0, -1.75, math.pi), True),
        ((50.0, -1.75, -math.pi), True),
        ((50.0, 3.4, 0.0), True),
        ((50.0, 3.6, 0.0), False),
        ((50.0, 20.0, 0.0), False),
        ((-2.0, 1.75, 0.0), False),
        ((50.0, -1.75, 0.0), False),
        ((50.0, 1.75, math.radians(29)), True),
        ((50.0, 1.75, math.radians(31)), False),
        ((50.0, 1.75, math.radians(-31)), False),
        ((210.0, 1.75, 0.0), False),
    ],
    ids=[
        "on its lane",
        "oncoming lane",
        "yaw the other way round",
        "at the edge of the lane",
        "beside the road",
        "far off the road",
        "behind the end of the road",
        "against the traffic",
        "a little askew",
        "too much askew",
        "too much askew to the left",
        "in the junction",
    ],
)
def test_a_car_must_stand_along_a_driving_lane_outside_junctions(town, pose, valid):
    assert is_valid(town, row(pose))[0] == valid
    assert is_valid(town, row((120.0, 1.75, 0.0), pose))[0] == valid


def test_a_car_may_stand_in_a_bend_along_its_lane_only(town):
    # half way round the bend: 45 degrees to the left, which is -45 in CARLA
    angle = math.pi / 4
    radius = RADIUS + LANE / 2
    x, y = radius * math.sin(angle), -300.0 - RADIUS + radius * math.cos(angle)
    assert is_valid(town, row((x, y, -angle)))[0]
    assert not is_valid(town, row((x, y, angle)))[0]


@pytest.mark.parametrize(
    ("other", "valid"),
    [
        ((50.0, 1.75, 0.0), False),
        ((54.9, 1.75, 0.0), False),
        ((55.5, 1.75, 0.0), True),
        ((50.0, -1.75, math.pi), True),
        ((44.5, 1.75, 0.0), True),
    ],
    ids=["same place", "bumper in bumper", "behind each other", "side by side", "the other way round"],
)
def test_cars_must_be_apart(town, other, valid):
    assert is_valid(town, row(EGO, other))[0] == valid
    assert is_valid(town, row((120.0, 1.75, 0.0), EGO, other))[0] == valid


def test_validity_of_a_row_does_not_depend_on_the_other_rows(town):
    good, bad = row(EGO, (70.0, 1.75, 0.0)), row(EGO, (51.0, 1.75, 0.0))
    np.testing.assert_array_equal(
        is_valid(town, np.vstack([good, bad, good, bad])), [True, False, True, False]
    )


def corners(pose):
    x, y, yaw = pose
    forward, right = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    signs = ((1, 1), (1, -1), (-1, -1), (-1, 1))
    return [np.array([x, y]) + a * HALF_LENGTH * forward + b * HALF_WIDTH * right for a, b in signs]


def is_inside(point, pose):
    offset = point - np.array(pose[:2])
    c, s = math.cos(pose[2]), math.sin(pose[2])
    along, across = offset[0] * c + offset[1] * s, offset[1] * c - offset[0] * s
    return abs(along) <= HALF_LENGTH and abs(across) <= HALF_WIDTH


def cross(first, second):
    return first[0] * second[1] - first[1] * second[0]


def edges_meet(first, second):
    (a, b), (c, d) = first, second
    return cross(b - a, c - a) * cross(b - a, d - a) < 0 and cross(d - c, a - c) * cross(d - c, b - c) < 0


def touch(one, two):
    """Whether two rectangles overlap, by their corners and edges."""
    first, second = corners(one), corners(two)
    edges = [[(c[i], c[i - 1]) for i in range(4)] for c in (first, second)]
    return (
        any(is_inside(point, two) for point in first)
        or any(is_inside(point, one) for point in second)
        or any(edges_meet(a, b) for a in edges[0] for b in edges[1])
    )


@some_examples
@given(st.integers(0, 2**32 - 1))
def test_overlap_agrees_with_corners_and_edges(seed):
    # poses at random: where rectangles just touch, rounding decides
    one, two = np.random.default_rng(seed).uniform([-4, -4, -3.2], [4, 4, 3.2], (2, 3))
    assert overlap(one, two) == overlap(two, one) == touch(one, two)


def test_a_car_overlaps_itself():
    assert overlap(np.array([3.0, -2.0, 0.7]), np.array([3.0, -2.0, 0.7]))


def test_cars_are_all_apart_when_every_pair_is():
    rng = np.random.default_rng(0)
    cars = rng.uniform([-12, -12, -3], [12, 12, 3], (200, 4, 3))
    expected = [not any(touch(c[i], c[j]) for i in range(4) for j in range(i)) for c in cars]
    np.testing.assert_array_equal(all_apart(cars), expected)
    assert 0.1 < np.mean(expected) < 0.9


def test_samples_are_valid_and_near_the_ego_vehicle(town):
    space = input_space(town, 10)
    inputs = space.sample(np.random.default_rng(0), 100)
    assert inputs.shape == (100, 34)
    assert space.is_valid(inputs).mean() > 0.9
    cars = poses_of(inputs)
    distances = np.hypot(*(cars[:, 1:, :2] - cars[:, :1, :2]).transpose(2, 0, 1))
    assert np.quantile(distances, 0.5) < 100
    assert {0.0, 1.0, 2.0} == set(inputs[:, 3])


def test_samples_cover_all_roads(town):
    inputs = input_space(town, 0).sample(np.random.default_rng(0), 300)
    roads = {town.map.get_waypoint(town.location(x, y)).road_id for x, y in inputs[:, :2].tolist()}
    assert roads == {1, 2, 3, 4, 9}


def test_the_same_generator_gives_the_same_samples_of_a_map_that_is_read_again(town):
    again = RoadMap.read("again", town_text())
    one, two = (sample(roads, 5, np.random.default_rng(3)) for roads in (town, again))
    np.testing.assert_array_equal(one, two)


def test_a_town_that_is_too_small_says_how_many_cars_fit(town):
    with pytest.raises(UsageError, match=r"no room for 250 vehicles.*: 1\d\d found some"):
        sample(town, 250, np.random.default_rng(0))


@pytest.mark.parametrize("vehicles", [0, 5, 40])
def test_mutants_of_mutants_are_often_valid(town, vehicles):
    space, rng = input_space(town, vehicles), np.random.default_rng(0)
    inputs = space.sample(rng, 20)
    inputs = inputs[space.is_valid(inputs)]
    for _ in range(4):
        mutants = space.perturb(np.tile(inputs, (5, 1)), rng)
        valid = space.is_valid(mutants)
        assert valid.mean() > 0.25
        inputs = mutants[valid][:20]


def test_mutation_changes_few_coordinates_by_about_a_metre_and_a_degree(town):
    space = input_space(town, 19)
    inputs = np.repeat(space.sample(np.random.default_rng(0), 1), 4000, axis=0)
    changes = space.perturb(inputs, np.random.default_rng(1)) - inputs
    moves = poses_of(changes)
    assert np.count_nonzero(moves, axis=(1, 2)).mean() == pytest.approx(6.0, abs=0.2)
    metres, turns = moves[..., :2], moves[..., 2]
    assert metres[metres != 0].std() == pytest.approx(1.0, abs=0.03)
    small = turns[np.abs(turns) < 1]
    assert np.degrees(small[small != 0]).std() == pytest.approx(1.0, abs=0.05)


def test_yaw_stays_within_half_a_turn_when_it_is_mutated(town):
    space = input_space(town, 0)
    inputs = np.tile([50.0, -1.75, np.pi - 1e-6, 1.0], (500, 1))
    yaw = space.perturb(inputs, np.random.default_rng(0))[:, 2]
    assert (np.abs(yaw) <= np.pi).all()
    assert (yaw < 0).any()


@pytest.mark.parametrize(
    ("turn", "command", "end"),
    [
        ("straight", Command.STRAIGHT, (320.0, 1.75)),
        ("right", Command.RIGHT, (218.25, 120.0)),
        ("left", Command.LEFT, (221.75, -120.0)),
    ],
)
def test_a_route_turns_as_wished_and_says_so(town, turn, command, end):
    route = plan(town, np.array([150.0, 1.75]), turn, 1000.0)
    np.testing.assert_allclose(route.nodes[-1], end, atol=2.5)
    in_junction = route.nodes[(route.commands != Command.FOLLOW_LANE)]
    assert set(route.commands) == {command, Command.FOLLOW_LANE}
    assert in_junction[0, 0] == pytest.approx(200, abs=2.5)
    assert len(in_junction) >= 8
    np.testing.assert_allclose(np.hypot(*np.diff(route.nodes, axis=0).T), 2.0, atol=0.4)


def test_a_route_ends_with_the_road(town):
    # against the x axis: the left lane ends at x = 0
    route = plan(town, np.array([50.0, -1.75]), "straight", 1000.0)
    assert route.nodes[-1][0] == pytest.approx(0.0, abs=2.5)
    assert route.length == pytest.approx(50.0, abs=2.5)


def test_a_route_is_as_long_as_asked_for(town):
    assert plan(town, np.array([10.0, 1.75]), "left", 60.0).length == pytest.approx(60.0, abs=0.1)


def test_progress_is_the_way_along_the_route(town):
    route = plan(town, np.array([150.0, 1.75]), "right", 200.0)
    mark = 0.0
    for metres in (0.0, 1.0, 13.0, 31.0, 49.0):
        mark = route.mark_of(np.array([150.0 + metres, 2.5]), mark)
        assert mark == pytest.approx(metres, abs=0.05)
    back = route.mark_of(np.array([196.0, 1.75]), mark)
    assert back == pytest.approx(46.0, abs=0.05)


def test_progress_does_not_jump_to_a_part_of_the_route_far_ahead(town):
    route = plan(town, np.array([150.0, 1.75]), "right", 400.0)
    far = route.nodes[-1]
    assert route.mark_of(far, 0.0) < 60.0


def test_the_node_ahead_is_five_metres_on_and_brings_its_command(town):
    route = plan(town, np.array([150.0, 1.75]), "right", 200.0)
    node, command = route.ahead(10.0)
    assert node[0] == pytest.approx(166.0, abs=0.1)
    assert command == Command.FOLLOW_LANE
    assert route.ahead(50.0)[1] == Command.RIGHT
    np.testing.assert_array_equal(route.ahead(1e9)[0], route.nodes[-1])


@pytest.mark.parametrize("text", ["", "no xml", "<OpenDRIVE></OpenDRIVE>"], ids=["empty", "text", "no roads"])
def test_a_text_that_is_no_map_is_refused(text):
    with pytest.raises(UsageError, match="map"):
        RoadMap.read("mine", text)
