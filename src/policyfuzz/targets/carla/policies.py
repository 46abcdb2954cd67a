"""Who drives the ego vehicle: your own code, a network on the state, or CARLA's autopilot."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.code_files import find_code
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.interfaces import Policy
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.policies.npz import read_npz
from policyfuzz.policies.python_calls import is_protocol
from policyfuzz.policies.uri import Address
from policyfuzz.targets.carla.drive import STATE

AUTOPILOT = "carla:autopilot"
_WAYS = (
    "give --policy py:MODULE:FUNCTION or py:FILE.py:FUNCTION, a function that returns a policy;"
    f" --policy carla:FILE.npz, a network from {len(STATE)} state values to throttle, steer and brake;"
    f" or --policy {AUTOPILOT} to try the set-up"
)


@dataclass(frozen=True, slots=True)
class Driver:
    """A policy and where it came from."""

    make: Callable[[], Policy]
    name: str
    uri: str
    sha256: str
    drives_itself: bool = False  #: the traffic manager drives, and actions are not looked at


class IdlePolicy:
    """Gives actions that nobody looks at."""

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.zeros((len(rows), 3))


class NetworkPolicy:
    """One network from the state to throttle, steer and brake."""

    def __init__(self, bank: MlpBank) -> None:
        self._bank = bank

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        states = observations["state"] if observations.dtype.names else observations
        return self._bank(states, np.zeros(len(rows), np.int64))


def find_driver(uri: str | None) -> Driver:
    """The driver that `uri` names."""
    if uri is None:
        raise PolicyError("carla comes without a model of its own", hint=_WAYS)
    if uri == AUTOPILOT:
        digest = hashlib.sha256(uri.encode()).hexdigest()
        return Driver(IdlePolicy, "CARLA's autopilot", uri, digest, drives_itself=True)
    if uri.startswith("carla:"):
        return _network(Path(uri.removeprefix("carla:")).expanduser().resolve())
    scheme, _, rest = uri.partition(":")
    if scheme != "py" or not all(rest.rpartition(":")):
        raise PolicyError(f"carla cannot use policy {uri!r}", hint=_WAYS)
    return _own_code(rest)


def _network(file: Path) -> Driver:
    bank = read_npz(file).check_shape(file.name, 1, len(STATE), (3,), _WAYS)
    uri = f"carla:{file}"
    return Driver(lambda: NetworkPolicy(bank), uri, uri, bank.sha256)


def _own_code(place: str) -> Driver:
    """The driver that the user's own function at `place` makes."""
    source = find_code(place, "policy", "py:", PolicyError)
    uri = f"py:{source.place}"
    digest = Address("py", place, {}).sha256(*source.contents)
    return Driver(lambda: _made(uri, source.thing), uri, uri, digest)


def _made(uri: str, make: Callable[[], Any]) -> Policy:
    policy: Policy = make()
    if not is_protocol(policy):
        raise PolicyError(
            f"{uri} returned {type(policy).__name__}, expected an object with begin(count) and"
            " act(observations, rows)"
        )
    return policy
