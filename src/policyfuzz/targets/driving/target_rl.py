"""driving-rl: the car is driven by the PPO expert that comes with MetaDrive."""

from collections.abc import Mapping

from policyfuzz.core.target import Target
from policyfuzz.targets.driving.networks import expert
from policyfuzz.targets.driving.target import make_driving


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options: `horizon`, policy: None for the expert or driving:FILE.npz."""
    return make_driving("driving-rl", expert, 100, options, policy)
