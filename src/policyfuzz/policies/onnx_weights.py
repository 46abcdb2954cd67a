"""Reads plain ReLU networks out of ONNX files, as weights."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError

#: Operators that do not change the values of a vector.
_SHAPE_ONLY = {"Flatten", "Reshape", "Identity", "Squeeze", "Unsqueeze", "Constant"}


def read_onnx(path: Path) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Layers (weights (in, out), bias (out,)) of the network in `path`, ReLU between them."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise PolicyError(
            "reading ONNX networks needs the onnx package", hint="pip install 'policyfuzz[onnx]'"
        ) from error
    try:
        graph = onnx.load(str(path)).graph
    except Exception as error:  # the parser raises its own undocumented types
        raise PolicyError(f"{path} is not an ONNX file: {error}") from error
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    layers: list[tuple[NDArray[Any], NDArray[Any]]] = []
    for node in graph.node:
        given = [constants.get(name) for name in node.input]
        if node.op_type == "MatMul" and given[0] is not None:
            layers.append((given[0].T, np.zeros(given[0].shape[0])))
        elif node.op_type == "MatMul" and given[1] is not None:
            layers.append((given[1], np.zeros(given[1].shape[1])))
        elif node.op_type == "Gemm" and given[1] is not None:
            transposed = any(item.name == "transB" and item.i for item in node.attribute)
            weights = given[1].T if transposed else given[1]
            bias = np.zeros(weights.shape[1]) if len(given) < 3 or given[2] is None else given[2]
            layers.append((weights, bias.ravel()))
        elif node.op_type in ("Add", "Sub") and layers:
            constant = next((value for value in given if value is not None), None)
            if constant is None:
                raise _unsupported(path, "Add of two computed values")
            sign = 1 if node.op_type == "Add" else -1
            weights, bias = layers[-1]
            layers[-1] = (weights, bias + sign * constant.ravel())
        elif node.op_type == "Sub" and given[1] is not None and not given[1].any():
            continue
        elif node.op_type != "Relu" and node.op_type not in _SHAPE_ONLY:
            raise _unsupported(path, node.op_type)
    if not layers:
        raise _unsupported(path, "no layers")
    return layers


def _unsupported(path: Path, what: str) -> PolicyError:
    return PolicyError(
        f"{path.name} is not a plain ReLU network: {what}",
        hint="expected MatMul or Gemm, Add and Relu only",
    )
