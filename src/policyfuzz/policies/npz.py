"""Perceptrons in .npz files: those that come with the package, and arrays that users write.

    npz:FILE           a network from the observation to the action, or to scores of actions
    npz:FILE?rescale   outputs lie between -1 and 1 and are stretched to the bounds of the actions

The file is in the format of `write_npz`, or holds weights and bias of each layer, as W0, b0, W1, b1, ... or
under names such as `0.weight` and `0.bias` in their order:

    np.savez("policy.npz", W0=..., b0=..., W1=..., b1=..., activation="tanh")
    np.savez("policy.npz", **{name: value.numpy() for name, value in model.state_dict().items()})

Weights are (in, out), or (out, in) if only that fits; where both fit, `weight` means (out, in) as in PyTorch.
`activation` is that of the hidden layers (relu by default), `output` that of the last one (linear).
"""

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyError
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.mlp import MlpBank, bank_of, plain_arrays, setting
from policyfuzz.policies.network import Arrays, Network, loaded_network
from policyfuzz.policies.spaces import WRAPPER_HINT, View, views
from policyfuzz.policies.uri import Address, not_a_file_of, read_model, scheme_of

OPTIONS = {"rescale": "outputs to the bounds of the actions"}
#: W0, weight_0, kernel0 and so on: what it is, and of which layer.
_NUMBERED = re.compile(r"(w|weight|weights|kernel|b|bias)_?(\d+)", re.IGNORECASE)
#: 0.weight, policy_net.2.bias, layer/kernel and so on: of which layer, and what it is.
_NAMED = re.compile(r"(.+)[./](weight|kernel|bias)", re.IGNORECASE)
_SETTINGS = ("activation", "hidden", "output")
_FORMAT = "expected W0, b0, W1, b1, ..., or 0.weight, 0.bias, 2.weight, ...; and activation, a name"

NamedArrays = Mapping[str, NDArray[Any]]


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:  # noqa: ARG001 - as all schemes
    """The network in the file that `rest` names."""
    address = Address.parse("npz", rest, OPTIONS)
    path = address.file()
    content = read_model(path)
    if scheme_of(path) != "npz":
        raise not_a_file_of("npz", path, "not a numpy archive")
    found = views(spaces.observation)
    bank, notes = bank_in(path.name, plain_arrays(path.name, content, _FORMAT), spaces)
    view = _fitting_view(bank, found, spaces, path.name)
    network = _as_network(bank, view, "rescale" in address.options, notes)
    return loaded_network(network, spaces, address, path, content)


def bank_in(name: str, arrays: NamedArrays, spaces: Spaces) -> tuple[MlpBank, tuple[str, ...]]:
    """The network in the `arrays` of the file `name`, in the form that fits `spaces`, and notes."""
    if {"parameters", "sizes"} <= set(arrays):  # the format of `write_npz`
        return bank_of(name, arrays), ()
    return _layers_of(name, arrays, {math.prod(view.shape) for view in views(spaces.observation)})


def _fitting_view(bank: MlpBank, found: tuple[View, ...], spaces: Spaces, name: str) -> View:
    if len(bank.parameters) != 1:
        raise PolicyError(f"{name} holds {len(bank.parameters)} networks, expected 1")
    for view in found:
        if view.fits([bank.sizes[0]]):
            return view
    raise PolicyError(
        f"the network in {name} takes {bank.sizes[0]} numbers, and an observation is {spaces.observation}",
        hint=WRAPPER_HINT,
    )


def _as_network(bank: MlpBank, view: View, rescale: bool, notes: tuple[str, ...]) -> Network:
    def run(block: NDArray[Any]) -> tuple[NDArray[Any]]:
        return (bank(block, np.zeros(len(block), np.int64)),)

    def hidden(block: NDArray[Any]) -> Arrays:
        return both(block)[1:]

    def both(block: NDArray[Any]) -> Arrays:
        outputs, inside = bank.with_activations(block, np.zeros(len(block), np.int64))
        return outputs, *inside.by_layer

    def layout(observations: NDArray[Any]) -> NDArray[Any]:
        return view.convert(observations).reshape(len(observations), bank.sizes[0]).astype(np.float64)

    notes = (*notes, view.note) if view.note else notes
    may_squash = bank.activations[-1] == "tanh"
    return Network(
        run,
        (layout,),
        rows=None,
        rescale=rescale,
        notes=notes,
        may_squash=may_squash,
        hidden=hidden,
        both=both,
    )


def _layers_of(name: str, arrays: NamedArrays, widths: set[int]) -> tuple[MlpBank, tuple[str, ...]]:
    """The network in the file `name`, its input one of `widths` wide if it can be, and notes."""
    settings = {key: setting(array) for key, array in arrays.items() if key in _SETTINGS}
    layers_only = {key: array for key, array in arrays.items() if key not in _SETTINGS}
    weights, biases, is_torch = _ordered_layers(name, layers_only)
    layers = _oriented(name, weights, biases, widths, is_torch)
    hidden = settings.get("activation", settings.get("hidden"))
    is_assumed = not hidden and len(layers) > 1
    notes = ("hidden layers are taken as relu: no `activation` in the file",) if is_assumed else ()
    return MlpBank.from_layers([layers], hidden or "relu", settings.get("output", "linear")), notes


def _ordered_layers(
    name: str, arrays: NamedArrays
) -> tuple[list[NDArray[Any]], list[NDArray[Any] | None], bool]:
    """Weights and biases of the layers in their order, and whether they are named as by PyTorch."""
    layers: dict[str, dict[str, NDArray[Any]]] = {}
    is_torch = False
    for key, array in arrays.items():
        numbered, named = _NUMBERED.fullmatch(key), _NAMED.fullmatch(key)
        if (numbered is None and named is None) or array.dtype.kind not in "fiu":
            raise PolicyError(f"{name} has an array {key!r} ({array.dtype}) that is no layer", hint=_FORMAT)
        kind, layer = numbered.groups() if numbered else reversed(named.groups())  # type: ignore[union-attr]
        is_torch = is_torch or kind.lower() == "weight"
        layers.setdefault(layer, {})[kind[0].lower()] = array
    names = sorted(layers, key=int) if all(key.isdigit() for key in layers) else list(layers)
    ordered = [layers[key] for key in names]
    weights = [layer.get("w", layer.get("k")) for layer in ordered]
    present = [array for array in weights if array is not None and array.ndim == 2]
    if not ordered or len(present) < len(ordered):
        shapes = ", ".join(f"{key} {array.shape}" for key, array in arrays.items())
        raise PolicyError(f"{name} has layers without a weight matrix: {shapes or 'nothing'}", hint=_FORMAT)
    return present, [layer.get("b") for layer in ordered], is_torch


def _oriented(
    name: str,
    weights: list[NDArray[Any]],
    biases: list[NDArray[Any] | None],
    widths: set[int],
    is_torch: bool,
) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """The layers with weights (in, out): all as stored, or all turned round."""
    ways = [weights, [matrix.T for matrix in weights]]
    fitting = [way for way in (reversed(ways) if is_torch else ways) if _chains(way, biases)]
    if not fitting:
        shapes = ", ".join(
            f"{matrix.shape} and {'no bias' if bias is None else bias.shape}"
            for matrix, bias in zip(weights, biases, strict=True)
        )
        raise PolicyError(f"the layers of {name} do not fit together: {shapes}", hint=_FORMAT)
    chosen = next((way for way in fitting if way[0].shape[0] in widths), fitting[0])
    zeros = [np.zeros(matrix.shape[1]) for matrix in chosen]
    ready = [zero if bias is None else bias for zero, bias in zip(zeros, biases, strict=True)]
    return list(zip(chosen, ready, strict=True))


def _chains(weights: list[NDArray[Any]], biases: list[NDArray[Any] | None]) -> bool:
    outputs = [matrix.shape[1] for matrix in weights]
    inputs = [matrix.shape[0] for matrix in weights]
    fits = all(bias is None or bias.shape == (width,) for bias, width in zip(biases, outputs, strict=True))
    return fits and inputs[1:] == outputs[:-1]
