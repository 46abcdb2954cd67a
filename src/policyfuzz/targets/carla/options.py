"""The options of the target: what they are called, what they may be, and what they are by default."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from policyfuzz.errors import UsageError
from policyfuzz.targets.options import choice, number

#: Ports are two bytes; CARLA also takes the two that follow its own.
_LAST_PORT = 65_533
_PICTURE_SIZE = re.compile(r"(\d{2,4})x(\d{2,4})")


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


def parse(options: Mapping[str, str]) -> Settings:
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
    text = ",".join(f"{key}={value}" for key, value in sorted(named.items()))
    return f"carla:{text}" if text else "carla"


def _file(text: str) -> Path:
    path = Path(text).expanduser().resolve()
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
