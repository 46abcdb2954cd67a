"""Environments whose episodes start at drawn inputs of their target: policies train where they are tested."""

from typing import Any

import gymnasium
import numpy as np

from policyfuzz.environments.find_start import find_start
from policyfuzz.environments.simulator import SEEDS, EnvironmentSlot
from policyfuzz.environments.starts import FirstObservation


class DrawnStarts(gymnasium.Wrapper[Any, Any, Any, Any]):
    """`env` (with its wrappers), each of whose resets draws an input of the family's space."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        start = find_start(env)
        self._inputs, self._seat = start.inputs, EnvironmentSlot(env, start)
        self._rng = np.random.default_rng(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> FirstObservation:
        """Start at a drawn input; a `seed` begins the sequence of draws anew."""
        if options:
            raise ValueError(f"starts are drawn, so there are no options of reset, got {options}")
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        return self._seat.reset(self._inputs.sample(self._rng, 1)[0], int(self._rng.integers(SEEDS)))


def drawn_starts(environment_id: str) -> DrawnStarts:
    """A fresh environment of this name."""
    return DrawnStarts(gymnasium.make(environment_id))
