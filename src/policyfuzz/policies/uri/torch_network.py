"""PyTorch modules as functions of blocks of rows."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz import extras
from policyfuzz.errors import PolicyError
from policyfuzz.policies.blocks import BLOCK_ROWS
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.torch_threads import one_thread
from policyfuzz.policies.uri.network import Arrays, Network, settle, trial, with_copies
from policyfuzz.policies.uri.onnx_signature import ACTION_NAMES
from policyfuzz.policies.uri.python_calls import STATE_NAMES, positional
from policyfuzz.policies.uri.views import WRAPPER_HINT, View, made_up, views


@dataclass(frozen=True, slots=True)
class Memory:
    """The state that a recurrent module takes and gives: tensors, and their axis of rows."""

    initial: Arrays  #: of one row
    axes: tuple[int, ...]
    is_tuple: bool


def settled(
    module: Any,
    spaces: Spaces,
    name: str,
    *,
    is_recurrent: bool,
    rescale: bool = False,
    rows: int | None = None,
    may_squash: bool = True,
) -> Network:
    """`module` as a network that acts in `spaces`: the first layout of observations for which it runs.

    `rows` are those that it insists on, None for any number.
    """
    torch = extras.load("torch", "torch")
    sample = made_up(spaces.observation, rows or BLOCK_ROWS)
    failures: list[Exception] = []
    for layout, note in _layouts(torch, spaces.observation, _number_type(torch, module)):
        try:
            network = _as_network(torch, module, layout, sample, is_recurrent)
            network = replace(network, rescale=rescale, may_squash=may_squash)
            if rows is not None:
                network = replace(network, run=with_copies(network.run, rows), rows=1)
            trial(network, spaces, sample)
        except Exception as error:  # whatever the module raises for what it cannot use
            failures.append(error)
            continue
        notes = tuple(filter(None, (note, _output_note(torch, module, layout, sample, is_recurrent))))
        return settle(replace(network, notes=notes), spaces, name)
    raise _refusal(name, spaces, failures)


def takes_state(module: Any) -> bool:
    """True if `forward` of `module` needs more than an observation, or knows a state."""
    schema = getattr(module.forward, "schema", None)
    if schema is None:
        required, names = positional(module.forward)
    else:
        given = schema.arguments[1:]  # behind self
        required, names = sum(not item.has_default_value() for item in given), [item.name for item in given]
    return required > 1 or (len(names) > 1 and names[1] in STATE_NAMES)


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

    def run(block: NDArray[Any], *states: NDArray[Any]) -> Arrays:
        with _calm(torch):
            if memory is None:
                return (_array(_action_part(module(layout(block)))),)
            result, state = module(layout(block), _packed(torch, memory, states))
            parts = _tensors(state)
            kept = [np.moveaxis(_array(part), axis, 0) for part, axis in zip(parts, memory.axes, strict=True)]
            return _array(_action_part(result)), *kept

    return Network(run, (lambda observations: observations,), memory.initial if memory else ())


def _memory(torch: Any, module: Any, layout: Callable[[NDArray[Any]], Any], sample: Any) -> Memory:
    """The memory at the beginning of an episode; its axis of rows is the one that grows with their number."""
    begin = getattr(module, "initial_state", None)

    def state_of(rows: int) -> Any:
        return begin(rows) if begin is not None else module(layout(sample[:rows]), None)[1]

    try:
        with _calm(torch):
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


def _action_part(result: Any) -> Any:
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
    with _calm(torch):
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
def _calm(torch: Any) -> Iterator[None]:
    """No gradients, and one thread: results must not depend on the number of cores."""
    with one_thread(torch), torch.no_grad():
        yield
