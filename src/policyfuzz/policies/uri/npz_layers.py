"""Perceptrons in .npz files that were written by hand: one array for each weight matrix and bias."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError
from policyfuzz.policies.mlp import MlpBank

#: W0, weight_0, kernel0 and so on: what it is, and of which layer.
_NUMBERED = re.compile(r"(w|weight|weights|kernel|b|bias)_?(\d+)", re.IGNORECASE)
#: 0.weight, policy_net.2.bias, layer/kernel and so on: of which layer, and what it is.
_NAMED = re.compile(r"(.+)[./](weight|kernel|bias)", re.IGNORECASE)
_SETTINGS = ("activation", "hidden", "output")
_FORMAT = "expected W0, b0, W1, b1, ..., or 0.weight, 0.bias, 2.weight, ...; and activation, a name"

Arrays = Mapping[str, NDArray[Any]]


def is_plain(path: Path) -> bool:
    """True unless the archive is in the format of this package."""
    with np.load(path, allow_pickle=False) as archive:
        return not {"parameters", "sizes"} <= set(archive.files)


def read_layers(path: Path, widths: set[int]) -> tuple[MlpBank, tuple[str, ...]]:
    """The network in `path`, and what had to be assumed; its input should be one of `widths` wide."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError) as error:
        raise PolicyError(f"{path.name} holds no plain arrays: {error}", hint=_FORMAT) from error
    settings = {name: str(arrays.pop(name)) for name in _SETTINGS if name in arrays}
    weights, biases, is_torch = _sorted_out(path.name, arrays)
    layers = _oriented(path.name, weights, biases, widths, is_torch)
    hidden = settings.get("activation", settings.get("hidden"))
    notes = (
        ()
        if hidden or len(layers) == 1
        else ("hidden layers are taken as relu: no `activation` in the file",)
    )
    return MlpBank.from_layers([layers], hidden or "relu", settings.get("output", "linear")), notes


def _sorted_out(name: str, arrays: Arrays) -> tuple[list[NDArray[Any]], list[NDArray[Any] | None], bool]:
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
