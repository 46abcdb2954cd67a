"""The controller: one small network from what the walker feels and sees to its four motors."""

import json
from functools import cache
from math import isqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.activations import Activations
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.files import is_file
from policyfuzz.policies.mlp import MlpBank, read_npz, shipped
from policyfuzz.policies.uri import read_model

OBSERVED, MOTORS = 24, 4
_MOST_JSON_BYTES = 1 << 26

_FORMATS = (
    "--policy bipedal:FILE wants an .npz of PolicyFuzz, or a .json with the pair [parameters, score] of two"
    " equally wide tanh layers"
)


class MotorPolicy:
    """Sends the outputs of one network to the motors; remembers nothing."""

    def __init__(self, bank: MlpBank) -> None:
        self._bank = bank

    def begin(self, count: int) -> None: ...

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._bank(observations, np.zeros(len(rows), np.int64))

    def activations(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
        return self.act_and_activations(observations, rows)[1]

    def act_and_activations(
        self, observations: NDArray[Any], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], Activations]:
        """Both of one pass."""
        return self._bank.with_activations(observations, np.zeros(len(rows), np.int64))


@cache
def shipped_network() -> MlpBank:
    """The network that comes with the package."""
    return read_npz(shipped("bipedal/networks.npz"))


def network_in(path: Path) -> MlpBank:
    """The network in an .npz of this package or a .json of the public kind."""
    if not is_file(path):
        raise PolicyError(f"no file {str(path)!r} with a network", hint=_FORMATS)
    bank = _read_json(path) if path.suffix == ".json" else read_npz(path)
    return bank.check_shape(path.name, 1, OBSERVED, (MOTORS,), "is this a policy for BipedalWalker?")


def _read_json(path: Path) -> MlpBank:
    """Weights (in, out) and bias of three tanh layers, one after another."""
    try:
        parameters = np.array(json.loads(read_model(path, _MOST_JSON_BYTES))[0], np.float64)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise PolicyError(f"{path.name} holds no network: {error}", hint=_FORMATS) from error
    count = parameters.size
    # p = (24 + 1) h + (h + 1) h + (h + 1) 4, solved for the width h
    width = isqrt(max(225 + count - MOTORS, 0)) - 15
    if parameters.ndim != 1 or width < 1 or width * width + 30 * width + MOTORS != count:
        raise PolicyError(
            f"{path.name} holds parameters of shape {parameters.shape}, which fit no network"
            f" {OBSERVED}-h-h-{MOTORS}",
            hint=_FORMATS,
        )
    return MlpBank.from_parameters(parameters[None], (OBSERVED, width, width, MOTORS), "tanh", "tanh")
