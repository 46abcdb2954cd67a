"""Hidden activations of ONNX networks: a copy of the graph that gives them as further outputs."""

from collections.abc import Sequence
from typing import Any

from policyfuzz.core import extras

#: Operators that have weights; the first of their inputs that is calculated is what they are given.
_WITH_WEIGHTS = {
    "Gemm",
    "MatMul",
    "MatMulInteger",
    "QLinearMatMul",
    "Conv",
    "ConvTranspose",
    "ConvInteger",
    "QLinearConv",
    "LSTM",
    "GRU",
    "RNN",
}


def hidden_tensors(graph: Any, output: str) -> list[str]:
    """Names of what the layers with weights on the way to `output`, but for the first, are given."""
    on_the_way = nodes_before(graph, output)
    behind: set[str] = set()  #: tensors behind a layer with weights
    found: dict[str, None] = {}
    for place, node in enumerate(graph.node):  # sorted by what they need
        given = [name for name in node.input if name in behind]
        has_weights = node.op_type in _WITH_WEIGHTS
        if has_weights and given and place in on_the_way:
            found[given[0]] = None
        if has_weights or given:
            behind.update(node.output)
    return list(found)


def with_outputs(content: bytes, names: Sequence[str]) -> bytes:
    """The network `content` with further outputs `names`, which are tensors of its graph."""
    onnx = extras.load("onnx", "onnx")
    model = onnx.load_model_from_string(content)
    present = {port.name for port in model.graph.output}
    model.graph.output.extend(
        onnx.helper.make_empty_tensor_value_info(name) for name in names if name not in present
    )
    return bytes(model.SerializeToString())


def nodes_before(graph: Any, output: str) -> set[int]:
    """Positions of the nodes of `graph` that `output` depends on."""
    needed, found = {output}, set()
    for place in reversed(range(len(graph.node))):
        node = graph.node[place]
        if needed.intersection(node.output):
            found.add(place)
            needed.update(node.input)
    return found
