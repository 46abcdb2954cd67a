"""The connection to a CARLA server: every failure of it becomes one error that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from policyfuzz import extras
from policyfuzz.errors import PolicyFuzzError, unknown_name
from policyfuzz.targets.carla.options import Settings

#: Loading a town takes longer than any other answer.
_LOADING_SECONDS = 120.0


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
                hint="is it still running, and of the version of the package carla? Start it again, then go"
                " on with policyfuzz fuzz --resume",
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


def _short(name: str) -> str:
    """The name of a map without its folder: Carla/Maps/Town02 is Town02."""
    return name.rsplit("/", 1)[-1]
