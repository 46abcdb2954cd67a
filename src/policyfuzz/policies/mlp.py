"""Perceptrons, one or many of one shape: their compiled kernel, and the files they come in."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.activations import Activations, Layer, no_hidden_layers
from policyfuzz.core.compiled import kernel
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.files import is_file
from policyfuzz.core.zip_files import DamagedZip, read_arrays
from policyfuzz.policies.network import BLOCK_ROWS
from policyfuzz.policies.uri import MOST_BYTES, read_model

LINEAR, RELU, TANH = 0, 1, 2
ACTIVATIONS = {"linear": LINEAR, "relu": RELU, "tanh": TANH}
_FORMAT = "expected an .npz file with numbers: parameters (networks, p) and whole sizes"
#: One network: its layers as (weights (in, out), bias (out,)).
Layers = Sequence[tuple[NDArray[Any], NDArray[Any]]]


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
        if not parameters.size:
            raise PolicyError(f"parameters have shape {parameters.shape}, expected one network or more")
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
        """The bank itself; raises unless it holds so many `networks` from `inputs` to one of `outputs`."""
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
        return self._run(inputs, which, np.empty((len(inputs), 0)), 0)

    def with_activations(
        self, inputs: NDArray[Any], which: NDArray[np.int64], tells_network: bool = False
    ) -> tuple[NDArray[np.float64], Activations]:
        """What a call gives, and what the hidden layers give on the way, in the same pass.

        With `tells_network` they come behind a one for the network that the row goes through, zeros for the
        others.
        """
        layers, first, width = _inner_layers(self.sizes, len(self.parameters) if tells_network else 0)
        values = np.zeros((len(inputs), width))
        return self._run(inputs, which, values, first), Activations(values, layers)

    def _run(
        self, inputs: NDArray[Any], which: NDArray[np.int64], hidden: NDArray[np.float64], first: int
    ) -> NDArray[np.float64]:
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
            hidden,
            first,
        )
        return outputs


@cache
def _inner_layers(sizes: tuple[int, ...], networks: int) -> tuple[tuple[Layer, ...], int, int]:
    """Layers of activations of networks with these widths, the first column of hidden ones, and all columns.

    The first layer tells which of `networks` acts, unless there are 0.
    """
    if len(sizes) < 3:
        raise no_hidden_layers()
    hidden = [Layer(f"hidden {number}", width) for number, width in enumerate(sizes[1:-1], 1)]
    layers = [Layer("acting network", networks), *hidden] if networks else hidden
    return tuple(layers), networks, networks + sum(sizes[1:-1])


def shipped(name: str) -> Traversable:
    """The file of a model that comes with the package, such as acasxu/networks.npz."""
    return resources.files("policyfuzz.models").joinpath(name)


def read_npz(file: Traversable) -> MlpBank:
    """The networks in `file`, in the format of `write_npz`."""
    if isinstance(file, Path) and not is_file(file):
        raise PolicyError(f"no file {str(file)!r} with networks")
    content = read_model(file) if isinstance(file, Path) else file.read_bytes()
    return bank_of(file.name, plain_arrays(file.name, content, _FORMAT))


def plain_arrays(name: str, content: bytes, hint: str) -> dict[str, NDArray[Any]]:
    """All arrays of the .npz file called `name`; `hint` says what they should be."""
    try:
        return read_arrays(content, MOST_BYTES)
    except DamagedZip as error:
        raise PolicyError(f"{name} holds no networks: {error}", hint) from error


def bank_of(name: str, arrays: Mapping[str, NDArray[Any]]) -> MlpBank:
    """The networks in `arrays` of the file `name`: parameters (networks, p) and sizes.

    `hidden` and `output` name the activation of the hidden layers and of the last one, if not ReLU and none.
    """
    try:
        parameters, widths = arrays["parameters"], arrays["sizes"]
    except KeyError as error:
        raise PolicyError(f"{name} holds no networks: it has no {error}", _FORMAT) from error
    if parameters.dtype.kind not in "fiu" or widths.dtype.kind not in "iu":
        problem = f"parameters are {parameters.dtype} and sizes {widths.dtype}"
        raise PolicyError(f"{name} holds no networks: {problem}", _FORMAT)
    if widths.ndim != 1 or len(widths) < 2 or widths.min() < 1:
        raise PolicyError(f"{name} holds no networks: its sizes are {_shortened(widths)}", _FORMAT)
    sizes = tuple(int(size) for size in widths)
    hidden = setting(arrays["hidden"]) if "hidden" in arrays else "relu"
    output = setting(arrays["output"]) if "output" in arrays else "linear"
    return MlpBank.from_parameters(parameters, sizes, hidden, output)


def setting(array: NDArray[Any]) -> str:
    """The text in an array that holds one, such as the name of an activation."""
    return str(array) if array.ndim == 0 else _shortened(array)


def _shortened(array: NDArray[Any]) -> str:
    """An array for a reader of an error, however large it is."""
    return f"{array.ravel()[:8].tolist()} of shape {array.shape}"


def write_npz(path: Path, bank: MlpBank) -> None:
    """Write `bank` into `path`, weights as float32."""
    np.savez_compressed(
        path,
        parameters=bank.parameters.astype(np.float32),
        sizes=np.array(bank.sizes, np.int64),
        hidden=bank.activations[0] if len(bank.activations) > 1 else "relu",
        output=bank.activations[-1],
    )


def _sizes(network: Layers) -> tuple[int, ...]:
    """Widths of all layers, after checking that they fit together."""
    sizes = [*network[0][0].shape[:1]]
    for number, (weights, bias) in enumerate(network):
        if not {weights.dtype.kind, bias.dtype.kind} <= set("fiu"):
            raise PolicyError(
                f"layer {number} has {weights.dtype} weights and {bias.dtype} bias, expected numbers"
            )
        if weights.ndim != 2 or weights.shape[0] != sizes[-1] or bias.shape != (weights.shape[1],):
            raise PolicyError(
                f"layer {number} has weights {weights.shape} and bias {bias.shape}, "
                f"expected weights ({sizes[-1] if sizes else 'm'}, n) and bias (n,)",
                hint="weights are stored (in, out)",
            )
        sizes.append(weights.shape[1])
    return tuple(sizes)


@kernel
def forward(
    parameters: NDArray[np.floating],
    sizes: NDArray[np.int64],
    activations: NDArray[np.int64],
    inputs: NDArray[np.floating],
    which: NDArray[np.int64],
    outputs: NDArray[np.floating],
    hidden: NDArray[np.floating],
    first_column: int,
) -> None:
    """Row i of `inputs` (n, in) through network `which[i]` into row i of `outputs` (n, out).

    What the hidden layers give goes into `hidden` (n, k) from `first_column` on, unless k is 0. If there are
    columns in front of it, that of the network gets a one.
    `parameters` (networks, p) holds for each network its layers one after another, each a weight
    matrix (in, out) followed by a bias (out,).
    """
    rows_total, networks = inputs.shape[0], parameters.shape[0]
    layers = sizes.shape[0] - 1
    widest = sizes.max()
    zero = parameters.dtype.type(0)
    first = np.zeros(BLOCK_ROWS * widest, parameters.dtype)
    second = np.zeros(BLOCK_ROWS * widest, parameters.dtype)
    rows = np.empty(BLOCK_ROWS, np.int64)
    for network in range(networks):
        flat = parameters[network]
        cursor = 0
        while True:
            filled = 0
            block = first[: BLOCK_ROWS * sizes[0]].reshape(BLOCK_ROWS, sizes[0])
            while cursor < rows_total and filled < BLOCK_ROWS:
                if which[cursor] == network:
                    rows[filled] = cursor
                    for column in range(sizes[0]):
                        block[filled, column] = inputs[cursor, column]
                    filled += 1
                cursor += 1
            if filled == 0:
                break
            source, target = first, second
            offset = 0
            column_before = first_column
            if first_column > 0:
                for row in range(filled):
                    hidden[rows[row], network] = 1
            for layer in range(layers):
                n_in, n_out = sizes[layer], sizes[layer + 1]
                weights = flat[offset : offset + n_in * n_out].reshape(n_in, n_out)
                offset += n_in * n_out
                bias = flat[offset : offset + n_out]
                offset += n_out
                result = target[: BLOCK_ROWS * n_out].reshape(BLOCK_ROWS, n_out)
                np.dot(source[: BLOCK_ROWS * n_in].reshape(BLOCK_ROWS, n_in), weights, result)
                if activations[layer] == RELU:
                    for row in range(BLOCK_ROWS):
                        for column in range(n_out):
                            value = result[row, column] + bias[column]
                            # written so that NaN stays NaN
                            result[row, column] = zero if value < zero else value
                elif activations[layer] == TANH:
                    for row in range(BLOCK_ROWS):
                        for column in range(n_out):
                            result[row, column] = np.tanh(result[row, column] + bias[column])
                else:
                    for row in range(BLOCK_ROWS):
                        for column in range(n_out):
                            result[row, column] += bias[column]
                if hidden.shape[1] > 0 and layer < layers - 1:
                    for row in range(filled):
                        for column in range(n_out):
                            hidden[rows[row], column_before + column] = result[row, column]
                    column_before += n_out
                source, target = target, source
            scores = source[: BLOCK_ROWS * sizes[-1]].reshape(BLOCK_ROWS, sizes[-1])
            for row in range(filled):
                for column in range(sizes[-1]):
                    outputs[rows[row], column] = scores[row, column]
