"""The server that renders and simulates: its options, and the connection to it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyFuzzError, UsageError, unknown_name
from policyfuzz.core.files import absolute_path
from policyfuzz.core.target import choice, joined, number

#: Ports are two bytes; CARLA also takes the two that follow its own.
_LAST_PORT = 65_533
_PICTURE_SIZE = re.compile(r"(\d{2,4})x(\d{2,4})")
#: Loading a town takes longer than any other answer.
_LOADING_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the server is and what it plays."""

    host: str = "localhost"
    port: int = 2000
    traffic_port: int = 8000  #: of the traffic manager
    timeout_seconds: float = 10.0  #: for any answer of the server, loading a town apart
    town: str = "Town02"
    map_file: Path | None = None  #: OpenDRIVE file of the town; None asks the server
    vehicles: int = 20  #: beside the ego vehicle
    horizon: int = 100  #: steps of 0.1 s
    camera: tuple[int, int] | None = None  #: width and height of the pictures, None for no camera
    reload: bool = True  #: the town before every episode

    @property
    def address(self) -> str:
        """Host and port for a reader."""
        return f"{self.host}:{self.port}"


def parse_options(options: Mapping[str, str]) -> Settings:
    """The settings that `options` ask for."""
    usual = Settings()
    return Settings(
        host=options.get("host", usual.host),
        port=number(options, "port", usual.port, int, 1, _LAST_PORT),
        traffic_port=number(options, "traffic_port", usual.traffic_port, int, 1, _LAST_PORT),
        timeout_seconds=number(options, "timeout", usual.timeout_seconds, float, 0.1, 3600.0),
        town=options.get("town", usual.town),
        map_file=_file(options["map"]) if "map" in options else None,
        vehicles=number(options, "vehicles", usual.vehicles, int, 0, 300),
        horizon=number(options, "horizon", usual.horizon, int, 1, 100_000),
        camera=_picture_size(options["camera"]) if "camera" in options else None,
        reload=choice(options, "reload", ("yes", "no")) == "yes",
    )


def target_name(options: Mapping[str, str]) -> str:
    """The string that rebuilds the target from any folder."""
    named = dict(options)
    if "map" in named:
        named["map"] = str(_file(named["map"]))
    return joined("carla", named)


class ServerError(PolicyFuzzError):
    """The CARLA server cannot be reached, went away, or refused something."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class Server:
    """A server that has answered."""

    client: Any  #: carla.Client
    settings: Settings

    @contextmanager
    def asked_to(self, what: str) -> Iterator[None]:
        """Turn what the package raises while the server is asked to do `what` into a ServerError."""
        try:
            yield
        except RuntimeError as error:  # the package raises nothing else, whatever happened
            raise ServerError(
                f"the CARLA server at {self.settings.address} did not {what}: {error}",
                hint="is it still running, and of the version of the package carla? Start it again, then"
                " continue with policyfuzz fuzz --resume",
            ) from error

    def open_town(self) -> Any:
        """The world (carla.World) of the town, loaded if another one is open."""
        town = self.settings.town
        with self.asked_to(f"open town {town}"):
            world = self.client.get_world()
            if _short(world.get_map().name) == town:
                return world
            towns = {_short(name) for name in self.client.get_available_maps()}
            if town not in towns:
                raise unknown_name(f"town of the CARLA server at {self.settings.address}", town, towns)
            with self._patience():
                return self.client.load_world(town)

    def reload(self) -> Any:
        """The world of the same town, made anew with the settings that it has."""
        with self.asked_to("reload the town"), self._patience():
            return self.client.reload_world(False)

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """Allow for the time that loading takes."""
        usual = self.settings.timeout_seconds
        self.client.set_timeout(max(_LOADING_SECONDS, usual))
        try:
            yield
        finally:
            self.client.set_timeout(usual)


def connect(settings: Settings) -> Server:
    """The server that `settings` name, after it has answered once."""
    carla = extras.load("carla", "carla")
    try:
        client = carla.Client(settings.host, settings.port)
        client.set_timeout(settings.timeout_seconds)
        client.get_server_version()
    except RuntimeError as error:
        raise ServerError(
            f"no CARLA server answers at {settings.address} within {settings.timeout_seconds:g} s: {error}",
            hint="start one in the folder of CARLA 0.9.16 with"
            f" ./CarlaUE4.sh -RenderOffScreen -carla-rpc-port={settings.port}"
            " or say where it runs with carla:host=HOST,port=PORT",
        ) from error
    return Server(client, settings)


def _file(text: str) -> Path:
    path = absolute_path(text).resolve()
    if not path.is_file():
        raise UsageError(
            f"no map file {str(path)!r}", hint="give map=FILE.xodr, the OpenDRIVE file of the town"
        )
    return path


def _picture_size(text: str) -> tuple[int, int]:
    match = _PICTURE_SIZE.fullmatch(text)
    if match is None or int(match[1]) % 2 or int(match[2]) % 2:
        raise UsageError(f"camera is {text!r}, expected WIDTHxHEIGHT such as 384x160, both even")
    return int(match[1]), int(match[2])


def _short(name: str) -> str:
    """The name of a map without its folder: Carla/Maps/Town02 is Town02."""
    return name.rsplit("/", 1)[-1]
