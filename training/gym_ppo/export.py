"""The actor of a stable-baselines3 model in the package's own format, which needs neither of its packages."""

from pathlib import Path
from typing import Any

from torch import nn

from policyfuzz.policies.mlp import MlpBank, write_npz


def to_bank(policy: Any) -> MlpBank:
    """The actor of an `MlpPolicy` with tanh layers: observations to one logit for each action."""
    layers = [*policy.mlp_extractor.policy_net, policy.action_net]
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    others = {type(layer) for layer in layers} - {nn.Linear}
    if others - {nn.Tanh}:
        raise ValueError(f"expected tanh layers, got {others}")
    weights = [(layer.weight.detach().T.numpy(), layer.bias.detach().numpy()) for layer in linear]
    return MlpBank.from_layers([weights], hidden="tanh")


def export(path: Path, policy: Any) -> None:
    """Write the actor into `path`, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial.npz")
    write_npz(partial, to_bank(policy))
    partial.replace(path)
