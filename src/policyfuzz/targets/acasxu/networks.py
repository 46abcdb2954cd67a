"""Networks of other people: five of one time bucket, in a folder of .onnx or .nnet files."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError, PolicyFuzzError
from policyfuzz.policies.mlp import Layers, MlpBank
from policyfuzz.policies.onnx_file import OnnxFile
from policyfuzz.policies.uri import read_model
from policyfuzz.targets.acasxu.encounter import ADVISORIES, OBSERVATION_CENTRE, OBSERVATION_SPAN

#: Previous advisory and time bucket, both counted from one, as the public files name them.
_FILE_NAME = re.compile(r"_([1-5])_([1-9])(?:_batch_2000)?\.(onnx|nnet)$")
#: Operators that do not change the values of a vector.
_SHAPE_ONLY = {"Flatten", "Reshape", "Identity", "Squeeze", "Unsqueeze", "Constant"}
#: Of a .nnet file; the public ones have 0.3 MB.
_MOST_NNET_BYTES = 1 << 26
Layer = tuple[NDArray[Any], NDArray[Any]]


def networks_in(folder: Path, bucket: int) -> MlpBank:
    """The five networks of time `bucket` in a folder of ONNX or .nnet files."""
    files = network_files(folder, bucket)
    return MlpBank.from_layers([_read(files[number]) for number in sorted(files)])


def network_files(folder: Path, bucket: int) -> dict[int, Path]:
    """The files of the five networks of time `bucket`, by their previous advisory, from 1."""
    try:
        paths = sorted(folder.iterdir())
    except (OSError, ValueError) as error:  # ValueError: a NUL in its name
        raise PolicyError(
            f"no folder {str(folder)!r} with ACAS Xu networks",
            hint="--policy acasxu:DIR wants a folder of .onnx or .nnet files",
        ) from error
    files = {
        int(match[1]): path
        for path in paths
        if (match := _FILE_NAME.search(path.name)) and int(match[2]) == bucket
    }
    missing = [number for number in range(1, len(ADVISORIES) + 1) if number not in files]
    if missing:
        raise PolicyError(
            f"{folder} lacks networks of bucket {bucket} for previous advisories {missing}",
            hint="expected names that end in _A_B.onnx or _A_B.nnet, A the advisory 1-5, B the bucket 1-9",
        )
    return files


def _read(path: Path) -> Layers:
    """Layers of one file, for the observations of our simulator."""
    try:
        if path.suffix == ".onnx":
            layers: Sequence[tuple[NDArray[Any], NDArray[Any]]] = read_onnx(path)
        else:
            network = read_nnet(path)
            weights, bias = network.layers[0]
            shift = (OBSERVATION_CENTRE - network.input_means) / network.input_ranges
            stretch = OBSERVATION_SPAN / network.input_ranges
            layers = [(stretch[:, None] * weights, bias + shift @ weights), *network.layers[1:]]
        bank = MlpBank.from_layers([layers])
    except PolicyFuzzError as error:
        raise PolicyError(f"{path.name}: {error.message}", error.hint) from error
    except ValueError as error:
        raise PolicyError(f"{path.name}: {error}", "expected 5 inputs and 5 outputs") from error
    if (bank.sizes[0], bank.sizes[-1]) != (5, len(ADVISORIES)):
        raise PolicyError(
            f"{path.name} maps {bank.sizes[0]} inputs to {bank.sizes[-1]} scores, expected 5 to 5",
            hint="is this an ACAS Xu network?",
        )
    return layers


@dataclass(frozen=True, slots=True)
class NNet:
    """A ReLU network and the normalisation that its inputs expect."""

    layers: list[tuple[NDArray[Any], NDArray[Any]]]  #: (weights (in, out), bias (out,)) of each layer
    input_means: NDArray[np.float64]  #: (in,)
    input_ranges: NDArray[np.float64]  #: (in,)


def read_nnet(path: Path) -> NNet:
    """The network in `path`."""
    try:
        text = read_model(path, _MOST_NNET_BYTES).decode()
        lines = [line for line in text.splitlines() if line and not line.startswith("//")]
        rows = [np.array([float(item) for item in line.split(",") if item.strip()]) for line in lines]
        sizes, means, ranges = [int(size) for size in rows[1]], rows[5], rows[6]
        if len(sizes) < 2 or min(sizes) < 1 or not ranges.all():
            raise ValueError("its sizes or ranges make no sense")
        layers: list[tuple[NDArray[Any], NDArray[Any]]] = []
        cursor = 7
        for n_in, n_out in pairwise(sizes):
            weights = np.stack(rows[cursor : cursor + n_out])
            bias = np.concatenate(rows[cursor + n_out : cursor + 2 * n_out])
            if weights.shape != (n_out, n_in) or bias.shape != (n_out,):
                raise ValueError(f"layer {len(layers)} is not {n_out} by {n_in}")
            layers.append((weights.T, bias))
            cursor += 2 * n_out
        return NNet(layers, means[: sizes[0]], ranges[: sizes[0]])
    except (ValueError, IndexError, OverflowError) as error:
        raise PolicyError(f"{path} is not a .nnet file: {error}", hint="the file may be truncated") from error


def read_onnx(path: Path) -> list[Layer]:
    """Layers (weights (in, out), bias (out,)) of the network in `path`, ReLU between them.

    Anything that is not such a chain is refused, so that no network is loaded as another one.
    """
    numpy_helper = extras.load("onnx.numpy_helper", "onnx")
    graph = OnnxFile.read(path).model.graph
    try:
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    except Exception as error:  # sizes, types and data of a damaged tensor may disagree in any way
        raise PolicyError(f"a tensor in {path} is damaged: {error}", "export the network again") from error
    chain = _Chain(path)
    for node in graph.node:
        chain.add(node, [constants.get(name) for name in node.input])
    return chain.finish()


class _Chain:
    """Puts layers together node by node."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._layers: list[Layer] = []
        self._is_open = False  #: the last layer may still get a bias
        self._has_relu = True  #: a new layer may begin

    def add(self, node: Any, given: list[NDArray[Any] | None]) -> None:
        """Take the next node; `given` are its inputs, None where they are computed."""
        kind = node.op_type
        if kind in ("MatMul", "Gemm"):
            self._add_layer(_matmul(given) if kind == "MatMul" else _gemm(node, given), kind)
        elif kind in ("Add", "Sub") and self._is_open:
            self._add_bias(kind, given)
        elif kind == "Relu" and self._is_open:
            self._is_open, self._has_relu = False, True
        elif (
            kind == "Sub"
            and not self._layers
            and len(given) > 1
            and given[1] is not None
            and not given[1].any()
        ):
            return  # the inputs are shifted by nothing
        elif kind not in _SHAPE_ONLY:
            raise self._unsupported(f"{kind} where it stands")

    def finish(self) -> list[Layer]:
        """All layers, once all nodes have been added."""
        if not self._layers:
            raise self._unsupported("no layers")
        if self._has_relu:
            raise self._unsupported("Relu at the end")
        return self._layers

    def _add_layer(self, layer: Layer | None, kind: str) -> None:
        if layer is None or layer[0].ndim != 2 or not self._has_relu:
            raise self._unsupported(f"{kind} without constant weights or without Relu before it")
        self._layers.append(layer)
        self._is_open, self._has_relu = True, False

    def _add_bias(self, kind: str, given: list[NDArray[Any] | None]) -> None:
        if len(given) != 2:
            raise self._unsupported(f"{kind} of {len(given)} tensors")
        constant = given[1] if given[1] is not None else given[0]
        weights, bias = self._layers[-1]
        if constant is None or constant.size != bias.size or (kind == "Sub" and given[1] is None):
            raise self._unsupported(f"{kind} of something else than a bias")
        self._layers[-1] = (weights, bias + (1 if kind == "Add" else -1) * constant.ravel())

    def _unsupported(self, what: str) -> PolicyError:
        return PolicyError(
            f"{self._path.name} is not a plain ReLU network: {what}",
            hint="expected MatMul or Gemm, Add and Relu in turn, and no Relu at the end",
        )


def _matmul(given: list[NDArray[Any] | None]) -> Layer | None:
    """The layer of a product with constant weights on either side."""
    matrices = [None if matrix is None or matrix.ndim != 2 else matrix for matrix in given]
    left, right = matrices if len(matrices) == 2 else (None, None)
    if left is not None:
        return left.T, np.zeros(left.shape[0])
    return None if right is None else (right, np.zeros(right.shape[1]))


def _gemm(node: Any, given: list[NDArray[Any] | None]) -> Layer | None:
    """The layer of a Gemm in its usual form: no scaling, input not transposed."""
    options = {item.name: item.f if item.name in ("alpha", "beta") else item.i for item in node.attribute}
    usual = options.get("alpha", 1.0) == 1.0 and options.get("beta", 1.0) == 1.0 and not options.get("transA")
    if not usual or len(given) < 2 or given[1] is None or given[1].ndim != 2:
        return None
    weights = given[1].T if options.get("transB") else given[1]
    bias = given[2] if len(given) > 2 and given[2] is not None else np.zeros(weights.shape[1])
    return weights, np.broadcast_to(bias.ravel(), weights.shape[1])
