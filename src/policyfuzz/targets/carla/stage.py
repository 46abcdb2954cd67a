"""The actors of one episode on the server: put up, moved tick by tick, and cleared away."""

import queue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.targets.carla.drive import Motion
from policyfuzz.targets.carla.server import Server, ServerError

TICK_SECONDS = 0.1
#: Ticks before an episode: cars drop onto their wheels, and traffic starts to flow.
WARM_UP_TICKS = 50
#: All cars are of this model, so that their footprint is known.
CAR = "vehicle.tesla.model3"
#: Cars are put down from this height above the road.
_DROP_METRES = 0.5
#: Where the camera sits on the car, in metres ahead of and above its middle.
_CAMERA_PLACE = (1.5, 1.6)


class Stage:
    """One episode at a time on one server, in synchronous mode as long as the stage is open."""

    def __init__(self, server: Server, drives_itself: bool = False) -> None:
        self._carla = extras.load("carla", "carla")
        self._server = server
        self._drives_itself = drives_itself  #: the traffic manager drives the ego vehicle too
        self._world = server.open_town()
        self._original: Any = None  #: settings of the world before ours
        self._traffic: Any = None
        self._vehicles: list[Any] = []
        self._sensors: list[Any] = []
        self._ego: Any = None
        self._collisions, self._invasions, self._beats, self._images = (Inbox() for _ in range(4))
        width, height = server.settings.camera or (0, 0)
        self.picture = np.zeros((height, width, 3), np.uint8)  #: what the camera saw last
        self.refused = 0  #: vehicles that the server found no room for

    def opendrive(self) -> str:
        """The text of the map that the server plays on."""
        with self._server.asked_to("give its map"):
            return str(self._world.get_map().to_opendrive())

    def set_up(self, places: NDArray[np.float64], seed: int) -> None:
        """Begin an episode with cars at `places` (k, 4) (x, y, z, yaw), the ego vehicle first."""
        self.clear()
        with self._server.asked_to("set up an episode"):
            self._go_synchronous()
            self._renew_world()
            self._start_traffic(seed)
            self._ego = self._put_down(places[0], "hero")
            others = [self._put_down(place, "autopilot") for place in places[1:]]
            self.refused = sum(car is None for car in (self._ego, *others))
            if self._ego is not None:
                self._attach_sensors()
                self._warm_up([car for car in others if car is not None])

    @property
    def has_ego(self) -> bool:
        """False where the server found no room for the ego vehicle."""
        return self._ego is not None

    @property
    def ego(self) -> Motion:
        """How the ego vehicle moves."""
        with self._server.asked_to("say how the ego vehicle moves"):
            return Motion.of(self._ego)

    @property
    def others(self) -> NDArray[np.float64]:
        """(k, 2) where the other vehicles are; none where there is no ego vehicle."""
        cars = [car for car in self._vehicles if car is not self._ego] if self.has_ego else []
        with self._server.asked_to("say where the vehicles are"):
            places = [car.get_location() for car in cars]
        return np.array([(place.x, place.y) for place in places]).reshape(-1, 2)

    def drive(self, throttle: float, steer: float, brake: float) -> None:
        """Advance by one tick under this control of the ego vehicle."""
        with self._server.asked_to("advance by a tick"):
            if not self._drives_itself:
                control = self._carla.VehicleControl(throttle=throttle, steer=steer, brake=brake)
                self._ego.apply_control(control)
            self._tick()

    def impulse(self) -> float:
        """The strongest impulse of collisions since the last question."""
        return max((event.normal_impulse.length() for event in self._collisions.drain()), default=0.0)

    def crossed_markings(self) -> int:
        """Lane markings crossed since the last question."""
        return sum(len(event.crossed_lane_markings) for event in self._invasions.drain())

    def clear(self) -> None:
        """Take all actors of the episode away."""
        actors = [*self._sensors, *self._vehicles]
        sensors, traffic = self._sensors, self._traffic
        self._sensors, self._vehicles, self._ego, self._traffic = [], [], None, None
        self.picture = np.zeros_like(self.picture)
        with self._server.asked_to("clear an episode away"):
            for sensor in sensors:
                sensor.stop()
            if actors:
                destroy = self._carla.command.DestroyActor
                self._server.client.apply_batch_sync([destroy(actor.id) for actor in actors], True)
            if traffic is not None:
                traffic.shut_down()

    def close(self) -> None:
        """Clear the stage and give the world its settings back; the first failure ends the attempt."""
        original, self._original = self._original, None
        try:
            self.clear()
            if original is not None:
                with self._server.asked_to("take its settings back"):
                    self._world.apply_settings(original)
        except ServerError:
            return  # a server that is gone has nothing left to clear, and its user has seen the error

    def _go_synchronous(self) -> None:
        if self._original is not None:
            return
        original, wanted = self._world.get_settings(), self._world.get_settings()
        wanted.synchronous_mode = True
        wanted.fixed_delta_seconds = TICK_SECONDS
        wanted.no_rendering_mode = self._server.settings.camera is None
        self._original = original
        self._world.apply_settings(wanted)

    def _renew_world(self) -> None:
        """Bring the town back to its beginning: by loading it again, or at least its traffic lights."""
        if self._server.settings.reload:
            self._world = self._server.reload()
        else:
            self._world.reset_all_traffic_lights()

    def _start_traffic(self, seed: int) -> None:
        self._traffic = self._server.client.get_trafficmanager(self._server.settings.traffic_port)
        self._traffic.set_synchronous_mode(True)
        self._traffic.set_random_device_seed(seed)

    def _put_down(self, place: NDArray[np.float64], role: str) -> Any:
        """The car that now stands at `place` (4,), None where there was no room for it."""
        blueprint = self._blueprint(CAR, role_name=role)
        x, y, z, yaw = place.tolist()
        transform = self._carla.Transform(
            self._carla.Location(x=x, y=y, z=z + _DROP_METRES),
            self._carla.Rotation(yaw=float(np.degrees(yaw))),
        )
        car = self._world.try_spawn_actor(blueprint, transform)
        if car is not None:
            self._vehicles.append(car)
        return car

    def _attach_sensors(self) -> None:
        self._collisions = self._attach("sensor.other.collision")
        self._invasions = self._attach("sensor.other.lane_invasion")
        # sends in every tick: once its message is here, those of the other sensors have had their time
        self._beats = self._attach("sensor.other.imu")
        if self._server.settings.camera is not None:
            width, height = self._server.settings.camera
            self._images = self._attach("sensor.camera.rgb", image_size_x=width, image_size_y=height)

    def _attach(self, kind: str, **attributes: int) -> "Inbox":
        inbox = Inbox()
        ahead, above = _CAMERA_PLACE
        transform = self._carla.Transform(self._carla.Location(x=ahead, z=above))
        sensor = self._world.spawn_actor(self._blueprint(kind, **attributes), transform, attach_to=self._ego)
        self._sensors.append(sensor)
        sensor.listen(inbox.put)
        return inbox

    def _blueprint(self, kind: str, **attributes: object) -> Any:
        try:
            blueprint = self._world.get_blueprint_library().find(kind)
        except IndexError as error:  # the package's word for an unknown name
            raise RuntimeError(f"it has no {kind}") from error
        for name, value in attributes.items():
            blueprint.set_attribute(name, str(value))
        return blueprint

    def _warm_up(self, others: list[Any]) -> None:
        """Let traffic start while the ego vehicle waits; nothing that happens meanwhile counts."""
        port = self._server.settings.traffic_port
        for car in others:
            car.set_autopilot(True, port)
        self._ego.apply_control(self._carla.VehicleControl(brake=1.0))
        for _ in range(WARM_UP_TICKS - 1):
            self._world.tick()  # sensors may not have begun to send yet
        self._tick()
        self._collisions.drain()
        self._invasions.drain()
        if self._drives_itself:
            self._ego.set_autopilot(True, port)

    def _tick(self) -> None:
        frame = self._world.tick()
        seconds = self._server.settings.timeout_seconds
        self._beats.wait_for(frame, seconds)
        if self._server.settings.camera is not None:
            self.picture = picture_of(self._images.wait_for(frame, seconds))


class Inbox:
    """The messages of one sensor, in the order in which they came."""

    def __init__(self) -> None:
        self._messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def put(self, message: Any) -> None:
        """Take a message; called by threads of CARLA."""
        self._messages.put(message)

    def drain(self) -> list[Any]:
        """All messages that have come."""
        return [self._messages.get() for _ in range(self._messages.qsize())]

    def wait_for(self, frame: int, seconds: float) -> Any:
        """The message of `frame` or a later one; older ones are dropped."""
        while True:
            try:
                message = self._messages.get(timeout=seconds)
            except queue.Empty:
                raise RuntimeError(f"no sensor data for frame {frame} within {seconds:g} s") from None
            if message.frame >= frame:
                return message


def picture_of(image: Any) -> NDArray[np.uint8]:
    """(height, width, 3) red, green and blue of a carla.Image, which holds blue, green, red, alpha."""
    pixels = np.frombuffer(image.raw_data, np.uint8).reshape(image.height, image.width, 4)
    return pixels[:, :, 2::-1].copy()
