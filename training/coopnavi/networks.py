"""Actors that see their own observation, and a critic that sees everything."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from policyfuzz.policies.mlp import MlpBank
from policyfuzz.targets.coopnavi.physics import ACTIONS, AGENTS, OBSERVED, STATE

#: What an actor is given in training: its observation without the four numbers that are always zero.
ACTOR_SIZES = (STATE, 64, 64, ACTIONS)
#: Positions, velocities, offsets and distances of everybody, and the force of every agent.
CRITIC_INPUTS = 12 + 18 + 6 + 9 + 3 + 6


class Perceptrons:
    """Equally shaped ReLU networks side by side: inputs (g, n, in) to outputs (g, n, out)."""

    def __init__(
        self, groups: int, sizes: Sequence[int], rng: np.random.Generator, last: float = 1.0
    ) -> None:
        self.weights: list[Tensor] = []
        self.biases: list[Tensor] = []
        for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
            bound = 1 / np.sqrt(n_in) * (last if layer == len(sizes) - 2 else 1.0)
            # all networks start alike: what they learn makes them differ
            drawn = np.repeat(rng.uniform(-bound, bound, (1, n_in, n_out)), groups, axis=0)
            self.weights.append(torch.tensor(drawn, dtype=torch.float32, requires_grad=True))
            self.biases.append(torch.zeros(groups, 1, n_out, requires_grad=True))

    def __call__(self, inputs: Tensor) -> Tensor:
        values = inputs
        for layer, (weights, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            values = torch.baddbmm(bias, values, weights)
            if layer < len(self.weights) - 1:
                values = torch.relu(values)
        return values

    def parameters(self) -> list[Tensor]:
        """All weights and biases, in a fixed order."""
        return [*self.weights, *self.biases]

    def load(self, values: Sequence[Tensor]) -> None:
        """Take over `values`, in the order of `parameters`."""
        with torch.no_grad():
            for parameter, value in zip(self.parameters(), values, strict=True):
                parameter.copy_(value)

    def follow(self, others: "Perceptrons", rate: float) -> None:
        """Move by `rate` of the way towards `others`."""
        with torch.no_grad():
            torch._foreach_lerp_(self.parameters(), others.parameters(), rate)


def forces(logits: Tensor) -> Tensor:
    """(..., 2) what the world feels of actions with these `logits` (..., 5), between -1 and 1."""
    action = torch.softmax(logits, dim=-1)
    return torch.stack([action[..., 1] - action[..., 2], action[..., 3] - action[..., 4]], dim=-1)


class Views:
    """What actors and critic see of worlds (n, 18), float32."""

    def __init__(self, worlds: Tensor) -> None:
        xy = worlds.view(-1, 9, 2)
        agents, velocities, landmarks = xy[:, 0:3], xy[:, 3:6], xy[:, 6:9]
        to_landmarks = landmarks[:, None] - agents[:, :, None]  # (n, agent, landmark, 2)
        to_agents = agents[:, None] - agents[:, :, None]
        others = torch.stack(
            [to_agents[:, i, [j for j in range(AGENTS) if j != i]] for i in range(AGENTS)], 1
        )
        count = len(worlds)
        own = torch.cat([velocities, agents, to_landmarks.flatten(2), others.flatten(2)], dim=2)
        #: (3, n, 14) for the actors
        self.of_agents = own.transpose(0, 1).contiguous()
        pairs = torch.stack([to_agents[:, 0, 1], to_agents[:, 0, 2], to_agents[:, 1, 2]], 1)
        #: (n, 48) for the critic, all but the forces
        self.of_all = torch.cat(
            [
                worlds[:, :12],
                to_landmarks.reshape(count, -1),
                pairs.reshape(count, -1),
                to_landmarks.norm(dim=3).reshape(count, -1),
                pairs.norm(dim=2),
            ],
            dim=1,
        )

    def with_forces(self, forces_of_agents: Tensor) -> Tensor:
        """(1, n, 54) inputs of the critic, with forces (n, 6)."""
        return torch.cat([self.of_all, forces_of_agents], dim=1)[None]


def joint_forces(actors: Perceptrons, views: Views) -> tuple[Tensor, Tensor]:
    """Forces (n, 6) of the three actors, and their logits (3, n, 5)."""
    logits = actors(views.of_agents)
    return forces(logits).transpose(0, 1).reshape(-1, 2 * AGENTS), logits


def to_bank(actors: Perceptrons) -> MlpBank:
    """The actors as they ship: 18 inputs, of which the last four are not used."""
    networks = []
    for agent in range(AGENTS):
        layers = [
            (weights[agent].detach().double().numpy(), bias[agent, 0].detach().double().numpy())
            for weights, bias in zip(actors.weights, actors.biases, strict=True)
        ]
        first, bias = layers[0]
        padded = np.vstack([first, np.zeros((OBSERVED - STATE, first.shape[1]))])
        networks.append([(padded, bias), *layers[1:]])
    return MlpBank.from_layers(networks)
