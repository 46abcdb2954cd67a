"""Policies that are Python code of the user: a function, an object, or something that makes one.

NAME is one of
- a function of a batch of observations (m, ...) to m actions, or of one observation to one action. Which of
  the two is found out by a call with a batch; `?batch` and `?single` say it instead;
- a function of (observation, state) to (action, state), for one observation; the state begins as None;
- a class, or a function without parameters, that makes a policy: an object with `begin(count)` and
  `act(observations, rows)`, the protocol of this package, which is taken as it is; or a PyTorch module; or an
  object with `predict`, `act` or `__call__`, which is treated like a function. Of one that has `reset()` each
  episode gets an own copy. Parameters called `observation_space` and `action_space` are given these;
- such an object itself.

Observations that are dictionaries come as dictionaries, of arrays (m, ...) in a batch. Naming the code is
asking for it to be run: it needs no further trust. The digest covers the file in which it stands, and not
what this one imports.
"""

import copy
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
from policyfuzz.policies.network import NetworkPolicy
from policyfuzz.policies.python_calls import as_actor, from_function, is_factory, is_protocol, made
from policyfuzz.policies.uri import Address
from policyfuzz.policies.views import made_up


@dataclass(frozen=True, slots=True)
class Product:
    """Makes further things like `first`; in another process, copies of that."""

    factory: Callable[..., Any]
    spaces: Spaces
    first: Any

    def __call__(self) -> Any:
        return made(self.factory, self.spaces)

    def __reduce__(self) -> Any:
        return partial, (copy.deepcopy, self.first)


@dataclass(frozen=True, slots=True)
class MadePolicy:
    """Makes a policy. In another process it is made `again` where it cannot be pickled."""

    make: Callable[[], Policy]
    again: Callable[[], Callable[[], Policy]]

    def __call__(self) -> Policy:
        return self.make()

    def __reduce__(self) -> Any:
        import cloudpickle  # comes with gymnasium

        try:
            content = cloudpickle.dumps(self.make)
        except Exception:  # pickling runs methods of whatever is pickled
            return _called, (self.again,)
        return pickle.loads, (content,)


def _called(function: Callable[[], Any]) -> Any:
    return function()


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


def maker(
    thing: Any, spaces: Spaces, name: str, way: str | None
) -> tuple[Callable[[], Policy], tuple[str, ...]]:
    """How to make the policy, and what to say about it; `way` is batch, single or None."""
    if not is_factory(thing):
        return _maker_of(thing, lambda: None, spaces, name, way)
    first = made(thing, spaces)
    make, notes = _maker_of(first, Product(thing, spaces, first), spaces, name, way)
    return MadePolicy(make, partial(_maker_again, thing, spaces, name, way)), notes


def _maker_again(thing: Any, spaces: Spaces, name: str, way: str | None) -> Callable[[], Policy]:
    with blamed_on(f"policy {name}"):
        return maker(thing, spaces, name, way)[0]


def _maker_of(
    first: Any, another: Callable[[], Any], spaces: Spaces, name: str, way: str | None
) -> tuple[Callable[[], Policy], tuple[str, ...]]:
    """As `maker`; `another` makes more like `first`, or None."""
    if is_protocol(first):
        _try(first, spaces, name)
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
    return from_function(actor, spaces, name, way)


def _try(policy: Any, spaces: Spaces, name: str) -> None:
    """Let a policy act for two episodes, and see that there are two actions."""
    policy.begin(2)
    actions = policy.act(made_up(spaces.observation, 2), np.arange(2))
    if np.shape(actions)[:1] != (2,):
        raise PolicyError(
            f"{name} gave actions of shape {np.shape(actions)} for 2 observations, expected (2, ...)",
            hint="act(observations, rows) gets a batch, and gives one action for each of its rows",
        )


def _is_module(thing: Any) -> bool:
    """True for a PyTorch module; the package is not imported to find out."""
    return any(kind.__module__ == "torch.nn.modules.module" for kind in type(thing).__mro__)


def _from_module(module: Any, spaces: Spaces, name: str) -> tuple[Callable[[], Policy], tuple[str, ...]]:
    from policyfuzz.policies.torch import settled, takes_state

    module = module.eval().cpu()
    network = settled(module, spaces, name, is_recurrent=takes_state(module), may_squash=False)
    return lambda: NetworkPolicy(network, spaces), network.notes
