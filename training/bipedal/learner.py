"""An actor and a critic that learn from walks (PPO with clipping)."""

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bipedal.advantages import Aim, advantages
from bipedal.student import MOTORS, Scaling, make_network
from bipedal.walks import Act, Floats, Walks

CLIP = 0.2
#: Mean divergence of the new from the old policy at which a round's epochs end.
MOST_DIVERGENCE = 0.01
BATCH = 4096
#: Advantages are cut off here, in units of their spread: three quarters of it come from one step in 150.
MOST_GAIN = 3.0
CRITIC_RATE = 1e-3
EPOCHS = 4
LEAST_SPREAD = 0.05
#: Share of the running mean of the weights that stays in a round.
INERTIA = 0.93

_PARTS = ("actor", "critic", "mean_actor", "actor_optimiser", "critic_optimiser")


@dataclass(slots=True)
class Learner:
    """All that changes while it learns."""

    actor: nn.Sequential
    critic: nn.Sequential
    mean_actor: nn.Sequential  #: running mean of the actor's weights: what walks in the end
    log_spread: Tensor  #: (4,) of the noise with which the actor tries things out
    scaling: Scaling
    actor_optimiser: torch.optim.Adam = field(init=False)
    critic_optimiser: torch.optim.Adam = field(init=False)

    def __post_init__(self) -> None:
        self.log_spread.requires_grad_()
        self.actor_optimiser = torch.optim.Adam([*self.actor.parameters(), self.log_spread])
        self.critic_optimiser = torch.optim.Adam(self.critic.parameters())

    @classmethod
    def of(cls, student: dict[str, Any], spread: float, seed: int) -> "Learner":
        """The learner that begins as the student in a checkpoint of `bipedal.imitate`."""
        weights = student["student"]
        widths = tuple(len(weights[name]) for name in weights if name.endswith("bias"))[:-1]
        actor = make_network(widths, MOTORS, seed)
        actor.load_state_dict(weights)
        critic = make_network((128, 128), 1, seed)
        log_spread = torch.full((MOTORS,), float(np.log(spread)))
        return cls(
            actor, critic, copy.deepcopy(actor), log_spread, Scaling(student["mean"], student["spread"])
        )

    def state(self) -> dict[str, Any]:
        """Everything that is needed to go on."""
        state: dict[str, Any] = {part: getattr(self, part).state_dict() for part in _PARTS}
        return state | {"log_spread": self.log_spread.detach()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from `state`."""
        for part in _PARTS:
            getattr(self, part).load_state_dict(state[part])
        with torch.no_grad():
            self.log_spread.copy_(state["log_spread"])

    def trying(self, rng: np.random.Generator) -> Act:
        """Acts as the actor does, with its noise."""
        spread = self.log_spread.detach().exp().numpy()

        def act(observations: Floats) -> Floats:
            with torch.no_grad():
                motors = self.actor(self.scaling(torch.from_numpy(observations))).tanh().numpy()
            return motors + spread * rng.standard_normal(motors.shape, np.float32)

        return act

    def log_likelihood(self, inputs: Tensor, actions: Tensor) -> Tensor:
        """(n,) log-density of `actions` (n, 4) at scaled `inputs` (n, 24), but for a constant."""
        deviation = (actions - self.actor(inputs).tanh()) / self.log_spread.exp()
        return (-0.5 * deviation.square() - self.log_spread).sum(dim=1)

    def average(self) -> None:
        """Move the running mean towards the actor."""
        with torch.no_grad():
            for mean, now in zip(self.mean_actor.parameters(), self.actor.parameters(), strict=True):
                mean.lerp_(now, 1 - INERTIA)


@dataclass(frozen=True, slots=True)
class Experience:
    """Steps to learn from."""

    inputs: Tensor  #: (n, 24) scaled
    actions: Tensor  #: (n, 4)
    advantages: Tensor  #: (n,) in units of their spread
    returns: Tensor  #: (n,) what the critic should have said
    log_likelihoods: Tensor  #: (n,) of the actions when they were taken

    @classmethod
    def of(cls, learner: Learner, walks: Walks) -> "Experience":
        """All steps of `walks`, judged by the critic as it is now."""
        counted = torch.from_numpy(walks.counted)
        with torch.no_grad():
            inputs = learner.scaling(torch.from_numpy(walks.observations))
            # one walk at a time, which fits the cache
            values = torch.stack([learner.critic(walked) for walked in inputs])[..., 0]
            gains = torch.from_numpy(advantages(walks, values.numpy(), Aim()))
            inputs, actions = inputs[:, :-1][counted], torch.from_numpy(walks.actions)[counted]
            returns, gains = (gains + values[:, :-1])[counted], gains[counted]
            likelihoods = learner.log_likelihood(inputs, actions)
        gains = ((gains - gains.mean()) / gains.std()).clamp(-MOST_GAIN, MOST_GAIN)
        return cls(inputs, actions, gains, returns, likelihoods)


def learn(
    learner: Learner, seen: Experience, rate: float, is_actor_learning: bool, rng: np.random.Generator
) -> str:
    """Some epochs over `seen`, with learning `rate` for the actor; returns what to log."""
    learner.actor_optimiser.param_groups[0]["lr"] = rate
    learner.critic_optimiser.param_groups[0]["lr"] = CRITIC_RATE
    divergence, surprises, updates = 0.0, [], 0
    for _ in range(EPOCHS):
        divergences = []
        for rows in torch.from_numpy(rng.permutation(len(seen.returns))).split(BATCH):
            surprises.append(_teach_critic(learner, seen, rows))
            if is_actor_learning:
                divergences.append(_teach_actor(learner, seen, rows))
        updates += len(divergences)
        if divergences:
            divergence = float(np.mean(divergences))
            is_actor_learning = divergence < MOST_DIVERGENCE
    return (
        f"critic {np.mean(surprises[-8:]):.3f}  divergence {divergence:.4f}  updates {updates}  "
        f"spread {learner.log_spread.detach().exp().mean():.3f}"
    )


def _teach_critic(learner: Learner, seen: Experience, rows: Tensor) -> float:
    surprise = (learner.critic(seen.inputs[rows])[:, 0] - seen.returns[rows]).square().mean()
    _descend(learner.critic_optimiser, surprise)
    return float(surprise.item())


def _teach_actor(learner: Learner, seen: Experience, rows: Tensor) -> float:
    """One step of the actor; returns how far it is now from what it was, as a divergence."""
    log_ratio = learner.log_likelihood(seen.inputs[rows], seen.actions[rows]) - seen.log_likelihoods[rows]
    ratio, gains = log_ratio.exp(), seen.advantages[rows]
    gain = torch.minimum(ratio * gains, ratio.clamp(1 - CLIP, 1 + CLIP) * gains).mean()
    _descend(learner.actor_optimiser, -gain)
    with torch.no_grad():
        learner.log_spread.clamp_(min=float(np.log(LEAST_SPREAD)))
        return float((ratio - 1 - log_ratio).mean().item())


def _descend(optimiser: torch.optim.Adam, loss: Tensor) -> None:
    optimiser.zero_grad(set_to_none=True)
    torch.autograd.backward(loss)
    nn.utils.clip_grad_norm_(optimiser.param_groups[0]["params"], 0.5)
    optimiser.step()
