"""CARLA: a car in traffic on a server of yours, driven by your policy."""

from collections.abc import Mapping
from pathlib import Path

from policyfuzz.core.errors import UsageError
from policyfuzz.core.target import Target
from policyfuzz.oracles import Below
from policyfuzz.targets.carla.policies import find_driver
from policyfuzz.targets.carla.roads import RoadMap
from policyfuzz.targets.carla.server import Settings, connect, parse_options, target_name
from policyfuzz.targets.carla.simulator import CarlaSimulator, FilmedCarlaSimulator
from policyfuzz.targets.carla.stage import TICK_SECONDS, Stage
from policyfuzz.targets.carla.traffic import input_space


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options as in `Settings`, policy as in `policies.find_driver`.

    Needs no server where `map` names the OpenDRIVE file of the town; the first episode does.
    """
    settings = parse_options(options)
    driver = find_driver(policy)
    roads = RoadMap.read(str(settings.map_file or settings.town), _map_text(settings))
    simulator = CarlaSimulator if settings.camera is None else FilmedCarlaSimulator
    return Target(
        name=target_name(options),
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
