"""The drivers: perceptrons that see what MetaDrive's expert sees, and where their weights come from."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.activations import Activations
from policyfuzz.core.errors import MissingExtra
from policyfuzz.core.extras import install_hint
from policyfuzz.policies.mlp import MlpBank, read_npz, shipped

OBSERVATION_SIZE = 275
#: Steering (left is positive) and throttle or, if negative, brake.
ACTION_SIZE = 2
#: When the expert was trained, the bends of this road and of the next were counted the other way round.
_MIRRORED = (10, 15)
_EXPERT_LAYERS = ("fc_1", "fc_2", "fc_out")


class DrivingPolicy:
    """Drives by a perceptron; of four outputs the first two are the action, the rest tell how to explore.

    Episodes are evaluated one by one, so none depends on another. (MetaDrive runs one episode at a time; the
    bank's own blocks of 64 rows would then be 63 rows of padding.)
    """

    def __init__(self, bank: MlpBank) -> None:
        self._bank = bank
        self._layers = bank.layers()
        self._activations = bank.activations

    def begin(self, count: int) -> None:
        pass

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.array([self._through(row)[-1][:ACTION_SIZE] for row in observations.astype(np.float64)])

    def activations(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
        return self.act_and_activations(observations, rows)[1]

    def act_and_activations(
        self, observations: NDArray[Any], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], Activations]:
        """Both of one pass."""
        *hidden, outputs = map(
            np.array, zip(*map(self._through, observations.astype(np.float64)), strict=True)
        )
        return outputs[:, :ACTION_SIZE], Activations.hidden(hidden)

    def _through(self, values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """What each layer gives for one observation."""
        found = []
        for (weights, bias), activation in zip(self._layers, self._activations, strict=True):
            values = values @ weights + bias
            if activation == "tanh":
                values = np.tanh(values)
            elif activation == "relu":
                values = np.maximum(values, 0.0)
            found.append(values)
        return found


def expert() -> MlpBank:
    """The PPO expert that comes with the package metadrive, for the observations of our simulator."""
    package = find_spec("metadrive")  # to import it takes seconds
    if package is None or package.origin is None:
        raise MissingExtra("metadrive", install_hint("metadrive"))
    file = Path(package.origin).parent / "examples/ppo_expert/expert_weights.npz"
    with np.load(file, allow_pickle=False) as archive:
        return from_expert_weights(archive)


def from_expert_weights(archive: Mapping[str, NDArray[Any]]) -> MlpBank:
    """The expert's network; what it wants mirrored is mirrored in its first layer."""
    layers = [
        tuple(np.asarray(archive[f"default_policy/{name}/{part}"], np.float64) for part in ("kernel", "bias"))
        for name in _EXPERT_LAYERS
    ]
    weights, bias = layers[0][0].copy(), layers[0][1].copy()
    for column in _MIRRORED:  # w (1 - x) = w - w x
        bias += weights[column]
        weights[column] *= -1
    return MlpBank.from_layers([[(weights, bias), *layers[1:]]], hidden="tanh")  # type: ignore[list-item]


def cloned() -> MlpBank:
    """The network that was cloned from the expert and comes with PolicyFuzz."""
    return read_npz(shipped("driving/networks.npz"))


def network_in(file: Path) -> MlpBank:
    """The network in an .npz file of the user."""
    hint = "it must see what MetaDrive's expert sees, and give steering and throttle first"
    outputs = (ACTION_SIZE, 2 * ACTION_SIZE)
    return read_npz(file).check_shape(file.name, 1, OBSERVATION_SIZE, outputs, hint)
