"""The simulator against a server that is played by objects of this file.

It shows that our calls are calls that the real package has, in the order that we mean, and what we make of
the answers; it shows nothing about a real server. Geometry, controls, settings, commands and the map are the
real classes. The others cannot be made without a server: their stand-ins refuse every attribute that the
real class lacks, and every call that does not fit the signature compiled into the package.
"""

import gc
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from policyfuzz import Runner
from policyfuzz.campaign.engine import Campaign
from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.core.interfaces import Renders
from policyfuzz.core.rollout import rollout
from policyfuzz.core.settings import Budget, CampaignConfig, SearchSettings
from policyfuzz.core.target import Target
from policyfuzz.oracles import NONE, Below
from policyfuzz.store.reader import CampaignReader
from policyfuzz.store.writer import CampaignWriter
from policyfuzz.targets.carla.drive import STATE
from policyfuzz.targets.carla.roads import RoadMap
from policyfuzz.targets.carla.server import Server, ServerError, Settings
from policyfuzz.targets.carla.simulator import CarlaSimulator, FilmedCarlaSimulator
from policyfuzz.targets.carla.traffic import input_space

carla = pytest.importorskip("carla", reason="needs the package carla")

ROAD = """<?xml version="1.0"?><OpenDRIVE>
<header revMajor="1" revMinor="4" name="" version="1" north="0" south="0" east="0" west="0"/>
<road name="" length="400" id="1" junction="-1"><link/>
<planView><geometry s="0" x="0" y="0" hdg="0" length="400"><line/></geometry></planView>
<lanes><laneSection s="0"><center><lane id="0" type="none" level="false"/></center>
<right><lane id="-1" type="driving" level="false"><width sOffset="0" a="3.5" b="0" c="0" d="0"/></lane>
</right></laneSection></lanes></road></OpenDRIVE>"""

LANE_Y = 1.75
#: Acceleration at full throttle, and speed of the traffic, of the stand-in's very simple physics.
FULL_THROTTLE, TRAFFIC_SPEED = 4.0, 5.0
TICK = 0.1


def signatures(method):
    """[(required, optional)] of a compiled method: lists of (type, name) without the object itself."""
    found = []
    for line in re.findall(rf"^{method.__name__}\((.*)\) -> ", method.__doc__, re.MULTILINE):
        must, _, may = line.partition("[")
        required, optional = (re.findall(r"\((\w+)\)(\w+)", part) for part in (must, may))
        found.append((required[1:], optional))
    assert found, f"cannot read the signature of {method}"
    return found


def fits(value, kind):
    """Whether the package would take `value` where it asks for a `kind`."""
    if kind == "object":
        return True
    if isinstance(value, StandIn):
        return issubclass(value.real, getattr(carla, kind, ()))
    plain: dict[str, Any] = {"int": int, "bool": bool, "str": str, "float": (int, float), "list": list}
    wanted = plain.get(kind) or getattr(carla, kind)
    return isinstance(value, wanted) and not (kind in ("int", "float") and isinstance(value, bool))


def takes(signature, arguments, named):
    required, optional = signature
    names = [name for _, name in required + optional]
    if len(arguments) > len(names) or not set(named) <= set(names[len(arguments) :]):
        return False
    given = dict(zip(names, arguments, strict=False)) | named
    kinds = {name: kind for kind, name in required + optional}
    return {name for _, name in required} <= set(given) and all(
        fits(value, kinds[name]) for name, value in given.items()
    )


class StandIn:
    """Plays an object of the class `real`: knows what the real one knows and a `do_` method is given for."""

    real: type

    def __init__(self, log):
        self.log = log

    def __getattr__(self, name):
        if name.startswith("do_"):
            raise AttributeError(name)
        method = getattr(self.real, name)  # AttributeError where the package knows no such thing
        act = getattr(self, f"do_{name}")
        if isinstance(method, property):
            return act()

        def call(*arguments, **named):
            fitting = [one for one in signatures(method) if takes(one, arguments, named)]
            assert fitting, f"{self.real.__name__}.{name} does not take {arguments} {named}"
            self.log.append((self.real.__name__, name, arguments))
            return act(*arguments, **named)

        return call


class Blueprint(StandIn):
    real = carla.ActorBlueprint

    def __init__(self, log, kind):
        super().__init__(log)
        self.kind, self.attributes = kind, {}

    def do_set_attribute(self, name, value):
        self.attributes[name] = value


class Library(StandIn):
    real = carla.BlueprintLibrary

    def do_find(self, kind):
        return Blueprint(self.log, kind)


class Actor(StandIn):
    def __init__(self, log, number):
        super().__init__(log)
        self.number = number

    def do_id(self):
        return self.number


class Car(Actor):
    real = carla.Vehicle

    def __init__(self, log, number, transform):
        super().__init__(log, number)
        self.place = carla.Transform(transform.location, transform.rotation)
        self.speed = self.gain = 0.0
        self.control, self.autopilot = carla.VehicleControl(), False

    def do_apply_control(self, control):
        self.control = control

    def do_set_autopilot(self, enabled, port):
        self.autopilot = enabled

    def do_get_transform(self):
        return self.place

    def do_get_location(self):
        return self.place.location

    def do_get_velocity(self):
        forward = self.place.get_forward_vector()
        return carla.Vector3D(forward.x * self.speed, forward.y * self.speed, 0.0)

    def do_get_acceleration(self):
        return carla.Vector3D(self.gain, 0.0, 0.0)

    def move(self):
        before = self.speed
        if self.autopilot:
            self.speed = TRAFFIC_SPEED
        elif self.control.brake > 0:
            self.speed = 0.0
        else:
            self.speed += FULL_THROTTLE * self.control.throttle * TICK
        self.gain = (self.speed - before) / TICK
        forward = self.place.get_forward_vector()
        self.place.location.x += forward.x * self.speed * TICK
        self.place.location.y += forward.y * self.speed * TICK


class Sensor(Actor):
    real = carla.Sensor

    def __init__(self, log, number, blueprint):
        super().__init__(log, number)
        self.kind, self.attributes, self.send = blueprint.kind, blueprint.attributes, None

    def do_listen(self, callback):
        self.send = callback

    def do_stop(self):
        self.send = None


class Data(StandIn):
    """A message of a sensor."""

    def __init__(self, real, **values):
        super().__init__([])
        self.real, self.values = real, values

    def __getattr__(self, name):
        getattr(self.real, name)
        return self.values[name]


class Traffic(StandIn):
    real = carla.TrafficManager

    def do_set_synchronous_mode(self, mode):
        pass

    def do_set_random_device_seed(self, seed):
        pass

    def do_shut_down(self):
        pass


class World(StandIn):
    real = carla.World

    def __init__(self, log, map_name):
        super().__init__(log)
        self.actors, self.created, self.frame = {}, 0, 0
        self.settings, self.map = carla.WorldSettings(), carla.Map(map_name, ROAD)
        self.refuses = set()  # positions of cars, in the order of their coming, that find no room
        self.script = {}  # tick -> what happens in it
        self.is_mute = self.has_bumps = False

    def do_get_map(self):
        return self.map

    def do_get_settings(self):
        copy = carla.WorldSettings()
        for name in ("synchronous_mode", "fixed_delta_seconds", "no_rendering_mode"):
            setattr(copy, name, getattr(self.settings, name))
        return copy

    def do_apply_settings(self, settings):
        self.settings = settings
        return self.frame

    def do_reset_all_traffic_lights(self):
        pass

    def do_get_blueprint_library(self):
        return Library(self.log)

    def do_spawn_actor(self, blueprint, transform, attach_to=None):
        self.created += 1
        is_car = attach_to is None
        made = Car(self.log, self.created, transform) if is_car else Sensor(self.log, self.created, blueprint)
        self.actors[self.created] = made
        return made

    def do_try_spawn_actor(self, blueprint, transform):
        if len(self.cars) in self.refuses:
            self.refuses.remove(len(self.cars))
            return None
        return self.do_spawn_actor(blueprint, transform)

    def do_tick(self):
        assert self.settings.synchronous_mode
        self.frame += 1
        for car in self.cars:
            car.move()
        happens = self.script.get(self.frame, {})
        if self.has_bumps and self.is_touched(*self.cars):
            happens = {"impulse": 1000.0}
        if "dies" in happens:
            raise RuntimeError("time-out of 1000ms while waiting for the simulator")
        for sensor in self.sensors:
            if message := self.message(sensor, happens):
                sensor.send(message)
        return self.frame

    @staticmethod
    def is_touched(ego, *others):
        """Whether a car is nearer to the first one than its length."""
        return any(ego.place.location.distance(car.place.location) < 5.0 for car in others)

    def message(self, sensor, happens):
        if sensor.send is None or self.is_mute:
            return None
        if sensor.kind == "sensor.other.collision" and "impulse" in happens:
            impulse = carla.Vector3D(0.0, happens["impulse"], 0.0)
            return Data(carla.CollisionEvent, frame=self.frame, normal_impulse=impulse)
        if sensor.kind == "sensor.other.lane_invasion" and "markings" in happens:
            markings = [object()] * happens["markings"]
            return Data(carla.LaneInvasionEvent, frame=self.frame, crossed_lane_markings=markings)
        if sensor.kind == "sensor.other.imu":
            return Data(carla.IMUMeasurement, frame=self.frame)
        if sensor.kind == "sensor.camera.rgb":
            width, height = (int(sensor.attributes[f"image_size_{axis}"]) for axis in "xy")
            pixels = np.tile(np.array([30, 20, self.frame, 255], np.uint8), width * height).tobytes()
            return Data(carla.Image, frame=self.frame, width=width, height=height, raw_data=pixels)
        return None

    @property
    def cars(self):
        return [actor for actor in self.actors.values() if isinstance(actor, Car)]

    @property
    def sensors(self):
        return [actor for actor in self.actors.values() if isinstance(actor, Sensor)]


class Client(StandIn):
    real = carla.Client

    def __init__(self, town="Town02"):
        super().__init__([])
        self.world = World(self.log, f"Carla/Maps/{town}")
        self.is_gone = False

    def __getattr__(self, name):
        if self.__dict__.get("is_gone"):
            raise RuntimeError("rpc::timeout")
        return super().__getattr__(name)

    def do_get_world(self):
        return self.world

    def do_get_available_maps(self):
        return ["/Game/Carla/Maps/Town01", "/Game/Carla/Maps/Town02"]

    def do_load_world(self, name):
        self.world.map = carla.Map(f"Carla/Maps/{name}", ROAD)
        return self.world

    def do_reload_world(self, reset_settings):
        assert not reset_settings
        self.world.actors.clear()
        self.world.frame = 0
        return self.world

    def do_set_timeout(self, seconds):
        pass

    def do_get_trafficmanager(self, port):
        return Traffic(self.log)

    def do_apply_batch_sync(self, commands, do_tick=False):
        assert all(isinstance(command, carla.command.DestroyActor) for command in commands)
        for command in commands:
            del self.world.actors[command.actor_id]
        return []


class Constant:
    """Always the same action."""

    def __init__(self, *action):
        self.action = np.array([action])

    def begin(self, count):
        pass

    def act(self, observations, rows):
        return self.action


@pytest.fixture(scope="module")
def roads():
    return RoadMap.read("road", ROAD)


@pytest.fixture
def client():
    return Client()


SETTINGS = Settings(timeout_seconds=0.2, vehicles=2, horizon=10)
#: The ego vehicle, its turn, a car 20 m ahead and one far away.
INPUT = np.array([[50.0, LANE_Y, 0.0, 1, 70.0, LANE_Y, 0.0, 200.0, LANE_Y, 0.0]])
SEED = np.array([7], np.uint64)
WARM_UP = 50


def simulator_on(client, roads, settings=SETTINGS, drives_itself=False, kind=CarlaSimulator):
    return kind(settings, roads, drives_itself, lambda wanted: Server(client, wanted))


def run(simulator, action=(1.0, 0.0, 0.0), steps=10, inputs=INPUT, seeds=SEED, observer=None):
    oracle = Below("impulse_margin", 0.0, kind="collision")
    return rollout(simulator, Constant(*action), oracle, inputs, seeds, horizon=steps, observer=observer)


def calls(client, *names):
    """Names of the calls in order, those of `names` only."""
    return [name for _, name, _ in client.log if name in names]


def assert_left_as_found(client):
    assert client.world.actors == {}
    assert not client.world.settings.synchronous_mode
    assert client.world.settings.fixed_delta_seconds is None
    assert calls(client, "get_trafficmanager", "shut_down")[-1] == "shut_down"


def test_the_stand_ins_refuse_what_the_package_does_not_have(client):
    world = client.world
    with pytest.raises(AttributeError):
        world.tock()
    with pytest.raises(AssertionError, match="does not take"):
        world.apply_settings({"synchronous_mode": True})
    with pytest.raises(AssertionError, match="does not take"):
        Traffic([]).set_random_device_seed(np.int64(3))
    with pytest.raises(AssertionError, match="does not take"):
        client.reload_world(False, keep="all")
    with pytest.raises(AttributeError):
        _ = Data(carla.CollisionEvent, strength=3).strength


def test_an_episode_earns_progress_and_speed(client, roads):
    executions = run(simulator_on(client, roads))
    speeds = 0.4 * np.arange(1, 11)
    assert executions.returns[0] == pytest.approx((speeds * TICK).sum() + 0.2 * speeds[-1], rel=1e-4)
    assert executions.lengths[0] == 11
    assert executions.verdicts.kinds[0] == NONE


def test_the_state_is_that_of_the_ego_vehicle(client, roads):
    states = run(simulator_on(client, roads)).states[0]
    named = dict(zip(STATE, states[-1].tolist(), strict=True))
    # ten ticks of full throttle; the other cars have rolled for six seconds
    assert named["x"] == pytest.approx(52.2, abs=1e-3)
    assert named["y"] == pytest.approx(LANE_Y)
    assert named["velocity_x"] == pytest.approx(4.0, abs=1e-5)
    assert named["acceleration_x"] == pytest.approx(4.0, abs=1e-4)
    assert [named["forward_x"], named["forward_y"], named["command"]] == [1.0, 0.0, 4.0]
    assert named["node_x"] == pytest.approx(58.0, abs=1e-3)
    assert named["near_count"] == 0.0
    first = dict(zip(STATE, states[0].tolist(), strict=True))
    assert first["x"] == pytest.approx(50.0)


def test_near_vehicles_are_seen(client, roads):
    near = INPUT.copy()
    near[0, 4] = 40.0  # five seconds of warm-up take it to 15 m ahead
    first = run(simulator_on(client, roads), inputs=near).states[0, 0]
    np.testing.assert_allclose(first[-3:], [15.0, 0.0, 1.0], atol=1e-3)


def test_an_episode_is_set_up_in_order(client, roads):
    simulator = simulator_on(client, roads)
    run(simulator, steps=1)
    order = calls(
        client,
        "apply_settings",
        "reload_world",
        "set_synchronous_mode",
        "set_random_device_seed",
        "try_spawn_actor",
        "spawn_actor",
        "listen",
        "set_autopilot",
        "tick",
    )
    assert order == [
        "apply_settings",
        "reload_world",
        "set_synchronous_mode",
        "set_random_device_seed",
        *["try_spawn_actor"] * 3,
        *["spawn_actor", "listen"] * 3,
        *["set_autopilot"] * 2,
        *["tick"] * (WARM_UP + 1),
    ]
    seeds = [arguments for _, name, arguments in client.log if name == "set_random_device_seed"]
    assert seeds == [(7,)]


def test_cars_are_put_down_where_the_input_says(client, roads):
    turned = INPUT.copy()
    turned[0, 2] = np.radians(20)
    run(simulator_on(client, roads), steps=1, inputs=turned)
    spawned = [arguments for _, name, arguments in client.log if name == "try_spawn_actor"]
    places = [(t.location.x, t.location.y, t.location.z, t.rotation.yaw) for _, t in spawned]
    roles = [blueprint.attributes["role_name"] for blueprint, _ in spawned]
    expected = [(50.0, 1.75, 0.5, 20.0), (70.0, 1.75, 0.5, 0.0), (200.0, 1.75, 0.5, 0.0)]
    np.testing.assert_allclose(places, expected, atol=1e-4)
    assert roles == ["hero", "autopilot", "autopilot"]


@pytest.mark.parametrize("camera", [None, (8, 6)])
def test_the_world_is_synchronous_and_renders_only_for_a_camera(client, roads, camera):
    settings = Settings(timeout_seconds=0.2, vehicles=2, camera=camera)
    simulator = simulator_on(client, roads, settings)
    run(simulator, steps=1)
    assert client.world.settings.synchronous_mode
    assert client.world.settings.fixed_delta_seconds == pytest.approx(TICK)
    assert client.world.settings.no_rendering_mode == (camera is None)


@pytest.mark.parametrize(("impulse", "crashes"), [(401.0, True), (400.0, False), (12.0, False)])
def test_a_crash_is_an_impulse_above_four_hundred(client, roads, impulse, crashes):
    client.world.script[WARM_UP + 4] = {"impulse": impulse}
    executions = run(simulator_on(client, roads))
    assert executions.crashed[0] == crashes
    assert executions.verdicts.steps[0] == (4 if crashes else NONE)
    assert executions.lengths[0] == (5 if crashes else 11)


def test_a_crash_costs_a_hundred_times_the_speed(client, roads):
    client.world.script[WARM_UP + 4] = {"impulse": 500.0}
    executions = run(simulator_on(client, roads))
    assert executions.returns[0] == pytest.approx(0.4 + 0.2 * 1.6 - 160.0, abs=1e-3)


def test_a_crossed_marking_costs_the_speed_once(client, roads):
    client.world.script[WARM_UP + 5] = {"markings": 2}
    seen = []
    quiet = run(simulator_on(Client(), roads)).returns[0]
    crossed = run(
        simulator_on(client, roads), observer=lambda step, rows, actions, frame: seen.append(frame.signals[0])
    )
    assert crossed.returns[0] == pytest.approx(quiet - 2.0, abs=1e-4)
    assert [signals[1] for signals in seen] == [0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0]
    assert not crossed.crashed[0]


def test_what_happens_during_the_warm_up_does_not_count(client, roads):
    client.world.script[WARM_UP // 2] = {"impulse": 9000.0, "markings": 3}
    client.world.script[WARM_UP] = {"impulse": 9000.0, "markings": 3}
    executions = run(simulator_on(client, roads))
    assert not executions.crashed[0]
    assert executions.returns[0] > 0


def test_the_ego_vehicle_waits_during_the_warm_up(client, roads):
    run(simulator_on(client, roads), steps=1)
    controls = [arguments[0] for _, name, arguments in client.log if name == "apply_control"]
    assert [control.brake for control in controls] == [1.0, 0.0]


def test_actions_are_brought_within_their_limits(client, roads):
    run(simulator_on(client, roads), action=(3.0, -7.0, -1.0), steps=1)
    control = [arguments[0] for _, name, arguments in client.log if name == "apply_control"][-1]
    assert (control.throttle, control.steer, control.brake) == (1.0, -1.0, 0.0)


@pytest.mark.parametrize("action", [(np.nan, 0.0, 0.0), (1.0, 0.0)], ids=["NaN", "two numbers"])
def test_an_action_that_is_none_is_an_error_and_leaves_the_server_clean(client, roads, action):
    simulator = simulator_on(client, roads)
    with pytest.raises(PolicyError, match="throttle, steer, brake"):
        run(simulator, action=action)
    assert_left_as_found(client)


def test_an_episode_is_the_same_whatever_ran_before(client, roads):
    simulator = simulator_on(client, roads)
    other = INPUT + np.array([[20.0, 0, 0, 0, 10.0, 0, 0, 10.0, 0, 0]])
    first = run(simulator)
    run(simulator, inputs=other)
    again = run(simulator)
    alone = run(simulator_on(Client(), roads))
    for executions in (again, alone):
        np.testing.assert_array_equal(executions.states, first.states)
        np.testing.assert_array_equal(executions.returns, first.returns)


def test_the_next_episode_begins_on_an_empty_stage(client, roads):
    simulator = simulator_on(client, roads, Settings(timeout_seconds=0.2, vehicles=2, reload=False))
    run(simulator, steps=2)
    before = set(client.world.actors)
    client.world.frame = 0
    run(simulator, steps=2)
    assert len(before) == len(client.world.actors) == 6
    assert before.isdisjoint(client.world.actors)
    assert calls(client, "reload_world") == []
    assert calls(client, "get_trafficmanager", "shut_down") == [
        "get_trafficmanager",
        "shut_down",
        "get_trafficmanager",
    ]


def test_a_batch_runs_one_episode_after_another(client, roads):
    executions = run(
        simulator_on(client, roads), inputs=np.repeat(INPUT, 3, axis=0), seeds=np.arange(3, dtype=np.uint64)
    )
    assert len(executions) == 3
    assert len(set(executions.returns.tolist())) == 1


def test_closing_leaves_the_server_as_it_was(client, roads):
    simulator = simulator_on(client, roads)
    run(simulator)
    assert client.world.actors
    simulator.close()
    assert_left_as_found(client)
    run(simulator)  # and may be used again
    assert client.world.settings.synchronous_mode


def test_a_simulator_that_nobody_needs_closes_itself(client, roads):
    simulator = simulator_on(client, roads)
    run(simulator)
    del simulator
    gc.collect()
    assert_left_as_found(client)


def test_ctrl_c_leaves_the_server_clean(client, roads):
    simulator = simulator_on(client, roads)

    class Interrupted(Constant):
        def act(self, observations, rows):
            raise KeyboardInterrupt

    oracle = Below("impulse_margin", 0.0, kind="collision")
    with pytest.raises(KeyboardInterrupt):
        rollout(simulator, Interrupted(), oracle, INPUT, SEED, horizon=3)
    del simulator
    gc.collect()
    assert_left_as_found(client)


def test_a_server_that_dies_in_an_episode_is_named(client, roads):
    client.world.script[WARM_UP + 3] = {"dies": True}
    settings = Settings(host="far", port=2010, timeout_seconds=0.2, vehicles=2)
    with pytest.raises(ServerError, match=r"at far:2010 did not advance by a tick: time-out") as caught:
        run(simulator_on(client, roads, settings))
    assert "--resume" in caught.value.hint


def test_a_server_that_is_gone_for_good_is_one_error(client, roads):
    simulator = simulator_on(client, roads)
    run(simulator)
    client.is_gone = True
    with pytest.raises(ServerError, match="rpc::timeout"):
        run(simulator)
    simulator.close()  # nothing more to say


def target_on(client, roads, horizon=5):
    """A target whose policy never looks where it drives."""
    return Target(
        name="carla",
        inputs=input_space(roads, 2),
        simulator=lambda: simulator_on(client, roads),
        policy=lambda: Constant(1.0, 0.0, 0.0),
        oracle=Below("impulse_margin", 0.0, kind="collision"),
        horizon=horizon,
        batch_size=8,
    )


def test_a_runner_passes_the_error_on(client, roads):
    client.world.script[WARM_UP] = {"dies": True}
    with pytest.raises(ServerError):
        Runner(target_on(client, roads))(INPUT, SEED)


@pytest.mark.slow
def test_a_campaign_confirms_collisions_and_leaves_the_server_clean(client, roads, tmp_path):
    client.world.has_bumps = True
    target = target_on(client, roads, horizon=40)
    config = CampaignConfig("carla", None, "", seed=0, batch_size=8, search=SearchSettings(samples=24))
    CampaignWriter.create(tmp_path, config, target.inputs).close()
    store = CampaignWriter(tmp_path)
    Campaign(target, store, Budget(executions=120), lambda _event: None).run()
    store.close()
    statuses = {finding["status"] for finding in CampaignReader(tmp_path).iterate("findings")}
    assert "confirmed" in statuses
    assert "flaky" not in statuses
    gc.collect()
    assert_left_as_found(client)


def test_sensors_that_fall_silent_are_an_error(client, roads):
    client.world.is_mute = True
    simulator = simulator_on(client, roads)
    with pytest.raises(ServerError, match=r"no sensor data for frame 50 within 0\.2 s"):
        run(simulator)
    assert_left_as_found(client)


def test_vehicles_without_room_are_left_out_and_counted(client, roads):
    client.world.refuses = {1}
    signals = []
    executions = run(
        simulator_on(client, roads),
        observer=lambda step, rows, actions, frame: signals.append(frame.signals[0]),
    )
    assert executions.lengths[0] == 11
    assert {values[3] for values in signals} == {1.0}


def test_an_ego_vehicle_without_room_is_an_episode_without_steps(client, roads):
    client.world.refuses = {0}
    executions = run(simulator_on(client, roads))
    assert executions.lengths[0] == 1
    assert not executions.crashed[0]
    assert executions.returns[0] == 0.0
    assert np.isfinite(executions.states).all()


def test_an_episode_ends_with_its_route(client, roads):
    at_end = INPUT.copy()
    at_end[0, 0] = 395.0
    executions = run(simulator_on(client, roads), inputs=at_end, steps=40)
    assert 2 < executions.lengths[0] < 40
    assert not executions.crashed[0]


def test_the_autopilot_drives_when_it_is_asked_to(client, roads):
    executions = run(simulator_on(client, roads, drives_itself=True), steps=3)
    controls = [arguments[0] for _, name, arguments in client.log if name == "apply_control"]
    assert [control.brake for control in controls] == [1.0]
    assert calls(client, "tick", "set_autopilot")[-4:] == ["set_autopilot", "tick", "tick", "tick"]
    assert executions.states[0, -1, STATE.index("velocity_x")] == pytest.approx(TRAFFIC_SPEED)


def test_a_camera_gives_pictures_with_the_state(client, roads):
    settings = Settings(timeout_seconds=0.2, vehicles=2, camera=(8, 6))
    seen = []
    simulator = simulator_on(client, roads, settings, kind=FilmedCarlaSimulator)
    run(simulator, steps=2, observer=lambda step, rows, actions, frame: seen.append(frame))
    frame = seen[-1]
    assert frame.observations["picture"].shape == (1, 6, 8, 3)
    np.testing.assert_array_equal(frame.observations["state"], frame.states)
    # red counts the frames of the stand-in
    assert frame.observations["picture"][0, 0, 0].tolist() == [WARM_UP + 2, 20, 30]
    np.testing.assert_array_equal(simulator.render(0), frame.observations["picture"][0])


def test_only_a_simulator_with_a_camera_can_be_filmed(client, roads):
    assert isinstance(simulator_on(client, roads, kind=FilmedCarlaSimulator), Renders)
    assert not isinstance(simulator_on(client, roads), Renders)


def test_no_episodes_are_no_frames(client, roads):
    frame = simulator_on(client, roads).reset(np.empty((0, 10)), np.empty(0, np.uint64))
    assert frame.states.shape == (0, 17)
    assert frame.signals.shape == (0, 4)
    assert client.log == []


def test_another_map_than_the_served_one_is_refused(client, roads):
    client.world.map = carla.Map("Carla/Maps/Town02", ROAD.replace("400", "399"))
    with pytest.raises(UsageError, match="not the map that the CARLA server plays on"):
        run(simulator_on(client, roads))
    assert calls(client, "apply_settings") == []


def test_line_ends_make_no_other_map(client, roads):
    client.world.map = carla.Map("Carla/Maps/Town02", ROAD.replace("\n", "\r\n"))
    assert len(run(simulator_on(client, roads), steps=1)) == 1


def test_another_town_is_loaded_with_patience():
    client = Client(town="Town10HD_Opt")
    world = Server(client, Settings(town="Town01", timeout_seconds=3.0)).open_town()
    assert world.map.name == "Carla/Maps/Town01"
    timeouts = [arguments[0] for _, name, arguments in client.log if name == "set_timeout"]
    assert timeouts == [120.0, 3.0]
    assert calls(client, "load_world", "set_timeout") == ["set_timeout", "load_world", "set_timeout"]


def test_the_town_that_is_open_is_not_loaded_again(client):
    Server(client, Settings()).open_town()
    assert calls(client, "load_world", "reload_world") == []


def test_a_town_that_the_server_lacks_is_told(client):
    with pytest.raises(UsageError, match="'Town20'") as caught:
        Server(client, Settings(town="Town20")).open_town()
    assert "did you mean 'Town02'" in caught.value.hint


def test_a_model_that_the_server_lacks_is_told(client, roads, monkeypatch):
    def find(library, kind):
        raise IndexError(f"blueprint '{kind}' not found")

    monkeypatch.setattr(Library, "do_find", find)
    with pytest.raises(ServerError, match=r"it has no vehicle\.tesla\.model3"):
        run(simulator_on(client, roads))
    assert not client.world.settings.synchronous_mode


def test_the_package_speaks_as_the_stand_ins_read_it():
    read = SimpleNamespace(__name__="go", __doc__="\ngo( (World)arg1, (int)n [, (str)how='']) -> None :\n")
    assert signatures(read) == [([("int", "n")], [("str", "how")])]
    assert takes(signatures(read)[0], (1,), {"how": "fast"})
    assert not takes(signatures(read)[0], (), {"how": "fast"})
