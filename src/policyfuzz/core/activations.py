"""What goes on inside a policy, and what it sees, as rows of numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import PolicyError
from policyfuzz.core.interfaces import Policy

#: The likely fix where a policy shows nothing.
_HINT = (
    "look at observations instead; activations are known of networks: sb3:, onnx:, torchscript:, npz:,"
    " PyTorch modules, and policies with a method activations(observations, rows)"
)


class NoActivations(PolicyError):
    """The policy has no activations that can be read."""

    def __init__(self, message: str) -> None:
        super().__init__(message, _HINT)


def no_hidden_layers() -> NoActivations:
    """The error for a network of one layer."""
    return NoActivations("no layer with weights behind another one was found in the policy")


@dataclass(frozen=True, slots=True)
class Layer:
    """Numbers that belong together, in the order in which they are calculated."""

    name: str
    width: int  #: how many they are


@dataclass(frozen=True, slots=True)
class Activations:
    """Hidden activations of m episodes at one step.

    They are what every layer with weights but the first is given. In a perceptron that is what its hidden
    units give; it is also known where an activation function is no layer.
    """

    values: NDArray[np.float64]  #: (m, k)
    layers: tuple[Layer, ...]  #: whose widths add up to k

    @classmethod
    def of(cls, parts: Sequence[tuple[str, NDArray[Any]]]) -> "Activations":
        """From the name of each layer and its numbers (m, ...)."""
        if not parts:
            raise no_hidden_layers()
        flat = [np.asarray(array, np.float64).reshape(len(array), -1) for _, array in parts]
        layers = tuple(Layer(name, one.shape[1]) for (name, _), one in zip(parts, flat, strict=True))
        return cls(np.concatenate(flat, axis=1), layers)

    @property
    def by_layer(self) -> tuple[NDArray[np.float64], ...]:
        """(m, width) the numbers of each layer."""
        ends = np.cumsum([layer.width for layer in self.layers])[:-1]
        return tuple(np.split(self.values, ends, axis=1))

    @classmethod
    def hidden(cls, arrays: Sequence[NDArray[Any]]) -> "Activations":
        """From the numbers (m, ...) of the hidden layers, in their order."""
        return cls.of([(f"hidden {number}", array) for number, array in enumerate(arrays, 1)])

    @classmethod
    def of_agents(
        cls, names: Sequence[str], values: NDArray[np.float64], layers: Sequence[Layer]
    ) -> "Activations":
        """From `values` (m, agents, k) of agents that all have the same `layers`."""
        named = tuple(Layer(f"{name} {layer.name}", layer.width) for name in names for layer in layers)
        return cls(values.reshape(len(values), -1), named)

    @classmethod
    def side_by_side(cls, parts: Sequence["Activations"]) -> "Activations":
        """All `parts`, which are of the same episodes, one after another."""
        layers = tuple(layer for part in parts for layer in part.layers)
        return cls(np.concatenate([part.values for part in parts], axis=1), layers)


@runtime_checkable
class ShowsActivations(Protocol):
    """A policy whose activations can be read."""

    def activations(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
        """Activations for `observations` (m, ...) of episodes `rows` (m,), about to be given to `act`.

        It changes nothing: `act` gives the same actions to the last bit, whether this was called or not. Once
        `act` was called, the policy may remember the next step, and this step's activations are gone. A row
        does not depend on the others. Raises `NoActivations` if there are none after all.
        """
        ...


def activations_of(policy: Policy, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
    """What `policy.activations` gives; raises `NoActivations` if the policy cannot show any."""
    if not isinstance(policy, ShowsActivations):
        raise NoActivations(f"a policy of type {type(policy).__name__} has no activations that can be read")
    return policy.activations(observations, rows)


def act_and_activations(
    policy: Policy, observations: NDArray[Any], rows: NDArray[np.int64]
) -> tuple[NDArray[Any], Activations]:
    """What `policy.act` gives, and the activations behind it.

    It takes one pass where the policy has a method `act_and_activations` with these arguments, and two
    elsewhere. Raises `NoActivations`, before anything was done, if the policy cannot show any.
    """
    in_one_pass = getattr(policy, "act_and_activations", None)
    if in_one_pass is not None:
        found: tuple[NDArray[Any], Activations] = in_one_pass(observations, rows)
        return found
    inside = activations_of(policy, observations, rows)
    return policy.act(observations, rows), inside


def flattened(observations: NDArray[Any]) -> NDArray[np.float64]:
    """(m, o) all numbers of `observations` (m, ...), of records part after part."""
    if observations.dtype.names is not None:
        parts = [flattened(observations[name]) for name in observations.dtype.names]
        return np.concatenate(parts, axis=1)
    if observations.dtype.kind not in "biuf":  # texts and objects
        return np.empty((len(observations), 0))
    return observations.reshape(len(observations), -1).astype(np.float64)
