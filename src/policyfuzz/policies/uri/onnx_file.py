"""`onnx:FILE`: networks in ONNX files, run by onnxruntime.

    onnx:FILE                      a network from the observation to the action, or to scores of actions
    onnx:FILE?output=NAME          the actions are in this output
    onnx:FILE?state=IN:OUT,IN:OUT  inputs that are memory, and the outputs with their next value
    onnx:FILE?rescale              outputs lie between -1 and 1 and are stretched to the bounds of the
                                   actions, as needed for the actors of SAC, TD3 and DDPG

Inputs that are named like the keys of a dictionary of observations get these. Memory (`h_in` and `h_out`,
`hidden` and `hidden_out`, `h0` and `hn`) starts at zero and is kept for each episode. The file is data, and
no code in it is run: it needs no trust.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from policyfuzz import extras
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.uri.address import Address
from policyfuzz.policies.uri.file_kinds import not_a_file_of
from policyfuzz.policies.uri.network import NetworkPolicy, settle
from policyfuzz.policies.uri.onnx_network import as_network
from policyfuzz.policies.uri.onnx_session import Session
from policyfuzz.policies.uri.onnx_signature import Port, read_signature

_OPTIONS = {
    "output": "name of the output with the actions",
    "state": "INPUT:OUTPUT of each memory",
    "rescale": "outputs to the bounds of the actions",
}


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:  # noqa: ARG001 - as all schemes
    """The network in the file that `rest` names."""
    address = Address.parse("onnx", rest, _OPTIONS)
    path = address.file()
    session = _session(path)
    keys = tuple(getattr(spaces.observation, "spaces", {}))
    signature = read_signature(
        _ports(session.get_inputs()), _ports(session.get_outputs()), keys, address.options
    )
    graph = extras.load("onnx", "onnx").load(str(path), load_external_data=False).graph
    network = as_network(session, signature, spaces.observation, "rescale" in address.options)
    network = replace(network, may_squash=_ends_in_tanh(graph, signature.action))
    network = settle(network, spaces, path.name)
    return LoadedPolicy(
        make=lambda: NetworkPolicy(network, spaces),
        name=f"onnx:{path.name}",
        uri=address.uri(path),
        sha256=address.sha256(*_contents(path, graph)),
        notes=network.notes,
    )


def _session(path: Path) -> Session:
    try:
        return Session(_whole(path))
    except Exception as error:  # neither onnx nor onnxruntime has a base class for its errors
        raise not_a_file_of("onnx", path, _first_line(error)) from error


def _whole(path: Path) -> bytes:
    """The network in `path` in one piece, with the weights that lie in files beside it."""
    extras.load("onnxruntime", "onnx")
    onnx, content = extras.load("onnx", "onnx"), path.read_bytes()
    try:
        model = onnx.load_model_from_string(content)
    except Exception:  # of no common base class; onnxruntime tells what is wrong
        return content
    if not _places(model.graph):
        return content
    onnx.load_external_data_for_model(model, str(path.parent))
    return bytes(model.SerializeToString())


def _ports(nodes: list[Any]) -> list[Port]:
    return [Port(node.name, node.type, tuple(node.shape)) for node in nodes]


def _contents(path: Path, graph: Any) -> list[bytes]:
    """The bytes of the file, and of those beside it that hold its larger weights."""
    return [path.read_bytes(), *((path.parent / place).read_bytes() for place in _places(graph))]


def _places(graph: Any) -> list[str]:
    """Names of files that hold weights of `graph`."""
    entries = [entry for tensor in graph.initializer for entry in tensor.external_data]
    return sorted({entry.value for entry in entries if entry.key == "location"})


def _ends_in_tanh(graph: Any, output: str) -> bool:
    """True if `output` is a tanh, perhaps in another shape or type."""
    makers = {name: node for node in graph.node for name in node.output}
    while output in makers and makers[output].op_type in (
        "Identity",
        "Reshape",
        "Cast",
        "Squeeze",
        "Flatten",
    ):
        output = makers[output].input[0]
    return output in makers and makers[output].op_type == "Tanh"


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
