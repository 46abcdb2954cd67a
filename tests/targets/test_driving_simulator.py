"""MetaDrive under our simulator: it starts where the input says, and forgets what ran before."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from policyfuzz import Runner, load_target
from policyfuzz.core.errors import UsageError
from policyfuzz.core.interfaces import Renders
from policyfuzz.core.rollout import rollout
from policyfuzz.targets.driving import scenario
from policyfuzz.targets.driving.roads import LANES, ROADS
from policyfuzz.targets.driving.scenario import clearances
from policyfuzz.targets.driving.simulator import DrivingSimulator

pytest.importorskip("metadrive")
pytestmark = pytest.mark.slow

ROW = np.zeros(1, np.int64)
SEED = np.zeros(1, np.uint64)
BRAKE, STRAIGHT_ON, HARD_LEFT = np.array([[0.0, -1.0]]), np.array([[0.0, 1.0]]), np.array([[0.6, 0.5]])


@pytest.fixture(scope="module")
def simulator():
    return DrivingSimulator()


@pytest.fixture(scope="module")
def target():
    return load_target("driving-rl:horizon=30")


@pytest.fixture(scope="module")
def inputs():
    """Valid and solvable inputs, the roads in turn."""
    drawn = scenario.INPUTS.sample(np.random.default_rng(7), 600)
    drawn[:, 0] = np.arange(600) % len(ROADS)
    kept = drawn[scenario.INPUTS.is_valid(drawn) & scenario.is_solvable(drawn)]
    return np.concatenate([kept[kept[:, 0] == road][:10] for road in range(len(ROADS))])


def alone(road=0, lane=1, **values):
    """The ego vehicle with all others behind it, in the other lanes or far away; then `values` by name."""
    row = np.zeros(len(scenario.DIMENSIONS))
    row[:2] = road, lane
    for number in range(scenario.OTHERS):
        row[5 + 5 * number] = (lane + 1 + number % 2) % LANES
        row[6 + 5 * number] = scenario.AHEAD[0] + 7.5 * (number // 2)
    for name, value in values.items():
        row[scenario.INPUTS.names.index(name)] = value
    assert scenario.INPUTS.is_valid(row[None])[0]
    return row


def run(simulator, row, action, steps):
    """Frames of an episode of input `row` under one action."""
    frames = [simulator.reset(row[None], SEED)]
    while len(frames) <= steps and not frames[-1].ended[0]:
        frames.append(simulator.step(action, ROW))
    return frames


def fingerprint(runner, rows):
    """Everything that episodes show, as bytes."""
    executions = runner(rows, np.zeros(len(rows), np.uint64))
    parts = (executions.returns, executions.lengths, executions.states, executions.verdicts.steps)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def test_vehicles_start_where_the_input_says(simulator, inputs):
    for row in inputs[::3]:
        simulator.reset(row[None], SEED)
        placed, expected = simulator.poses, scenario.poses(row[None])[0]
        turned = np.angle(np.exp(1j * (placed[:, 2] - expected[:, 2])))
        np.testing.assert_allclose(placed[:, :2], expected[:, :2], atol=1e-4)
        np.testing.assert_allclose(turned, 0.0, atol=1e-5)
        speeds = np.hypot(*simulator.environment.motion()[1].T)
        np.testing.assert_allclose(speeds, scenario.vehicles(row[None])[0, :, 4], atol=1e-4)


def test_nothing_touches_and_nothing_is_off_the_road_at_the_start(simulator, inputs):
    for row in inputs:
        frame = simulator.reset(row[None], SEED)
        assert frame.signals.min() >= 0
        for vehicle in simulator.environment.vehicles():
            vehicle._state_check()
            assert not vehicle.crash_vehicle
            assert not vehicle.crash_sidewalk
            assert vehicle.on_lane


@pytest.mark.parametrize("number", range(len(ROADS)))
def test_road_is_the_one_that_metadrive_builds(simulator, number):
    simulator.reset(alone(number)[None], SEED)
    road, graph = ROADS[number], simulator.environment.current_map.road_network.graph
    assert simulator.environment.agent.navigation.checkpoints == list(road.nodes[1:])
    lanes, begun = np.arange(LANES), np.zeros(LANES)
    for piece, (start, end) in enumerate(pairwise(road.nodes)):
        theirs = graph[start][end]
        np.testing.assert_allclose(road.lengths[piece], [lane.length for lane in theirs], atol=1e-9)
        ours = road.poses(lanes, begun + 3.0, np.full(LANES, 0.5))
        np.testing.assert_allclose(ours[:, :2], [lane.position(3.0, 0.5) for lane in theirs], atol=1e-6)
        begun += road.lengths[piece]


def test_episode_is_the_same_whatever_ran_before(target, inputs):
    runner = Runner(target)
    rows = inputs[::10]
    first = [fingerprint(runner, rows[[i]]) for i in range(len(rows))]
    runner(inputs[1::7], np.zeros(len(inputs[1::7]), np.uint64))
    again = [fingerprint(runner, rows[[i]]) for i in reversed(range(len(rows)))]
    assert first == again[::-1]


def test_episode_is_the_same_in_another_process(target, inputs):
    rows = inputs[5::10]
    code = f"""
import sys
from itertools import pairwise
import numpy as np
from policyfuzz import Runner, load_target
sys.path.insert(0, {str(__file__.rpartition("/")[0])!r})
from test_driving_simulator import fingerprint
rows = np.frombuffer(bytes.fromhex({rows.tobytes().hex()!r})).reshape({rows.shape})
print(fingerprint(Runner(load_target({target.name!r})), rows).hex())
"""
    runner = Runner(target)
    runner(inputs[:3], np.zeros(3, np.uint64))
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == fingerprint(runner, rows).hex()
    assert other.stderr == ""


def test_full_brakes_avoid_every_crash_from_a_solvable_start(simulator, inputs):
    for row in inputs:
        frames = run(simulator, row, BRAKE, 40)
        assert min(frame.signals.min() for frame in frames) >= 0
        assert not simulator.is_struck_from_behind


def test_driving_into_the_vehicle_ahead_is_a_collision(simulator):
    frames = run(simulator, alone(car1_lane=1, car1_ahead=20.0, ego_speed=12.0), STRAIGHT_ON, 60)
    assert frames[-1].ended[0]
    assert frames[-1].signals[0, 0] < 0 <= frames[-1].signals[0, 1]
    assert frames[-1].rewards[0] < -5


def test_return_falls_before_the_collision(simulator):
    frames = run(simulator, alone(car1_lane=1, car1_ahead=20.0, ego_speed=12.0), STRAIGHT_ON, 60)
    assert frames[-2].signals[0, 0] < 3.0
    free = run(simulator, alone(ego_speed=12.0), STRAIGHT_ON, len(frames) - 2)
    assert frames[-2].rewards[0] < free[-1].rewards[0] - 0.3


def test_a_faster_collision_is_a_deeper_one(simulator):
    depths = []
    for ahead, speed in ((12.0, 2.0), (20.0, 12.0)):
        frames = run(simulator, alone(car1_lane=1, car1_ahead=ahead, ego_speed=speed), STRAIGHT_ON, 80)
        depths.append(frames[-1].signals[0, 0])
    assert depths[1] < depths[0] - 1.0 < -2.0


@pytest.mark.parametrize("road", [0, 1])
def test_steering_off_the_road_is_the_other_kind_of_crash(simulator, road):
    frames = run(simulator, alone(road, lane=0, ego_speed=6.0), HARD_LEFT, 60)
    assert frames[-1].ended[0]
    assert frames[-1].signals[0, 1] < 0 <= frames[-1].signals[0, 0]


def test_oracle_tells_both_kinds(simulator, target):
    class Constant:
        def __init__(self, action):
            self.action = action

        def begin(self, count):
            pass

        def act(self, observations, rows):
            return self.action

    def kind(row, action):
        executions = rollout(simulator, Constant(action), target.oracle, row[None], SEED, horizon=60)
        return target.oracle.kinds[int(executions.verdicts.kinds[0])]

    assert kind(alone(car1_lane=1, car1_ahead=20.0, ego_speed=12.0), STRAIGHT_ON) == "collision"
    assert kind(alone(lane=0, ego_speed=6.0), HARD_LEFT) == "off-road"


def test_being_hit_from_behind_ends_the_episode_and_is_no_crash(simulator):
    row = alone(car1_lane=1, car1_ahead=-15.0)
    simulator.reset(row[None], SEED)
    rear = simulator.environment.vehicles()[1]
    rear.set_velocity(rear.heading, 15.0)
    rear.before_step = lambda action=None: None  # nobody at the pedals
    frames = [simulator.step(BRAKE, ROW)]
    while not frames[-1].ended[0]:
        frames.append(simulator.step(BRAKE, ROW))
        assert len(frames) < 60
    assert simulator.is_struck_from_behind
    assert frames[-1].signals.min() >= 0


def test_reaching_the_end_of_the_road_is_no_crash(simulator):
    row = alone()
    frame = simulator.reset(row[None], SEED)
    policy = load_target("driving-rl").policy()
    for _ in range(400):
        frame = simulator.step(policy.act(frame.observations, ROW), ROW)
        if frame.ended[0]:
            break
    assert frame.ended[0]
    assert frame.signals.min() >= 0
    assert simulator.poses[0, 0] > 290


def test_clearance_is_what_the_poses_say(simulator, inputs):
    frame = simulator.reset(inputs[:1], SEED)
    for _ in range(10):
        poses = simulator.poses
        assert frame.signals[0, 0] == clearances(poses[0], poses[1:]).min()
        frame = simulator.step(BRAKE, ROW)


def test_frame_has_the_shapes_that_the_target_promises(simulator, inputs):
    frame = simulator.reset(inputs[:1], SEED)
    assert frame.observations.shape == (1, 275)
    assert frame.states.shape == (1, 17)
    assert frame.signals.shape == (1, len(simulator.signals))
    assert simulator.capacity == 1


def test_episode_that_another_simulator_has_replaced_cannot_go_on(inputs):
    one, two = DrivingSimulator(), DrivingSimulator()
    one.reset(inputs[:1], SEED)
    two.reset(inputs[1:2], SEED)
    with pytest.raises(UsageError, match="another simulator"):
        one.step(BRAKE, ROW)


def test_pictures_follow_the_ego_vehicle_and_change_nothing(simulator, inputs):
    assert isinstance(simulator, Renders)
    row = inputs[13]
    plain = run(simulator, row, STRAIGHT_ON, 8)
    frame = simulator.reset(row[None], SEED)
    first = picture = simulator.render(0)
    for expected in plain[1:]:
        frame = simulator.step(STRAIGHT_ON, ROW)
        picture = simulator.render(0)
        np.testing.assert_array_equal(frame.observations, expected.observations)
        np.testing.assert_array_equal(frame.states, expected.states)
    assert first.shape == picture.shape == (640, 960, 3)
    assert picture.dtype == np.uint8
    assert picture[320, 480, 0] > 200 > picture[320, 480, 2]  # the ego vehicle is red and in the middle
    assert (first != picture).any()


@pytest.mark.parametrize("number", range(len(ROADS)))
def test_every_road_has_a_picture(simulator, number):
    simulator.reset(alone(number)[None], SEED)
    colours = np.unique(simulator.render(0).reshape(-1, 3), axis=0)
    assert len(colours) > 20
