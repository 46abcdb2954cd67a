"""The policy: one network for each agent, and where their weights come from."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.activations import Activations, Layer
from policyfuzz.core.compiled import kernel
from policyfuzz.core.errors import PolicyError
from policyfuzz.core.files import is_file
from policyfuzz.policies.mlp import MlpBank, bank_of, plain_arrays, read_npz, shipped
from policyfuzz.policies.uri import read_model
from policyfuzz.targets.coopnavi.physics import ACTIONS, AGENTS, OBSERVED

#: Names of an agent's layers in files that were made from checkpoints of the original MADDPG code.
_PUBLIC_LAYERS = ("fully_connected", "fully_connected_1", "fully_connected_2")


class SpreadPolicy:
    """Each agent sees its own observation only; the action is the softmax of its network's five outputs."""

    def __init__(self, bank: MlpBank) -> None:
        self._bank = bank
        self._layers: tuple[Layer, ...] = ()  #: of all agents, once they were asked for

    def begin(self, count: int) -> None:
        pass

    def act(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[np.float64]:
        return act(self._bank, observations)

    def activations(self, observations: NDArray[Any], rows: NDArray[np.int64]) -> Activations:
        """The hidden layers of all agents, one after another."""
        return self.act_and_activations(observations, rows)[1]

    def act_and_activations(
        self, observations: NDArray[Any], rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], Activations]:
        """Both of one pass."""
        which = np.tile(np.arange(AGENTS), len(rows))
        actions, hidden = self._bank.with_activations(observations.reshape(-1, OBSERVED), which)
        _softmax(actions)
        if not self._layers:
            names = [f"agent {number}" for number in range(1, AGENTS + 1)]
            named = Activations.of_agents(names, hidden.values.reshape(len(rows), AGENTS, -1), hidden.layers)
            self._layers = named.layers
        return actions.reshape(-1, AGENTS, ACTIONS), Activations(
            hidden.values.reshape(len(rows), -1), self._layers
        )


def act(bank: MlpBank, observations: NDArray[np.float64]) -> NDArray[np.float64]:
    """Actions (m, 3, 5) of the three networks in `bank` at `observations` (m, 3, 18)."""
    which = np.tile(np.arange(AGENTS), len(observations))
    actions = bank(observations.reshape(-1, OBSERVED), which)
    _softmax(actions)
    return actions.reshape(-1, AGENTS, ACTIONS)


@kernel
def _softmax(logits: NDArray[np.float64]) -> None:
    """Turn each row of `logits` (n, k) into its softmax, in place."""
    for i in range(logits.shape[0]):
        row = logits[i]
        highest = row.max()
        total = 0.0
        for k in range(row.shape[0]):
            row[k] = np.exp(row[k] - highest)
            total += row[k]
        for k in range(row.shape[0]):
            row[k] /= total


@cache
def shipped_actors() -> MlpBank:
    """The three actors that come with the package."""
    return read_npz(shipped("coopnavi/networks.npz"))


def actors_in(path: Path) -> MlpBank:
    """The three actors in an .npz file: in the format of the shipped ones, or in the public MADDPG layout."""
    if not is_file(path):
        raise PolicyError(
            f"no file {str(path)!r} with actors", hint="--policy coopnavi:FILE.npz wants an .npz file"
        )
    arrays = plain_arrays(path.name, read_model(path), "expected an .npz file with three actors")
    is_public = any(name.startswith("agent_") for name in arrays)
    bank = _public_actors(path.name, arrays) if is_public else bank_of(path.name, arrays)
    hint = "are these actors of simple_spread with three agents?"
    return bank.check_shape(path.name, AGENTS, OBSERVED, (ACTIONS,), hint)


def _public_actors(name: str, arrays: Mapping[str, NDArray[Any]]) -> MlpBank:
    """Actors with arrays agent_0__p_func__fully_connected__weights (in, out), ..._biases, and so on."""
    try:
        actors = [
            [
                tuple(arrays[f"agent_{agent}__p_func__{layer}__{part}"] for part in ("weights", "biases"))
                for layer in _PUBLIC_LAYERS
            ]
            for agent in range(AGENTS)
        ]
        return MlpBank.from_layers(actors)  # type: ignore[arg-type] # pairs
    except PolicyError as error:
        raise PolicyError(f"{name}: {error.message}", error.hint) from error
    except KeyError as error:
        raise PolicyError(
            f"{name} holds no complete actors: there is no {error}",
            hint="expected agent_A__p_func__L__weights and __biases for agents 0-2 and three layers L",
        ) from error
