"""Validation: only valid and solvable inputs are run; others are counted and drawn again."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UnhealthyTarget, blamed_on
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.timing import TimeSplit

#: Draws so many inputs: -> origins (n,), usually parents, and inputs (n, d).
Draw = Callable[[int], tuple[NDArray[np.int64], NDArray[np.float64]]]

#: Draws for one batch, per wanted input, before the target is called unhealthy. Leaves room for spaces in
#: which one draw in a hundred is good.
_PATIENCE = 2000
#: Tries to find a good input near a given one before giving up.
_TRIES_NEAR = 50
#: Lowest acceptance rate that the size of the next draw allows for.
_WORST_RATE = 1 / 64


@dataclass(slots=True)
class Validator:
    """Draws until enough inputs are valid and solvable."""

    space: InputSpace
    solvable: Callable[[NDArray[np.float64]], NDArray[np.bool_]] | None
    clock: TimeSplit = field(default_factory=TimeSplit)
    drawn: int = 0
    invalid: int = 0
    unsolvable: int = 0

    @property
    def valid_rate(self) -> float:
        """Share of drawn inputs that were valid and solvable."""
        return (self.drawn - self.invalid - self.unsolvable) / self.drawn if self.drawn else 1.0

    def fill(self, wanted: int, draw: Draw) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Origins (n,) and inputs (n, d) of `wanted` draws that are valid and solvable."""
        origins, inputs = np.empty(0, np.int64), np.empty((0, len(self.space.dimensions)))
        drawn_here = 0
        while (missing := wanted - len(inputs)) > 0:
            if drawn_here > _PATIENCE * wanted:
                raise UnhealthyTarget(
                    f"of {drawn_here:,} drawn inputs only {len(inputs)} were valid and solvable",
                    hint="check the constraint, the bounds of the dimensions and the solvability test",
                )
            rate = len(inputs) / drawn_here if drawn_here else 1.0
            count = int(np.ceil(missing / max(rate, _WORST_RATE)))
            new_origins, new_inputs = draw(count)
            drawn_here += count
            good = self._is_good(new_inputs)
            origins = np.concatenate([origins, new_origins[good][:missing]])
            inputs = np.concatenate([inputs, new_inputs[good][:missing]])
        return origins, inputs

    def near(
        self, inputs: NDArray[np.float64], perturb: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """A good perturbed copy (n, d) of each of `inputs` (n, d), and (n,) True where one was found."""
        perturbed = perturb(inputs)
        good = self._is_good(perturbed)
        for _ in range(_TRIES_NEAR):
            missing = np.flatnonzero(~good)
            if len(missing) == 0:
                break
            perturbed[missing] = perturb(inputs[missing])
            good[missing] = self._is_good(perturbed[missing])
        return perturbed, good

    def _is_good(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
        """(n,) True where one of `inputs` (n, d) is valid and solvable; counts those that are not."""
        with self.clock.activity("validate"):
            with blamed_on("the target that judges inputs"):
                good = self.space.is_valid(inputs)
                self.drawn += len(inputs)
                self.invalid += int(np.count_nonzero(~good))
            if self.solvable is not None and good.any():
                with blamed_on("the target that judges inputs"):
                    solved = np.asarray(self.solvable(inputs[good]), np.bool_)
                self.unsolvable += int(np.count_nonzero(~solved))
                good[good] = solved
            return good
