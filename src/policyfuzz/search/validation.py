"""Only valid and solvable inputs are run: others are drawn again, and counted."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policyfuzz.core.errors import UnhealthyTarget, blamed_on
from policyfuzz.core.inputs import InputSpace
from policyfuzz.core.timing import TimeSplit

#: One draw: how many are wanted -> parents (n,) and inputs (n, d).
Draw = Callable[[int], tuple[NDArray[np.int64], NDArray[np.float64]]]

#: Draws for one batch before the target is called unhealthy, per wanted input. Leaves room for spaces in
#: which one draw in a hundred is good.
_PATIENCE = 2000
#: Tries to find a good input beside a given one before it is taken to have none.
_TRIES_NEAR = 50
#: Lowest acceptance that the size of the next draw is planned for.
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
        """Parents (n,) and inputs (n, d) of `wanted` draws that are valid and solvable."""
        parents, inputs = np.empty(0, np.int64), np.empty((0, len(self.space.dimensions)))
        drawn_here = 0
        while (missing := wanted - len(inputs)) > 0:
            if drawn_here > _PATIENCE * wanted:
                raise UnhealthyTarget(
                    f"of {drawn_here:,} drawn inputs only {len(inputs)} were valid and solvable",
                    hint="check the constraint, the bounds of the dimensions and the solvability test",
                )
            rate = len(inputs) / drawn_here if drawn_here else 1.0
            count = int(np.ceil(missing / max(rate, _WORST_RATE)))
            new_parents, new_inputs = draw(count)
            drawn_here += count
            good = self._judge(new_inputs)
            parents = np.concatenate([parents, new_parents[good][:missing]])
            inputs = np.concatenate([inputs, new_inputs[good][:missing]])
        return parents, inputs

    def near(
        self, origins: NDArray[np.float64], perturb: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """A good perturbed copy (n, d) of each of `origins` (n, d), and (n,) True where one was found."""
        inputs = perturb(origins)
        good = self._judge(inputs)
        for _ in range(_TRIES_NEAR):
            missing = np.flatnonzero(~good)
            if len(missing) == 0:
                break
            inputs[missing] = perturb(origins[missing])
            good[missing] = self._judge(inputs[missing])
        return inputs, good

    def _judge(self, inputs: NDArray[np.float64]) -> NDArray[np.bool_]:
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
