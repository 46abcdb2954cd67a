"""Networks that can be trained again: what every file format must offer, and perceptrons of one shape."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.repairing.states import States


class Decision(StrEnum):
    """How an action follows from what a network gives."""

    LOWEST = "lowest"  #: the place of the lowest score
    HIGHEST = "highest"  #: the place of the highest score
    NUMBERS = "numbers"  #: the numbers are the action


@dataclass(frozen=True, slots=True)
class Examples:
    """What networks are given, m times, and what should come of it."""

    inputs: NDArray[Any]  #: (m, ...)
    which: NDArray[np.int64]  #: (m,) the network
    actions: NDArray[np.float64]  #: (m, a) of one network; of scores, (m, 1) the place of the best


class Trainable(Protocol):
    """The networks of a policy, with weights that torch can change."""

    @property
    def decision(self) -> Decision:
        """How an action follows from the outputs."""
        ...

    def examples(self, states: States) -> Examples:
        """What the networks are given in `states`, one or several examples for each."""
        ...

    def parameters(self) -> list[Any]:
        """Tensors that may be changed."""
        ...

    def outputs(self, inputs: Any, which: Any) -> Any:
        """Scores or numbers (m, k) for a tensor of inputs (m, ...) and one of networks (m,)."""
        ...

    def write(self, path: Path) -> None:
        """Write the policy with its present weights to `path`, as the kind of file that it came from."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """A policy in a file, or one that comes with the package."""

    load: Callable[[], Trainable]  #: its networks, each time anew
    suffix: str  #: of the file that it is written to; empty for a folder
    uri: Callable[[Path], str]  #: of the policy that was written to a path


class TorchBank:
    """Perceptrons of one shape as tensors."""

    def __init__(self, bank: MlpBank) -> None:
        torch = extras.load("torch", "repair")
        self._sizes, self._activations = bank.sizes, bank.activations
        self.layers: list[list[tuple[Any, Any]]] = [
            [
                tuple(torch.tensor(part, dtype=torch.float32, requires_grad=True) for part in layer)
                for layer in bank.layers(network)
            ]
            for network in range(len(bank.parameters))
        ]

    def parameters(self) -> list[Any]:
        """All weights and biases."""
        return [part for network in self.layers for layer in network for part in layer]

    def __call__(self, inputs: Any, which: Any) -> Any:
        """Outputs (m, out) for `inputs` (m, in) of the networks `which` (m,)."""
        torch = extras.load("torch", "repair")
        outputs = inputs.new_zeros((len(inputs), self._sizes[-1]))
        for number in torch.unique(which).tolist():
            rows = torch.nonzero(which == number)[:, 0]
            outputs = outputs.index_copy(0, rows, self._through(self.layers[number], inputs[rows]))
        return outputs

    def _through(self, layers: list[tuple[Any, Any]], values: Any) -> Any:
        torch = extras.load("torch", "repair")
        functions = {"linear": lambda one: one, "relu": torch.relu, "tanh": torch.tanh}
        for (weights, bias), activation in zip(layers, self._activations, strict=True):
            values = functions[activation](values @ weights + bias)
        return values

    def flat(self) -> NDArray[np.float32]:
        """(networks, p) all weights, in the order of `MlpBank.parameters`."""
        return np.stack(
            [
                np.concatenate([part.detach().numpy().ravel() for layer in network for part in layer])
                for network in self.layers
            ]
        )
