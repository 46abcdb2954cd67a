"""PyTorch modules and TorchScript files as networks.

    torchscript:FILE             forward(observations) gives actions or scores of actions
    torchscript:FILE?recurrent   forward(observations, state) gives (actions, state); not needed where
                                 forward has a parameter for it. The state starts as initial_state(batch)
                                 if the module has that method, or else as zeros like the first state
                                 that forward returns for the state None
    torchscript:FILE?rescale     outputs lie between -1 and 1 and are stretched to the bounds of the actions

Both formats need trust. TorchScript is a restricted language, but not a harmless one: its operators read and
write files (`torch.from_file`, `torch.save`). Archives of `torch.export` hold pickles.
"""

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core import extras
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.zip_files import ZipReader
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.network import (
    BLOCK_ROWS,
    Arrays,
    Network,
    loaded_network,
    trial_outputs,
)
from policyfuzz.policies.python_calls import STATE_NAMES, positional
from policyfuzz.policies.spaces import ACTION_NAMES, WRAPPER_HINT, View, sample_observations, views
from policyfuzz.policies.torch_layers import hidden_layers
from policyfuzz.policies.uri import MOST_BYTES, Address, not_a_file_of, read_model, scheme_of

OPTIONS = {
    "recurrent": "forward(observations, state) gives (actions, state)",
    "rescale": "outputs to the bounds of the actions",
}


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:
    """The module in the file that `rest` names."""
    address = Address.parse("torchscript", rest, OPTIONS)
    path = address.file()
    if scheme_of(path) != "torchscript":
        raise not_a_file_of("torchscript", path, "not an archive of TorchScript")
    if not trust:
        raise PolicyError(
            f"{path} can run code: TorchScript reads and writes files, torch.export archives hold pickles",
            hint="if you know where it comes from, add --trust; an ONNX file needs none",
        )
    module = _stored_module(path)
    network = module_network(
        module,
        spaces,
        path.name,
        is_recurrent="recurrent" in address.options,
        rescale="rescale" in address.options,
        rows=module.rows,
    )
    return loaded_network(network, spaces, address, path, module.content)


def module_network(
    module: Any,
    spaces: Spaces,
    name: str,
    *,
    is_recurrent: bool = False,
    rescale: bool = False,
    rows: int | None = None,
    may_squash: bool = True,
) -> Network:
    """`module` as a network that takes observations in the first layout in which it acts in `spaces`.

    `is_recurrent` even where `forward` does not say so; `rows` is the number it takes, None for any.
    """
    torch, recurs = extras.load("torch", "torch"), is_recurrent or _takes_state(module)
    sample = sample_observations(spaces.observation, rows or BLOCK_ROWS)
    failures: list[Exception] = []
    for layout, note in _layouts(torch, spaces.observation, _number_type(torch, module)):
        try:
            network = _as_network(torch, module, layout, sample, recurs)
            network = replace(network, rescale=rescale, may_squash=may_squash)
            if rows is not None:
                network = network.with_copies(rows)
            trial_outputs(network, spaces, sample)
        except Exception as error:  # whatever the module raises for what it cannot use
            failures.append(error)
            continue
        notes = tuple(filter(None, (note, _output_note(torch, module, layout, sample, recurs))))
        return replace(network, notes=notes)
    raise _refusal(name, spaces, failures)


def _takes_state(module: Any) -> bool:
    """True if `forward` of `module` needs more than an observation, or knows a state."""
    schema = getattr(module.forward, "schema", None)
    if schema is None:
        required, names = positional(module.forward)
    else:
        given = schema.arguments[1:]  # behind self
        required, names = sum(not item.has_default_value() for item in given), [item.name for item in given]
    return required > 1 or (len(names) > 1 and names[1] in STATE_NAMES)


@contextmanager
def one_thread(torch: Any) -> Iterator[None]:
    """Limit torch to one thread within the block."""
    threads = torch.get_num_threads()
    # even if torch reports one: a limit set from outside does not reach all of its threads
    torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads != 1:
            torch.set_num_threads(threads)


def _stored_module(path: Path) -> "StoredModule":
    extras.load("torch", "torch")
    try:
        return StoredModule(read_model(path))
    except PolicyError:
        raise
    except Exception as error:  # torch raises nearly anything for a damaged archive
        raise not_a_file_of("torchscript", path, str(error) or type(error).__name__) from error


class StoredModule:
    """A module from a file, pickled as the bytes of the file."""

    def __init__(self, content: bytes) -> None:
        torch = extras.load("torch", "torch")
        archive = ZipReader(content)
        archive.check_total(MOST_BYTES)
        is_export = any(name.endswith("archive_format") for name in archive.names)
        self.content = content
        self.module: Any
        self.rows: int | None = None  #: the number it takes; None for any
        file = io.BytesIO(content)
        with _quiet():
            if is_export:
                self.module, self.rows = _exported(torch.export.load(file))
            else:
                self.module = torch.jit.load(file, map_location="cpu").eval()

    def __reduce__(self) -> Any:
        return StoredModule, (self.content,)

    def __call__(self, *arguments: Any) -> Any:
        return self.module(*arguments)

    def __getattr__(self, name: str) -> Any:
        """Methods and weights of the module itself."""
        return getattr(self.module, name)


class _ModuleLater:
    """The module in the `content` of a file, which is built when it is first called."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._module: StoredModule | None = None

    def __reduce__(self) -> Any:
        return _ModuleLater, (self._content,)

    def __call__(self, *arguments: Any) -> Any:
        if self._module is None:
            self._module = StoredModule(self._content)
        return self._module(*arguments)


def _exported(program: Any) -> tuple[Any, int | None]:
    """The module of a `torch.export` archive; most are exported for one number of rows."""
    examples, _ = program.example_inputs
    if len(examples) != 1:
        raise PolicyError(
            f"the exported program takes {len(examples)} arguments, expected the observations alone",
            hint="save a module with memory as TorchScript or ONNX instead",
        )
    node = next(node for node in program.graph.nodes if node.name in program.graph_signature.user_inputs)
    rows = node.meta["val"].shape[0]
    return program.module(), rows if isinstance(rows, int) else None


@contextmanager
def _quiet() -> Iterator[None]:
    """Hides that PyTorch calls TorchScript deprecated: users who still have such a file know."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"`torch\.jit\.load` is deprecated", DeprecationWarning)
        warnings.filterwarnings("ignore", r"`isinstance\(treespec, LeafSpec\)`", FutureWarning)
        yield


@dataclass(frozen=True, slots=True)
class Memory:
    """The state that a recurrent module takes and gives: tensors, and their axis of rows."""

    initial: Arrays  #: of one row
    axes: tuple[int, ...]
    is_tuple: bool


def _number_type(torch: Any, module: Any) -> Any:
    """The type of the numbers that `module` calculates with."""
    tensors = [*module.parameters(), *module.buffers()]
    return next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), torch.float32)


def _layouts(torch: Any, space: Any, number: Any) -> Iterator[tuple[Callable[[NDArray[Any]], Any], str]]:
    """Functions from observations (m, ...) to what `forward` may take, the most likely first, with a note."""

    def tensor(array: NDArray[Any], kind: Any) -> Any:
        return torch.from_numpy(np.ascontiguousarray(array)).to(kind)

    def dictionary(batch: NDArray[Any]) -> dict[str, Any]:
        return {key: tensor(batch[key], number) for key in space.spaces if batch[key].dtype != object}

    def viewed(view: View, kind: Any) -> Callable[[NDArray[Any]], Any]:
        return lambda batch: tensor(view.convert(batch), kind)

    if hasattr(getattr(space, "spaces", None), "items"):
        yield dictionary, ""
    for view in views(space):
        yield viewed(view, number), view.note
        if not view.note and np.issubdtype(getattr(space, "dtype", None), np.integer):
            yield viewed(view, torch.int64), "observations are whole numbers"


def _as_network(
    torch: Any, module: Any, layout: Callable[[NDArray[Any]], Any], sample: Any, recurs: bool
) -> Network:
    memory = _memory(torch, module, layout, sample) if recurs else None
    run = _runner(torch, module, layout, memory)
    # TorchScript adapts to what it has run: reading must not be part of that
    reader = (
        _runner(torch, _ModuleLater(module.content), layout, memory)
        if isinstance(module, StoredModule)
        else run
    )
    initial = memory.initial if memory else ()
    return Network(run, (lambda observations: observations,), initial, hidden=hidden_layers(reader))


def _runner(
    torch: Any, module: Any, layout: Callable[[NDArray[Any]], Any], memory: "Memory | None"
) -> Callable[..., Arrays]:
    def run(block: NDArray[Any], *states: NDArray[Any]) -> Arrays:
        with _one_thread_no_grad(torch):
            if memory is None:
                return (_array(action_part(module(layout(block)))),)
            result, state = module(layout(block), _packed(torch, memory, states))
            parts = _tensors(state)
            kept = [np.moveaxis(_array(part), axis, 0) for part, axis in zip(parts, memory.axes, strict=True)]
            return _array(action_part(result)), *kept

    return run


def _memory(torch: Any, module: Any, layout: Callable[[NDArray[Any]], Any], sample: Any) -> Memory:
    """The memory at the beginning of an episode; its axis of rows is the one that grows with their number."""
    begin = getattr(module, "initial_state", None)

    def state_of(rows: int) -> Any:
        return begin(rows) if begin is not None else module(layout(sample[:rows]), None)[1]

    try:
        with _one_thread_no_grad(torch):
            two, three = state_of(2), state_of(3)
            pairs = list(zip(_tensors(two), _tensors(three), strict=True))
            axes = [
                [n for n, (a, b) in enumerate(zip(x.shape, y.shape, strict=True)) if a != b] for x, y in pairs
            ]
            initial = [_array(x.select(axis[0], 0)) for (x, _), axis in zip(pairs, axes, strict=True)]
    except Exception as error:  # whatever the module raises
        raise PolicyError(
            f"the state at the beginning of an episode is not known: {_last_line(error)}",
            hint="give the module a method initial_state(batch), with @torch.jit.export if it is scripted",
        ) from error
    if begin is None:
        initial = [np.zeros_like(array) for array in initial]
    return Memory(tuple(initial), tuple(axis[0] for axis in axes), not torch.is_tensor(two))


def _packed(torch: Any, memory: Memory, states: Sequence[NDArray[Any]]) -> Any:
    """The state that `forward` takes, from arrays (rows, ...)."""
    pairs = zip(states, memory.axes, strict=True)
    tensors = tuple(
        torch.from_numpy(np.ascontiguousarray(np.moveaxis(state, 0, axis))) for state, axis in pairs
    )
    return tensors if memory.is_tuple else tensors[0]


def _tensors(state: Any) -> list[Any]:
    return list(state) if isinstance(state, tuple | list) else [state]


def _array(tensor: Any) -> NDArray[Any]:
    array: NDArray[Any] = tensor.detach().cpu().numpy()
    return array


def action_part(result: Any) -> Any:
    """The actions in what a module gave: a tensor, the first of several, or the one with the right name."""
    if isinstance(result, tuple | list):
        return result[0]
    if isinstance(result, dict):
        return next((result[name] for name in ACTION_NAMES if name in result), next(iter(result.values())))
    return result


def _output_note(
    torch: Any, module: Any, layout: Callable[[NDArray[Any]], Any], sample: Any, recurs: bool
) -> str:
    if recurs:
        return "remembers a state for each episode"
    with _one_thread_no_grad(torch):
        result = module(layout(sample))
    if isinstance(result, tuple | list) and len(result) > 1:
        return f"takes actions from the first of {len(result)} outputs"
    return ""


def _refusal(name: str, spaces: Spaces, failures: list[Exception]) -> PolicyError:
    known = [error for error in failures if isinstance(error, PolicyError)]
    if known:
        return PolicyError(f"{name}: {known[0].message}", known[0].hint)
    return PolicyError(
        f"{name} fails on observations of {spaces.observation}: {_last_line(failures[0])}", WRAPPER_HINT
    )


def _last_line(error: Exception) -> str:
    """TorchScript puts what went wrong behind the lines where it did."""
    lines = str(error).strip().splitlines()
    return lines[-1] if lines else type(error).__name__


@contextmanager
def _one_thread_no_grad(torch: Any) -> Iterator[None]:
    """Results must not depend on the number of cores."""
    with one_thread(torch), torch.no_grad():
        yield
