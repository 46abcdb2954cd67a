"""Networks in ONNX files, run by onnxruntime.

    onnx:FILE                      a network from the observation to the action, or to scores of actions
    onnx:FILE?output=NAME          the actions are in this output
    onnx:FILE?state=IN:OUT,IN:OUT  inputs that are memory, and the outputs with their next value
    onnx:FILE?rescale              outputs lie between -1 and 1 and are stretched to the bounds of the
                                   actions, as needed for the actors of SAC, TD3 and DDPG

Inputs that are named like the keys of a dictionary of observations get these. Memory (`h_in` and `h_out`,
`hidden` and `hidden_out`, `h0` and `hn`) starts at zero and is kept for each episode. The file is data, and
no code in it is run: it needs no trust.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.network import (
    BLOCK_ROWS,
    Arrays,
    Network,
    loaded_network,
    rows_first,
    trial_outputs,
)
from policyfuzz.policies.onnx_file import OnnxFile
from policyfuzz.policies.onnx_layers import hidden_tensors, with_outputs
from policyfuzz.policies.onnx_signature import Port, Signature, read_signature
from policyfuzz.policies.onnx_trial import BrokenNetwork, TrialEnded, TrialSession
from policyfuzz.policies.spaces import WRAPPER_HINT, View, sample_observations, views
from policyfuzz.policies.uri import Address, not_a_file_of

OPTIONS = {
    "output": "name of the output with the actions",
    "state": "INPUT:OUTPUT of each memory",
    "rescale": "outputs to the bounds of the actions",
}
#: Operators that leave every number as it is, or nearly so.
_SAME_NUMBERS = ("Identity", "Reshape", "Cast", "Squeeze", "Flatten")


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:  # noqa: ARG001 - as all schemes
    """The network in the file that `rest` names."""
    address = Address.parse("onnx", rest, OPTIONS)
    path = address.file()
    extras.load("onnxruntime", "onnx")
    file = OnnxFile.read(path)
    rescale = "rescale" in address.options
    try:
        with TrialSession(file.content, path.name) as trial:
            signature = _signature(trial, spaces, address)
            network = _as_network(trial, signature, spaces.observation, rescale)
            trial_outputs(network, spaces, sample_observations(spaces.observation, BLOCK_ROWS))
    except BrokenNetwork as error:
        raise not_a_file_of("onnx", path, error.message) from error
    inside = HiddenSession(file.content, hidden_tensors(file.model.graph, signature.action))
    network = _as_network(Session(file.content), signature, spaces.observation, rescale, inside)
    network = replace(network, may_squash=_ends_in_tanh(file.model.graph, signature.action))
    return loaded_network(network, spaces, address, path, *file.parts)


def action_output(file: OnnxFile, spaces: Spaces, address: Address) -> str:
    """The name of the output of the graph in `file` that holds the actions."""
    return _signature(Session(file.content), spaces, address).action


class Session:
    """Runs a network, with the same bits in every run; pickled as the bytes of the network."""

    def __init__(self, content: bytes) -> None:
        """`content` is a whole network in the format of ONNX."""
        runtime = extras.load("onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.execution_mode = runtime.ExecutionMode.ORT_SEQUENTIAL
        options.use_deterministic_compute = True
        options.log_severity_level = 4  # what goes wrong is raised as well
        self._content = content
        self._session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def __reduce__(self) -> Any:
        return Session, (self._content,)

    @property
    def inputs(self) -> list[Port]:
        return _ports(self._session.get_inputs())

    @property
    def outputs(self) -> list[Port]:
        return _ports(self._session.get_outputs())

    def run(self, outputs: list[str], feed: dict[str, Any]) -> list[Any]:
        """The values of `outputs` for inputs by name."""
        return list(self._session.run(outputs, feed))


class HiddenSession:
    """Runs a network for the values of some tensors inside; built when it is first used."""

    def __init__(self, content: bytes, names: list[str]) -> None:
        """`content` is a whole network in the format of ONNX, `names` are tensors of its graph."""
        self._content, self._names = content, names
        self._session: Session | None = None

    def __reduce__(self) -> Any:
        return HiddenSession, (self._content, self._names)

    def run(self, feed: dict[str, Any]) -> list[NDArray[Any]]:
        """The values of all tensors for inputs by name."""
        if not self._names:
            return []
        if self._session is None:
            self._session = Session(with_outputs(self._content, self._names))
        return [np.asarray(value) for value in self._session.run(self._names, feed)]


@dataclass(frozen=True, slots=True)
class Slot:
    """An input of the graph, and how the rows of a block get into it."""

    port: Port
    axis: int | None  #: of the rows; None if it takes one row, without an axis for it that must be known
    shape: tuple[int, ...]  #: of one row
    rows: int | None  #: the number it takes; None for any

    def fill(self, block: NDArray[Any]) -> NDArray[Any]:
        """What the input is given for `block` (rows, *shape)."""
        filled = block[0] if self.axis is None else np.moveaxis(block, 0, self.axis)
        return np.ascontiguousarray(filled, self.port.dtype)

    def rows_of(self, output: NDArray[Any]) -> NDArray[Any]:
        """The next value (rows, *shape) of this memory, taken from `output`."""
        found = output[None] if self.axis is None else np.moveaxis(output, self.axis, 0)
        if found.shape[1:] != self.shape:
            raise PolicyError(
                f"memory {self.port.name!r} of the network has shape {self.shape} for an episode,"
                f" and its next value {found.shape[1:]}",
                hint="name the right pairs: ?state=INPUT:OUTPUT,INPUT:OUTPUT",
            )
        return found


def _as_network(
    session: Session | TrialSession,
    signature: Signature,
    space: Any,
    rescale: bool,
    inside: HiddenSession | None = None,
) -> Network:
    """The graph in `session` as a network that takes observations of `space`; `inside` shows what it does."""
    observed, layouts, notes = [], [], list(signature.notes)
    shared = {port.shape[axis] for port, _ in signature.states for axis in port.free_axes}
    for key, port in signature.observations.items():
        slot, view = _observation_slot(port, space if key is None else space.spaces[key], shared)
        observed.append(slot)
        layouts.append(_layout(key, view, slot))
        notes += [view.note] if view.note else []
    batch_names = {
        slot.port.shape[slot.axis] for slot in observed if slot.axis is not None and slot.port.shape
    }
    rows = _common_rows(observed)
    states = [_state_slot(port, batch_names, rows) for port, _ in signature.states]
    if rows is None and any(slot.axis is None for slot in states):
        rows = 1
    outputs = [signature.action, *(name for _, name in signature.states)]
    zeros = tuple(np.zeros(slot.shape, slot.port.dtype) for slot in states)
    run = _runner(session, observed, states, outputs)
    hidden = None if inside is None else _hidden_reader(inside, [*observed, *states])
    if rows is not None:
        notes.append(
            f"was exported for {rows} row(s) at once, which is slow: leave the size of the batch open"
        )
    network = Network(run, tuple(layouts), zeros, BLOCK_ROWS, rescale, tuple(notes), hidden=hidden)
    return network if rows is None else network.with_copies(rows)


def _observation_slot(port: Port, space: Any, shared: set[Any]) -> tuple[Slot, View]:
    """How observations of `space` get into `port`; `shared` are names of axes that memory has as well."""
    found = views(space)
    if not port.shape and found:  # nothing is known about it
        return Slot(port, 0, found[0].shape, None), found[0]
    named = [axis for axis in port.free_axes if port.shape[axis] in shared and port.shape[axis] is not None]
    axis = named[0] if named else 0 if 0 in port.free_axes else None
    ways = [(axis, None)] if axis is not None else [(None, 1), (0, port.sizes[0])]
    for axis, rows in ways:
        sizes = [size for number, size in enumerate(port.sizes) if number != axis]
        for view in found:
            if view.fits(sizes):
                return Slot(port, axis, _filled(sizes, view.shape), rows), view
    raise PolicyError(
        f"the network takes {port}, and an observation is {space}", hint=_misfit_hint(port, found)
    )


def _filled(sizes: Sequence[int | None], shape: tuple[int, ...]) -> tuple[int, ...]:
    """`sizes` with the sizes of `shape` where they are free; the two fit."""
    known = (*(1 for _ in sizes), *shape)[-len(sizes) :] if sizes else ()
    return tuple(have if size is None else size for size, have in zip(sizes, known, strict=True))


def _misfit_hint(port: Port, found: tuple[View, ...]) -> str:
    """Several observations in a row are the usual reason, and can be told from the size."""
    size = math.prod(size or 1 for size in port.sizes)
    one = math.prod(found[0].shape) if found else 0
    if one and size > one and size % one == 0:
        return (
            f"{size} is {size // one} times {one}: was it trained with FrameStackObservation? {WRAPPER_HINT}"
        )
    return WRAPPER_HINT


def _layout(key: str | None, view: View, slot: Slot) -> Callable[[NDArray[Any]], NDArray[Any]]:
    def convert(observations: NDArray[Any]) -> NDArray[Any]:
        part = observations if key is None else observations[key]
        return view.convert(part).reshape(len(part), *slot.shape)

    return convert


def _common_rows(slots: Sequence[Slot]) -> int | None:
    """The number of rows that all of `slots` insist on, None for any."""
    fixed = {slot.rows for slot in slots if slot.rows is not None}
    if len(fixed) > 1:
        raise PolicyError(
            f"inputs of the network were exported for {sorted(fixed)} rows at once",
            hint="export it with one number",
        )
    return fixed.pop() if fixed else None


def _state_slot(port: Port, batch_names: set[Any], rows: int | None) -> Slot:
    """How memory gets into `port`: on the axis named like that of the observations, or the only free one."""
    free = port.free_axes
    named = [axis for axis in free if port.shape[axis] is not None and port.shape[axis] in batch_names]
    fixed = [axis for axis, size in enumerate(port.sizes) if size == rows and (rows or 1) > 1]
    axis = next(iter(named or (free if len(free) == 1 else []) or fixed), None)
    sizes = [size for number, size in enumerate(port.sizes) if number != axis]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        raise PolicyError(
            f"the size of memory {port} is not known",
            hint="export the network with fixed sizes but for the batch",
        )
    return Slot(port, axis, tuple(known), None)


def _runner(
    session: Session | TrialSession, observed: Sequence[Slot], states: Sequence[Slot], outputs: list[str]
) -> Callable[..., Arrays]:
    slots = [*observed, *states]

    def run(*blocks: NDArray[Any]) -> Arrays:
        feed = {slot.port.name: slot.fill(block) for slot, block in zip(slots, blocks, strict=True)}
        try:
            action, *memory = session.run(outputs, feed)
        except TrialEnded:
            raise
        except Exception as error:  # onnxruntime has no base class for its errors
            raise PolicyError(
                f"the network cannot be run: {str(error).strip()}", hint=WRAPPER_HINT
            ) from error
        rows = len(blocks[0])
        kept = [slot.rows_of(value) for slot, value in zip(states, memory, strict=True)]
        return _rows_first(np.asarray(action), rows, outputs[0]), *kept

    return run


def _hidden_reader(inside: HiddenSession, slots: Sequence[Slot]) -> Callable[..., Arrays]:
    def read(*blocks: NDArray[Any]) -> Arrays:
        feed = {slot.port.name: slot.fill(block) for slot, block in zip(slots, blocks, strict=True)}
        found = (rows_first(value, len(blocks[0])) for value in inside.run(feed))
        return tuple(array for array in found if array is not None)

    return read


def _rows_first(output: NDArray[Any], rows: int, name: str) -> NDArray[Any]:
    if rows == 1:
        return output.reshape(1, -1)
    if rows not in output.shape:
        raise PolicyError(
            f"output {name!r} of the network has shape {output.shape} for {rows} observations",
            hint="choose the output with the actions: ?output=NAME; or export the network with a batch of 1",
        )
    return np.moveaxis(output, output.shape.index(rows), 0)


def _signature(session: Session | TrialSession, spaces: Spaces, address: Address) -> Signature:
    keys = tuple(getattr(spaces.observation, "spaces", {}))
    return read_signature(session.inputs, session.outputs, keys, address.options)


def _ports(nodes: list[Any]) -> list[Port]:
    return [Port(node.name, node.type, tuple(node.shape)) for node in nodes]


def _ends_in_tanh(graph: Any, output: str) -> bool:
    """True if `output` is a tanh, perhaps in another shape or type."""
    makers = {name: node for node in graph.node for name in node.output}
    for _ in graph.node:  # a damaged graph may go round in circles
        if output not in makers or makers[output].op_type not in _SAME_NUMBERS or not makers[output].input:
            break
        output = makers[output].input[0]
    return output in makers and makers[output].op_type == "Tanh"
