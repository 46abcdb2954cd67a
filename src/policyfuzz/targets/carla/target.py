"""CARLA: a car in traffic on a server of yours, driven by your policy."""

from collections.abc import Mapping
from pathlib import Path

from policyfuzz.errors import UsageError
from policyfuzz.oracles import Below
from policyfuzz.target import Target
from policyfuzz.targets.carla import options as carla_options
from policyfuzz.targets.carla.options import Settings
from policyfuzz.targets.carla.policies import find_driver
from policyfuzz.targets.carla.roads import RoadMap
from policyfuzz.targets.carla.server import connect
from policyfuzz.targets.carla.simulator import CarlaSimulator, FilmedCarlaSimulator
from policyfuzz.targets.carla.stage import TICK_SECONDS, Stage
from policyfuzz.targets.carla.traffic import input_space


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options as in `options.Settings`, policy as in `policies.find_driver`.

    Needs no server where `map` names the OpenDRIVE file of the town; the first episode does.
    """
    settings = carla_options.parse(options)
    driver = find_driver(policy)
    roads = RoadMap.read(str(settings.map_file or settings.town), _map_text(settings))
    simulator = CarlaSimulator if settings.camera is None else FilmedCarlaSimulator
    return Target(
        name=carla_options.target_name(options),
        inputs=input_space(roads, settings.vehicles),
        simulator=lambda: simulator(settings, roads, driver.drives_itself),
        policy=driver.make,
        oracle=Below("impulse_margin", 0.0, kind="collision"),
        horizon=settings.horizon,
        max_workers=1,  # one server has one world
        policy_name=driver.name,
        policy_uri=driver.uri,
        policy_sha256=driver.sha256,
        batch_size=8,
        samples=50,
        film_steps_per_second=round(1 / TICK_SECONDS),
    )


def _map_text(settings: Settings) -> str:
    """The OpenDRIVE text of the town: from its file if there is one, else from the server."""
    if settings.map_file is None:
        return Stage(connect(settings)).opendrive()
    return _read(settings.map_file)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read map {file}: {error}") from error
