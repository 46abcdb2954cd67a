"""Plain multi-layer perceptrons: a bank of equally shaped networks, evaluated row by row."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError

#: One network: its layers as (weights (in, out), bias (out,)).
Layers = Sequence[tuple[NDArray[Any], NDArray[Any]]]

ACTIVATIONS = {"linear": 0, "relu": 1, "tanh": 2}


@dataclass(frozen=True, slots=True)
class MlpBank:
    """Networks of one shape; every row of a batch names the network it goes through.

    The result of a row does not depend on the other rows, bit for bit. Arithmetic is float64 whatever
    the weights were stored in: more work than float32, but a score that another processor rounds
    differently almost never changes which action is best.
    """

    parameters: NDArray[np.float64]  #: (networks, p) weights (in, out) and bias of each layer, flattened
    sizes: tuple[int, ...]  #: width of the input, of each hidden layer, and of the output
    activations: tuple[str, ...]  #: one per layer

    @classmethod
    def from_layers(
        cls, networks: Sequence[Layers], hidden: str = "relu", output: str = "linear"
    ) -> "MlpBank":
        """Build a bank from `networks`, which must agree in shape and hold finite numbers only."""
        shapes = [_sizes(network) for network in networks]
        if len(set(shapes)) != 1:
            raise PolicyError(
                f"networks of one bank must have one shape, got {sorted(set(shapes))}",
                hint="check that the files belong to one set",
            )
        parameters = np.stack(
            [np.concatenate([np.ravel(part) for layer in network for part in layer]) for network in networks]
        )
        return cls.from_parameters(parameters, shapes[0], hidden, output)

    @classmethod
    def from_parameters(
        cls, parameters: NDArray[Any], sizes: tuple[int, ...], hidden: str = "relu", output: str = "linear"
    ) -> "MlpBank":
        """Build a bank from flat `parameters` (networks, p), which must be finite."""
        wanted = sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes))
        if parameters.ndim != 2 or parameters.shape[1] != wanted:
            raise PolicyError(
                f"parameters have shape {parameters.shape}, expected (networks, {wanted}) for widths {sizes}",
                hint="the file is damaged, or its sizes belong to other networks",
            )
        for activation in (hidden, output):
            if activation not in ACTIVATIONS:
                raise PolicyError(
                    f"activation {activation!r} is not known", hint=f"known: {', '.join(ACTIVATIONS)}"
                )
        finite = np.isfinite(parameters).all(axis=1)
        if not finite.all():
            raise PolicyError(
                f"network {int(finite.argmin())} has weights that are NaN or infinite",
                hint="the training diverged or the file is damaged: export the weights again",
            )
        activations = (hidden,) * (len(sizes) - 2) + (output,)
        return cls(np.ascontiguousarray(parameters, np.float64), sizes, activations)

    @property
    def sha256(self) -> str:
        """Digest of shape, activations and weights."""
        digest = hashlib.sha256(repr((self.sizes, self.activations)).encode())
        digest.update(self.parameters.tobytes())
        return digest.hexdigest()

    def check_shape(
        self, whose: str, networks: int, inputs: int, outputs: tuple[int, ...], hint: str
    ) -> "MlpBank":
        """The bank itself, once it is sure to hold so many networks from `inputs` to one of `outputs`."""
        given = (len(self.parameters), self.sizes[0])
        if given != (networks, inputs) or self.sizes[-1] not in outputs:
            raise PolicyError(
                f"{whose} holds {given[0]} network(s) from {given[1]} to {self.sizes[-1]} numbers,"
                f" expected {networks} from {inputs} to {' or '.join(map(str, outputs))}",
                hint,
            )
        return self

    def layers(self, network: int = 0) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Weights (in, out) and bias (out,) of each layer of one network."""
        layers, offset = [], 0
        for n_in, n_out in pairwise(self.sizes):
            part = self.parameters[network, offset : offset + (n_in + 1) * n_out]
            layers.append((part[: n_in * n_out].reshape(n_in, n_out), part[n_in * n_out :]))
            offset += (n_in + 1) * n_out
        return layers

    def __call__(self, inputs: NDArray[Any], which: NDArray[np.int64]) -> NDArray[np.float64]:
        """Map `inputs` (n, in) through networks `which` (n,) to outputs (n, out)."""
        from policyfuzz.policies.mlp_kernel import forward

        if inputs.ndim != 2 or inputs.shape[1] != self.sizes[0]:
            raise PolicyError(
                f"observations have shape {inputs.shape}, the networks expect (n, {self.sizes[0]})",
                hint="does this policy belong to this target?",
            )
        outputs = np.empty((len(inputs), self.sizes[-1]))
        forward(
            self.parameters,
            np.array(self.sizes, np.int64),
            np.array([ACTIVATIONS[name] for name in self.activations], np.int64),
            np.ascontiguousarray(inputs, np.float64),
            which,
            outputs,
        )
        return outputs


def _sizes(network: Layers) -> tuple[int, ...]:
    """Widths of all layers, after checking that they fit together."""
    sizes = [network[0][0].shape[0]]
    for number, (weights, bias) in enumerate(network):
        if weights.ndim != 2 or weights.shape[0] != sizes[-1] or bias.shape != (weights.shape[1],):
            raise PolicyError(
                f"layer {number} has weights {weights.shape} and bias {bias.shape}, "
                f"expected weights ({sizes[-1]}, n) and bias (n,)",
                hint="weights are stored (in, out)",
            )
        sizes.append(weights.shape[1])
    return tuple(sizes)
