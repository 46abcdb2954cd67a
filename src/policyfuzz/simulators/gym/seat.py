"""One environment object that is used for many episodes, each of which starts where it is told."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policyfuzz.errors import UsageError
from policyfuzz.simulators.gym.start import FirstObservation, Start

#: How far what is read back may be from what was set, relative to it and at least to one: environments
#: that keep their state in single precision round it.
_TOLERANCE = 1e-5


class StateNotKept(Exception):
    """An environment does not start where it was told to."""


class Seat:
    """An environment whose innermost `reset` is replaced by one that starts from an input.

    Wrappers are outside of that, so they see the first observation of the episode that is really run.
    """

    def __init__(self, env: Any, start: Start) -> None:
        self.env = env
        self._base = env.unwrapped
        self._own_reset = self._base.reset
        self._start = start
        self._values = np.empty(0)
        self._seed = 0
        self._is_beginning = False
        try:
            self._base.reset = self._begin
        except AttributeError as error:
            raise UsageError(
                f"the reset of {type(self._base).__name__} cannot be replaced: {error}",
                hint="its class must allow attributes (no __slots__)",
            ) from error

    def reset(self, values: NDArray[np.float64], seed: int) -> FirstObservation:
        """Start an episode at `values` (d,)."""
        self._values, self._seed = values, seed
        observation, info = self.env.reset(seed=seed)
        return observation, info

    def _begin(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> FirstObservation:
        if self._is_beginning:  # a reset that calls itself, to draw again until it likes what it has drawn
            again: FirstObservation = self._own_reset(seed=seed, options=options)
            return again
        self._is_beginning = True
        try:
            first = self._start.begin(self._base, self._own_reset, self._values, self._seed)
        finally:
            self._is_beginning = False
        self._compare(self._start.read(self._base))
        return first

    def _compare(self, read: NDArray[np.float64]) -> None:
        """Refuse a start that is not the one that was asked for."""
        wanted = self._values
        differs = np.abs(read - wanted) > _TOLERANCE * np.maximum(np.abs(wanted), 1.0)  # not where NaN
        if differs.any():
            where = int(differs.argmax())
            name = self._start.inputs.names[where]
            raise StateNotKept(f"{name} was set to {wanted[where]:.9g} and reads back as {read[where]:.9g}")
