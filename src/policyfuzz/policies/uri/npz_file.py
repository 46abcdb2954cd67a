"""`npz:FILE`: plain multi-layer perceptrons in a numpy archive.

    npz:FILE           a network from the observation to the action, or to scores of actions
    npz:FILE?rescale   outputs lie between -1 and 1 and are stretched to the bounds of the actions

Either the format of `policies/npz_weights.py`, or one that is easily written by hand, with for each layer
weights and bias, as W0, b0, W1, b1, ... or under names such as `0.weight` and `0.bias` in their order:

    np.savez("policy.npz", W0=..., b0=..., W1=..., b1=..., activation="tanh")
    np.savez("policy.npz", **{name: value.numpy() for name, value in model.state_dict().items()})

Weights are (in, out), or (out, in) if only that fits; where both fit, `weight` means (out, in) as in PyTorch.
`activation` is that of the hidden layers (relu if it is not told), `output` that of the last one (linear).
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.mlp import MlpBank
from policyfuzz.policies.npz_weights import read_npz
from policyfuzz.policies.uri.address import Address
from policyfuzz.policies.uri.file_kinds import not_a_file_of, scheme_of
from policyfuzz.policies.uri.network import Network, NetworkPolicy, settle
from policyfuzz.policies.uri.npz_layers import is_plain, read_layers
from policyfuzz.policies.uri.views import WRAPPER_HINT, View, views

_OPTIONS = {"rescale": "outputs to the bounds of the actions"}


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:  # noqa: ARG001 - as all schemes
    """The network in the file that `rest` names."""
    address = Address.parse("npz", rest, _OPTIONS)
    path = address.file()
    if scheme_of(path) != "npz":
        raise not_a_file_of("npz", path, "not a numpy archive")
    found = views(spaces.observation)
    widths = {math.prod(view.shape) for view in found}
    bank, notes = read_layers(path, widths) if is_plain(path) else (read_npz(path), ())
    view = _view(bank, found, spaces, path.name)
    network = _network(bank, view, "rescale" in address.options, notes)
    network = settle(network, spaces, path.name)
    return LoadedPolicy(
        make=lambda: NetworkPolicy(network, spaces),
        name=f"npz:{path.name}",
        uri=address.uri(path),
        sha256=address.sha256(path.read_bytes()),
        notes=network.notes,
    )


def _view(bank: MlpBank, found: tuple[View, ...], spaces: Spaces, name: str) -> View:
    if len(bank.parameters) != 1:
        raise PolicyError(f"{name} holds {len(bank.parameters)} networks, expected 1")
    for view in found:
        if view.fits([bank.sizes[0]]):
            return view
    raise PolicyError(
        f"the network in {name} takes {bank.sizes[0]} numbers, and an observation is {spaces.observation}",
        hint=WRAPPER_HINT,
    )


def _network(bank: MlpBank, view: View, rescale: bool, notes: tuple[str, ...]) -> Network:
    def run(block: NDArray[Any]) -> tuple[NDArray[Any]]:
        return (bank(block, np.zeros(len(block), np.int64)),)

    def layout(observations: NDArray[Any]) -> NDArray[Any]:
        return view.convert(observations).reshape(len(observations), bank.sizes[0]).astype(np.float64)

    notes = (*notes, view.note) if view.note else notes
    may_squash = bank.activations[-1] == "tanh"
    return Network(run, (layout,), rows=None, rescale=rescale, notes=notes, may_squash=may_squash)
