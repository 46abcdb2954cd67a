"""Policies that are Python code of the user: a function, an object, or something that makes one.

NAME is one of
- a function of a batch of observations (m, ...) to m actions, or of one observation to one action. A call
  with a batch shows which of the two it is; `?batch` and `?single` say it instead;
- a function of (observation, state) to (action, state), for one observation; the state begins as None;
- a class, or a function without parameters, that makes a policy: an object with `begin(count)` and
  `act(observations, rows)`, the protocol of this package, which is taken as it is; or a PyTorch module; or an
  object with `predict`, `act` or `__call__`, which is treated like a function. If it has `reset()`, each
  episode gets a copy. Parameters called `observation_space` and `action_space` get these;
- such an object itself.

Observations that are dictionaries come as dictionaries, of arrays (m, ...) in a batch. To name the
code is to ask for it to run, so it needs no further trust. The digest covers its file, not what that imports.
"""

import copy
import operator
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from policyfuzz.core.code_files import find_code
from policyfuzz.core.errors import PolicyError, blamed_on
from policyfuzz.core.interfaces import Policy
from policyfuzz.policies.loaded import LoadedPolicy, Spaces
from policyfuzz.policies.network import NetworkPolicy, validated
from policyfuzz.policies.python_calls import (
    Maker,
    as_actor,
    call_factory,
    function_maker,
    is_factory,
    is_protocol,
)
from policyfuzz.policies.spaces import sample_observations
from policyfuzz.policies.uri import Address

_OPTIONS = {"batch": "it takes a batch of observations", "single": "it takes one observation"}


def load(rest: str, spaces: Spaces, trust: bool = False) -> LoadedPolicy:  # noqa: ARG001 - as all schemes
    """The policy that the code named by `rest` is, or makes."""
    address = Address.parse("py", rest, _OPTIONS)
    if len(address.options) > 1:
        raise PolicyError(f"py:{rest} asks for both batch and single", hint="leave out one of them")
    source = find_code(address.place, "policy", "py:", PolicyError)
    name = f"py:{address.place}"
    with blamed_on(f"policy {name}"):
        make, notes = maker(source.thing, spaces, name, next(iter(address.options), None))
    return LoadedPolicy(make, name, address.uri(source.place), address.sha256(*source.contents), notes=notes)


def maker(thing: Any, spaces: Spaces, name: str, way: str | None) -> Maker:
    """How to make the policy that `thing` is or makes; `way` is batch, single or None to find out."""
    if not is_factory(thing):
        return _maker_for(thing, lambda: None, spaces, name, way)
    first = call_factory(thing, spaces)
    make, notes = _maker_for(first, Product(thing, spaces, first), spaces, name, way)
    return MadePolicy(make, partial(_maker_again, thing, spaces, name, way)), notes


def _maker_again(thing: Any, spaces: Spaces, name: str, way: str | None) -> Callable[[], Policy]:
    with blamed_on(f"policy {name}"):
        return maker(thing, spaces, name, way)[0]


def _maker_for(first: Any, another: Callable[[], Any], spaces: Spaces, name: str, way: str | None) -> Maker:
    """As `maker`; `another` makes more like `first`, or None."""
    if is_protocol(first):
        _require_actions(first, spaces, name)
        return another if isinstance(another, Product) else (lambda: first), ()
    if _is_module(first):
        return _from_module(first, spaces, name)
    actor = as_actor(first, another)
    if actor is None:
        has_factory = isinstance(another, Product)
        raise PolicyError(
            f"{name} {'returned' if has_factory else 'is'} {type(first).__name__}, expected an object with"
            " begin(count) and act(observations, rows), or a function from observations to actions"
        )
    return function_maker(actor, spaces, name, way)


def _require_actions(policy: Any, spaces: Spaces, name: str) -> None:
    """Raise unless `policy` gives two actions for two episodes."""
    policy.begin(2)
    actions = policy.act(sample_observations(spaces.observation, 2), np.arange(2))
    if np.shape(actions)[:1] != (2,):
        raise PolicyError(
            f"{name} gave actions of shape {np.shape(actions)} for 2 observations, expected (2, ...)",
            hint="act(observations, rows) gets a batch, and gives one action for each of its rows",
        )


def _is_module(thing: Any) -> bool:
    """True for a PyTorch module; the package is not imported to find out."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(thing).__mro__)


def _from_module(module: Any, spaces: Spaces, name: str) -> Maker:
    from policyfuzz.policies.torch import module_network

    network = module_network(module.eval().cpu(), spaces, name, may_squash=False)
    network = validated(network, spaces, name)
    return lambda: NetworkPolicy(network, spaces), network.notes


@dataclass(frozen=True, slots=True)
class Product:
    """Makes more objects like `first`; in another process, copies of `first`."""

    factory: Callable[..., Any]
    spaces: Spaces
    first: Any

    def __call__(self) -> Any:
        return call_factory(self.factory, self.spaces)

    def __reduce__(self) -> Any:
        return partial, (copy.deepcopy, self.first)


@dataclass(frozen=True, slots=True)
class MadePolicy:
    """Makes a policy. Another process builds it `again` if it cannot be pickled."""

    make: Callable[[], Policy]
    again: Callable[[], Callable[[], Policy]]

    def __call__(self) -> Policy:
        return self.make()

    def __reduce__(self) -> Any:
        import cloudpickle  # comes with gymnasium

        try:
            content = cloudpickle.dumps(self.make)
        except Exception:  # pickling runs methods of whatever is pickled
            return operator.call, (self.again,)
        return pickle.loads, (content,)
