"""An ONNX network as a function that torch can differentiate, and the same file with other weights."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from policyfuzz.core import extras
from policyfuzz.core.errors import UsageError
from policyfuzz.policies.onnx_layers import nodes_before


class TorchGraph:
    """The graph of an ONNX file; weights and biases of its layers can be changed."""

    def __init__(self, content: bytes, output: str) -> None:
        """`content` is a whole network in the format of ONNX, `output` the tensor with the actions."""
        self._torch = extras.load("torch", "repair")
        onnx, self._helper = extras.load("onnx", "repair"), extras.load("onnx.numpy_helper", "repair")
        self._model = onnx.load_model_from_string(content)
        graph = self._model.graph
        needed = nodes_before(graph, output)
        self._nodes = [node for place, node in enumerate(graph.node) if place in needed]
        self._output = output
        self._constants = {one.name: self._tensor(one) for one in graph.initializer}
        for node in self._nodes:
            if node.op_type == "Constant":
                self._constants[node.output[0]] = self._tensor(node.attribute[0].t)
        inputs = [one.name for one in graph.input if one.name not in self._constants]
        unknown = sorted({node.op_type for node in self._nodes} - {*_OPERATORS, "Constant"})
        if unknown or len(inputs) != 1:
            what = f"operators {', '.join(unknown)}" if unknown else f"{len(inputs)} inputs"
            raise UsageError(
                f"the ONNX network cannot be repaired: it has {what}",
                f"known are {', '.join(sorted(_OPERATORS))}, and one input",
            )
        self._input = inputs[0]
        self._weights = self._trained()

    def parameters(self) -> list[Any]:
        """Weights and biases that may be changed."""
        return list(self._weights.values())

    def __call__(self, inputs: Any) -> Any:
        """The output for a tensor of inputs (m, ...)."""
        values = {**self._constants, self._input: inputs, **self._weights}
        for node in self._nodes:
            if node.op_type != "Constant":
                given = [values[name] if name else None for name in node.input]
                options = {one.name: one for one in node.attribute}
                values[node.output[0]] = _OPERATORS[node.op_type](given, options)
        return values[self._output]

    def content(self) -> bytes:
        """The file with the present weights."""
        for tensor in self._model.graph.initializer:
            if tensor.name in self._weights:
                old = self._helper.to_array(tensor)
                new = self._weights[tensor.name].detach().numpy().astype(old.dtype).reshape(old.shape)
                tensor.CopyFrom(self._helper.from_array(np.ascontiguousarray(new), tensor.name))
        return bytes(self._model.SerializeToString(deterministic=True))

    def _tensor(self, stored: Any) -> Any:
        array = self._helper.to_array(stored)
        return self._torch.from_numpy(array.astype(np.float32) if array.dtype.kind == "f" else array.copy())

    def _trained(self) -> Mapping[str, Any]:
        """Weights of layers, and what is added to their products, as far as they are stored as weights."""
        stored = {one.name for one in self._model.graph.initializer}
        behind: set[str] = set()
        found: dict[str, Any] = {}
        for node in self._nodes:
            is_layer = node.op_type in ("Gemm", "MatMul")
            is_bias = node.op_type == "Add" and bool(behind.intersection(node.input))
            for name in node.input if is_layer or is_bias else ():
                if name in stored and self._constants[name].is_floating_point():
                    found[name] = self._constants[name].clone().requires_grad_()
            if is_layer:
                behind.update(node.output)
        return found


def _option(options: Mapping[str, Any], name: str, default: float) -> float:
    """The attribute called `name`, a number."""
    return float(options[name].f) if name in options else default


def _gemm(given: list[Any], options: Mapping[str, Any]) -> Any:
    left, right = given[:2]
    left = left.T if "transA" in options and options["transA"].i else left
    right = right.T if "transB" in options and options["transB"].i else right
    product = _option(options, "alpha", 1.0) * (left @ right)
    if len(given) < 3 or given[2] is None:
        return product
    return product + _option(options, "beta", 1.0) * given[2]


def _functional(name: str, option: str, default: float) -> "_Operator":
    def operator(given: list[Any], options: Mapping[str, Any]) -> Any:
        functions = extras.load("torch.nn.functional", "repair")
        return getattr(functions, name)(given[0], _option(options, option, default))

    return operator


def _clip(given: list[Any], _options: Mapping[str, Any]) -> Any:
    low, high = (given[place] if len(given) > place else None for place in (1, 2))
    return given[0].clamp(low, high)


def _softmax(given: list[Any], options: Mapping[str, Any]) -> Any:
    return given[0].softmax(dim=options["axis"].i if "axis" in options else -1)


#: From what an operator is given, and its attributes, to what it gives.
_Operator = Callable[[list[Any], Mapping[str, Any]], Any]
_OPERATORS: dict[str, _Operator] = {
    "Gemm": _gemm,
    "MatMul": lambda given, _options: given[0] @ given[1],
    "Add": lambda given, _options: given[0] + given[1],
    "Sub": lambda given, _options: given[0] - given[1],
    "Mul": lambda given, _options: given[0] * given[1],
    "Div": lambda given, _options: given[0] / given[1],
    "Relu": lambda given, _options: given[0].relu(),
    "Tanh": lambda given, _options: given[0].tanh(),
    "Sigmoid": lambda given, _options: given[0].sigmoid(),
    "Identity": lambda given, _options: given[0],
    "Flatten": lambda given, _options: given[0].reshape(len(given[0]), -1),
    "LeakyRelu": _functional("leaky_relu", "alpha", 0.01),
    "Elu": _functional("elu", "alpha", 1.0),
    "Clip": _clip,
    "Softmax": _softmax,
}
