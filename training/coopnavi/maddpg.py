"""MADDPG: actors that see their own observation, taught by a critic that sees everything.

All agents get the same reward, so that the critics of all of them would estimate the same; they share
one. An action acts on the world through its force alone, and that is what the critic is given of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from coopnavi.networks import ACTOR_SIZES, CRITIC_INPUTS, Perceptrons, Views, joint_forces
from coopnavi.replay import Replay
from policyfuzz.targets.coopnavi.physics import AGENTS


@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers of the algorithm."""

    discount: float = 0.95
    follow_rate: float = 0.005  #: of the target networks
    actor_rate: float = 5e-4
    critic_rate: float = 1e-3
    critic_width: int = 128
    batch: int = 1024
    actor_every: int = 2  #: critic updates for one of the actors
    logit_cost: float = 1e-3  #: keeps the softmax from saturating


class Maddpg:
    """Three actors, their critic, and the slow copies of both."""

    def __init__(self, settings: Settings, rng: np.random.Generator) -> None:
        self.settings = settings
        critic_sizes = (CRITIC_INPUTS, settings.critic_width, settings.critic_width, 1)
        self.actors = Perceptrons(AGENTS, ACTOR_SIZES, rng, last=0.1)
        self.critic = Perceptrons(1, critic_sizes, rng)
        self.slow_actors = Perceptrons(AGENTS, ACTOR_SIZES, rng)
        self.slow_critic = Perceptrons(1, critic_sizes, rng)
        self.slow_actors.load(self.actors.parameters())
        self.slow_critic.load(self.critic.parameters())
        self.actor_optimiser = torch.optim.Adam(self.actors.parameters(), lr=settings.actor_rate)
        self.critic_optimiser = torch.optim.Adam(self.critic.parameters(), lr=settings.critic_rate)
        self.updates = 0

    def update(self, replay: Replay, rng: np.random.Generator, rate_factor: float) -> None:
        """Learn from one batch, with learning rates times `rate_factor`."""
        settings = self.settings
        worlds, forces, after, rewards = (torch.from_numpy(part) for part in replay.draw(rng, settings.batch))
        views = Views(worlds)
        with torch.no_grad():
            views_after = Views(after)
            forces_after, _ = joint_forces(self.slow_actors, views_after)
            onward = self.slow_critic(views_after.with_forces(forces_after))[0, :, 0]
            targets = rewards + settings.discount * onward
        values = self.critic(views.with_forces(forces))[0, :, 0]
        _descend(
            self.critic_optimiser, (values - targets).square().mean(), settings.critic_rate * rate_factor
        )
        self.updates += 1
        if self.updates % settings.actor_every == 0:
            own_forces, logits = joint_forces(self.actors, views)
            value = self.critic(views.with_forces(own_forces)).mean()
            loss = settings.logit_cost * logits.square().mean() - value
            _descend(self.actor_optimiser, loss, settings.actor_rate * rate_factor)
            self.slow_actors.follow(self.actors, settings.follow_rate * settings.actor_every)
        self.slow_critic.follow(self.critic, settings.follow_rate)

    def state(self) -> dict[str, Any]:
        """Everything that a checkpoint needs."""
        networks = {name: getattr(self, name).parameters() for name in _NETWORKS}
        optimisers = {name: getattr(self, name).state_dict() for name in _OPTIMISERS}
        return {**networks, **optimisers, "updates": self.updates}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what `state` gave."""
        for name in _NETWORKS:
            getattr(self, name).load(state[name])
        for name in _OPTIMISERS:
            getattr(self, name).load_state_dict(state[name])
        self.updates = state["updates"]


_NETWORKS = ("actors", "critic", "slow_actors", "slow_critic")
_OPTIMISERS = ("actor_optimiser", "critic_optimiser")


def _descend(optimiser: torch.optim.Optimizer, loss: torch.Tensor, rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.zero_grad(set_to_none=True)
    torch.autograd.backward(loss, inputs=optimiser.param_groups[0]["params"])
    optimiser.step()
