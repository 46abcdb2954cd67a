"""CARLA: a car in traffic on your server, driven by your code, a network on the state, or the autopilot."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.actions import ActionSpace
from policyfuzz.core.activations import Activations
from policyfuzz.core.code_files import find_code
from policyfuzz.core.errors import PolicyError, UsageError
from policyfuzz.core.files import absolute_path
from policyfuzz.core.interfaces import Policy
from policyfuzz.core.oracle import Below
from policyfuzz.core.target import Target
from policyfuzz.policies.loaded import LoadedPolicy
from policyfuzz.policies.mlp import MlpBank, read_npz
from policyfuzz.policies.python_calls import is_protocol
from policyfuzz.policies.uri import Address
from policyfuzz.targets.carla.drive import STATE
from policyfuzz.targets.carla.roads import RoadMap
from policyfuzz.targets.carla.server import Settings, connect, parse_options, target_name
from policyfuzz.targets.carla.simulator import CarlaSimulator, FilmedCarlaSimulator
from policyfuzz.targets.carla.stage import TICK_SECONDS, Stage
from policyfuzz.targets.carla.traffic import input_space

AUTOPILOT = "carla:autopilot"
_WAYS = (
    "give --policy py:MODULE:FUNCTION or py:FILE.py:FUNCTION, a function that returns a policy;"
    f" --policy carla:FILE.npz, a network from {len(STATE)} state values to throttle, steer and brake;"
    f" or --policy {AUTOPILOT} to try the set-up"
)

#: Throttle, steer and brake.
_LEAST, _MOST = np.array([0.0, -1.0, 0.0]), np.ones(3)


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options as in `Settings`, policy as in `find_driver`.

    Needs no server where `map` names the OpenDRIVE file of the town; the first episode does.
    """
    settings = parse_options(options)
    driver = find_driver(policy)
    roads = RoadMap.read(str(settings.map_file or settings.town), _map_text(settings))
    simulator = CarlaSimulator if settings.camera is None else FilmedCarlaSimulator
    drives_itself = driver.uri == AUTOPILOT  # the traffic manager drives, and actions are ignored
    return Target(
        name=target_name(options),
        inputs=input_space(roads, settings.vehicles),
        simulator=lambda: simulator(settings, roads, drives_itself),
        policy=driver.make,
        oracle=Below("impulse_margin", 0.0, kind="collision"),
        horizon=settings.horizon,
        max_workers=1,  # one server has one world
        policy_name=driver.name,
        policy_uri=driver.uri,
        policy_sha256=driver.sha256,
        batch_size=8,
        # the autopilot's actions are ignored, so others would be, too
        actions=None if drives_itself else ActionSpace.box(_LEAST, _MOST, ("throttle", "steer", "brake")),
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


class IdlePolicy:
    """Gives actions that are ignored."""

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.zeros((len(rows), 3))


class NetworkPolicy:
    """One network from the state to throttle, steer and brake."""

    def __init__(self, bank: MlpBank) -> None:
        self._bank = bank

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._bank(self._seen(observations), np.zeros(len(rows), np.int64))

    def activations(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
        return self.act_and_activations(observations, rows)[1]

    def act_and_activations(
        self, observations: NDArray[Any], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], Activations]:
        """Both of one pass."""
        return self._bank.with_activations(self._seen(observations), np.zeros(len(rows), np.int64))

    @staticmethod
    def _seen(observations: NDArray[Any]) -> NDArray[Any]:
        return observations["state"] if observations.dtype.names else observations


def find_driver(uri: str | None) -> LoadedPolicy:
    """The driver that `uri` names."""
    if uri is None:
        raise PolicyError("carla has no default policy", hint=_WAYS)
    if uri == AUTOPILOT:
        digest = hashlib.sha256(uri.encode()).hexdigest()
        return LoadedPolicy(IdlePolicy, "CARLA's autopilot", uri, digest)
    if uri.startswith("carla:"):
        return _network(absolute_path(uri.removeprefix("carla:"), PolicyError).resolve())
    scheme, _, rest = uri.partition(":")
    if scheme != "py" or not all(rest.rpartition(":")):
        raise PolicyError(f"carla cannot use policy {uri!r}", hint=_WAYS)
    return _own_code(rest)


def _network(file: Path) -> LoadedPolicy:
    bank = read_npz(file).check_shape(file.name, 1, len(STATE), (3,), _WAYS)
    uri = f"carla:{file}"
    return LoadedPolicy(lambda: NetworkPolicy(bank), uri, uri, bank.sha256)


def _own_code(place: str) -> LoadedPolicy:
    """The driver that the user's own function at `place` makes."""
    source = find_code(place, "policy", "py:", PolicyError)
    uri = f"py:{source.place}"
    digest = Address("py", place, {}).sha256(*source.contents)
    return LoadedPolicy(lambda: _made(uri, source.thing), uri, uri, digest)


def _made(uri: str, make: Callable[[], Any]) -> Policy:
    policy: Policy = make()
    if not is_protocol(policy):
        raise PolicyError(
            f"{uri} returned {type(policy).__name__}, expected an object with begin(count) and"
            " act(observations, rows)"
        )
    return policy
