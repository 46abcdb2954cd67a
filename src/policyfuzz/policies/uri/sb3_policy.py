"""Saved models of stable-baselines3 as policies: made from bytes, and tried before they are used."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import PolicyError, PolicyFuzzError
from policyfuzz.policies.blocks import BLOCK_ROWS
from policyfuzz.policies.loaded import Spaces
from policyfuzz.policies.uri.network import Network, NetworkPolicy
from policyfuzz.policies.uri.sb3_acting import initial_states, runner
from policyfuzz.policies.uri.sb3_archive import Archive
from policyfuzz.policies.uri.sb3_network import build
from policyfuzz.policies.uri.sb3_spaces import Fit, parts
from policyfuzz.policies.uri.vec_normalize import Normaliser
from policyfuzz.policies.uri.views import made_up


class Sb3Policy(NetworkPolicy):
    """A network whose outputs are the actions."""

    def decode(self, outputs: NDArray[Any]) -> NDArray[Any]:
        return outputs


@dataclass(frozen=True, slots=True)
class Recipe:
    """All that is needed to make the policy again, in another process too."""

    archive: Archive
    algorithm: str
    trained: Spaces  #: spaces of the model
    given: Spaces  #: spaces of the environment
    normaliser: Normaliser
    fit: Fit
    rows: int = BLOCK_ROWS  #: that go through the network at once

    def __call__(self) -> Sb3Policy:
        """A new policy with a network of its own."""
        network = build(self.archive, self.trained, self.algorithm)
        keys = tuple(parts(self.trained.observation))
        layouts = tuple(partial(self._part, key) for key in keys)
        run = runner(network, keys)
        return Sb3Policy(Network(run, layouts, initial_states(network), self.rows), self.given)

    def _part(self, key: str, observations: NDArray[Any]) -> NDArray[Any]:
        """The part `key` of `observations` (m, ...) as the network takes it."""
        part = observations[key] if key else observations
        return self.fit.convert(key, self.normaliser(key, part))


def tried(recipe: Recipe) -> tuple[Recipe, tuple[str, ...]]:
    """`recipe` as it can be used, after a trial on made-up observations, and notes."""
    policy, name = recipe(), recipe.archive.path.name
    observations = made_up(recipe.given.observation, BLOCK_ROWS)
    try:
        actions, turned = _first_actions(policy, observations), _first_actions(policy, observations[::-1])
        alone = _first_actions(policy, observations[:1])
    except PolicyFuzzError:
        raise
    except Exception as error:  # whatever the network raises
        raise PolicyError(
            f"the network in {name} cannot act: {type(error).__name__}: {error}",
            hint="does it act in your own code, by model.predict(observation)?",
        ) from error
    if np.array_equal(actions, turned[::-1]) and np.array_equal(actions[:1], alone):
        return recipe, ()
    if not np.array_equal(actions, _first_actions(policy, observations)):
        raise PolicyError(
            f"{name} gives two different actions for the same observation",
            hint="its network draws random numbers even in eval mode: switch that off",
        )
    return replace(recipe, rows=1), ("runs row by row, since its rows of a batch depend on each other",)


def _first_actions(policy: Sb3Policy, observations: NDArray[Any]) -> NDArray[Any]:
    policy.begin(len(observations))
    return policy.act(observations, np.arange(len(observations)))
