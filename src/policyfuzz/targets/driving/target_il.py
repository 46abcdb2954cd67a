"""driving-il: the car is driven by a network that was cloned from MetaDrive's expert."""

from collections.abc import Mapping

from policyfuzz.core.target import Target
from policyfuzz.targets.driving.networks import cloned
from policyfuzz.targets.driving.target import make_driving


def make_target(options: Mapping[str, str], policy: str | None) -> Target:
    """The target; options: `horizon`, policy: None for the shipped network or driving:FILE.npz."""
    return make_driving("driving-il", cloned, 200, options, policy)
