"""The student's network in torch, its files, and its way into the package's format."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from policyfuzz.policies.mlp import MlpBank, write_npz

OBSERVED, MOTORS = 24, 4


@dataclass(frozen=True, slots=True)
class Scaling:
    """Brings observations to zero mean and unit spread."""

    mean: Tensor  #: (24,)
    spread: Tensor  #: (24,)

    @classmethod
    def of(cls, observations: NDArray[np.float32]) -> "Scaling":
        """The scaling for `observations` (n, 24)."""
        spread = np.maximum(observations.std(axis=0), 0.05)
        return cls(torch.from_numpy(observations.mean(axis=0)), torch.from_numpy(spread))

    def __call__(self, observations: Tensor) -> Tensor:
        return (observations - self.mean) / self.spread


def make_network(widths: tuple[int, ...], outputs: int, seed: int) -> nn.Sequential:
    """A perceptron with tanh layers of these `widths` and a linear last one."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    n_in = OBSERVED
    for width in widths:
        layers += [nn.Linear(n_in, width), nn.Tanh()]
        n_in = width
    return nn.Sequential(*layers, nn.Linear(n_in, outputs))


def to_bank(network: nn.Sequential, scaling: Scaling) -> MlpBank:
    """The network as the target runs it: scaling worked into the first layer, tanh behind the last."""
    linear = [layer for layer in network if isinstance(layer, nn.Linear)]
    weights = [layer.weight.detach().double().T for layer in linear]
    biases = [layer.bias.detach().double() for layer in linear]
    weights[0] = weights[0] / scaling.spread.double()[:, None]
    biases[0] = biases[0] - scaling.mean.double() @ weights[0]
    layers = [(w.numpy(), b.numpy()) for w, b in zip(weights, biases, strict=True)]
    return MlpBank.from_layers([layers], hidden="tanh", output="tanh")


def export(path: Path, network: nn.Sequential, scaling: Scaling) -> None:
    """Write the network into an .npz of the package."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    write_npz(partial, to_bank(network, scaling))
    partial.replace(path)


def save(path: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint, whole or not at all."""
    partial = path.with_suffix(".partial")
    torch.save(content, partial)
    partial.replace(path)


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint."""
    content: dict[str, Any] = torch.load(path, weights_only=True)
    return content


def claim(folder: Path, options: dict[str, object]) -> None:
    """Make a work folder, or check that the checkpoint in it belongs to the same options."""
    folder.mkdir(parents=True, exist_ok=True)
    note = folder / "options.json"
    if not note.exists():
        note.write_text(json.dumps(options) + "\n")
    elif json.loads(note.read_text()) != json.loads(json.dumps(options)):
        raise SystemExit(f"{folder} holds a run with other options: give another folder, or empty it")
