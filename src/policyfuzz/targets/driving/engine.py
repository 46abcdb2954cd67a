"""MetaDrive, made to start where an input says and to forget every episode before.

This module needs the package metadrive; import it only where that is installed.
"""

import logging
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from metadrive.component.map.pg_map import MapGenerateMethod, PGMap
from metadrive.component.navigation_module.node_network_navigation import NodeNetworkNavigation
from metadrive.component.vehicle.vehicle_type import StaticDefaultVehicle
from metadrive.constants import DEFAULT_AGENT
from metadrive.engine.asset_loader import AssetLoader
from metadrive.engine.core.collision_callback import collision_callback
from metadrive.engine.core.physics_world import PhysicsWorld
from metadrive.envs import MetaDriveEnv
from metadrive.manager.pg_map_manager import PGMapManager
from metadrive.manager.traffic_manager import PGTrafficManager
from metadrive.policy.idm_policy import FrontBackObjects, IDMPolicy
from numpy.typing import NDArray
from panda3d.core import PythonCallbackObject

from policyfuzz.targets.driving.picture import RoadMap
from policyfuzz.targets.driving.roads import APPROACH, LANE_WIDTH, LANES, ROADS
from policyfuzz.targets.driving.scenario import Scene

#: What the expert of the package was trained to see: 240 laser beams of 50 m and the four nearest vehicles.
_LIDAR = {"num_lasers": 240, "distance": 50, "num_others": 4, "gaussian_noise": 0.0, "dropout_prob": 0.0}


class RoadManager(PGMapManager):  # type: ignore[misc]
    """Lays the road of the scene in a physical world that is new in every episode.

    Roads are kept, since driving does not change them. Worlds are not: a used one remembers the order in
    which things met, and rounds differently.
    """

    scene: Scene

    def reset(self) -> None:
        number = self.scene.road
        if self.maps[number] is None:
            self.maps[number] = self.spawn_object(PGMap, map_config=_map_config(number), random_seed=None)
            self.maps[number].detach_from_world()
        self._renew_world()
        self.load_map(self.maps[number])

    def _renew_world(self) -> None:
        engine, lidar = self.engine, self.engine.get_sensor("lidar")
        engine.physics_world.destroy()
        engine.physics_world = PhysicsWorld()
        engine.physics_world.dynamic_world.setContactAddedCallback(PythonCallbackObject(collision_callback))
        for bodies in (lidar.broad_detectors, lidar._node_path_list):  # they belong to the old world
            bodies.clear()


class FollowRoute(NodeNetworkNavigation):  # type: ignore[misc]
    """Navigation of the other vehicles: only their lane, since they need no observation."""

    def update_localization(self, ego_vehicle: Any) -> None:
        lane, index = self._update_current_lane(ego_vehicle)
        along, _ = lane.local_coordinates(ego_vehicle.position)
        if self._update_target_checkpoints(index, along):
            first, second = self._target_checkpoints_index
            nodes, graph = self.checkpoints, self.map.road_network.graph
            self.current_ref_lanes = graph[nodes[first]][nodes[first + 1]]
            self.next_ref_lanes = None if first == second else graph[nodes[second]][nodes[second + 1]]


class LaneKeeper(IDMPolicy):  # type: ignore[misc]
    """MetaDrive's IDM driver without lane changes.

    MetaDrive's own driver has a switch for that, but turns Ctrl-C into an arbitrary decision.
    """

    def act(self, *_: Any, **__: Any) -> list[float]:
        self.move_to_next_road()
        vehicle, lane = self.control_object, self.routing_target_lane
        seen = FrontBackObjects.get_find_front_back_objs(
            vehicle.lidar.get_surrounding_objects(vehicle), lane, vehicle.position, self.MAX_LONG_DIST
        )
        steering = self.steering_control(lane)
        return [steering, self.acceleration(seen.front_object(), seen.front_min_distance())]


class TrafficManager(PGTrafficManager):  # type: ignore[misc]
    """Puts the other vehicles of the scene on the road, each under MetaDrive's IDM driver.

    They keep their lanes, and leave the episode where the road ends.
    """

    scene: Scene
    navigation: ClassVar[type] = FollowRoute
    driver: ClassVar[type] = LaneKeeper

    @property
    def others(self) -> list[Any]:
        """The vehicles that are still on the road."""
        return self._traffic_vehicles

    def reset(self) -> None:
        self._traffic_vehicles = [self._spawn(vehicle) for vehicle in range(1, len(self.scene.lanes))]

    def after_step(self, *_: Any, **__: Any) -> dict[str, Any]:
        # MetaDrive's own also computes energy, contacts and turn signals of each, which are not used here
        for vehicle in self.others:
            vehicle.navigation.update_localization(vehicle)
        gone = [vehicle for vehicle in self.others if not vehicle.on_lane]
        for vehicle in gone:
            self.clear_objects([vehicle.id])
            self._traffic_vehicles.remove(vehicle)
        return {}

    def _spawn(self, vehicle: int) -> Any:
        config = {**self.engine.global_config["traffic_vehicle_config"], **self.scene.config(vehicle)}
        config["navigation_module"] = self.navigation
        spawned = self.spawn_object(StaticDefaultVehicle, vehicle_config=config, random_seed=vehicle)
        self.add_policy(spawned.id, self.driver, spawned, vehicle)
        return spawned


class SceneEnv(MetaDriveEnv):  # type: ignore[misc]
    """MetaDrive's environment, started from a scene."""

    traffic: ClassVar[type] = TrafficManager
    #: The simulator that started the running episode.
    owner: object = None

    def __init__(self) -> None:
        _leave_out_assets()
        super().__init__(
            {
                "log_level": logging.CRITICAL,
                "num_scenarios": len(ROADS),
                "random_spawn_lane_index": False,
                "traffic_density": 0.0,
                "force_destroy": True,
                "out_of_route_done": True,
                "vehicle_config": {"lidar": _LIDAR},
            }
        )

    def setup_engine(self) -> None:
        super().setup_engine()
        self.engine.update_manager("map_manager", RoadManager())
        self.engine.update_manager("traffic_manager", self.traffic())

    def start(self, scene: Scene, owner: object) -> NDArray[np.float32]:
        """Begin the episode of `scene`; returns the first observation (275,)."""
        self.owner = owner
        self.lazy_init()
        self.engine.map_manager.scene = self.engine.traffic_manager.scene = scene
        self.config["agent_configs"][DEFAULT_AGENT].update(scene.config(0))
        observation, _ = self.reset(seed=scene.road)
        return observation  # type: ignore[no-any-return]

    def vehicles(self) -> list[Any]:
        """The ego vehicle and the others that are still on the road."""
        return [self.agent, *self.engine.traffic_manager.others]

    def motion(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Poses (m, 3) and velocities (m, 2) of all vehicles, the ego vehicle first."""
        vehicles = self.vehicles()
        poses = np.array([[*vehicle.position, vehicle.heading_theta] for vehicle in vehicles])
        return poses, np.array([vehicle.velocity for vehicle in vehicles])

    def road_map(self) -> RoadMap:
        """The road of this episode, drawn once for each road."""
        road = self.current_map
        if not hasattr(road, "picture"):
            road.picture = RoadMap(road.get_map_features(1.0))
        return road.picture  # type: ignore[no-any-return]

    @property
    def is_off_road(self) -> bool:
        """True where the ego vehicle has left the road, by MetaDrive's own judgement."""
        return bool(self._is_out_of_road(self.agent))

    @property
    def road_margin(self) -> float:
        """Metres from the middle of the ego vehicle to the nearer edge of the road."""
        return float(min(self.agent.dist_to_left_side, self.agent.dist_to_right_side))


@cache
def environment() -> SceneEnv:
    """The environment of this process; MetaDrive allows only one."""
    return SceneEnv()


def _map_config(number: int) -> dict[str, Any]:
    """MetaDrive's description of a road: blocks with all parameters, so that nothing is drawn at random."""
    blocks = [{"id": "I"}, *(dict(block) for block in ROADS[number].blocks)]
    return {
        PGMap.GENERATE_TYPE: MapGenerateMethod.PG_MAP_FILE,
        PGMap.GENERATE_CONFIG: blocks,
        PGMap.LANE_WIDTH: LANE_WIDTH,
        PGMap.LANE_NUM: LANES,
        "exit_length": APPROACH,
        "start_position": [0, 0],
        "seed": number,
    }


def _leave_out_assets() -> None:
    """Keep MetaDrive from downloading its models and textures: physics needs none of them."""
    AssetLoader.asset_path = Path(__file__).parent  # any folder that is there
    AssetLoader.should_update_asset = classmethod(lambda _: False)
