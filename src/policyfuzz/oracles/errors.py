"""Oracles about episodes that could not be run to their end: the fault may be what is looked for."""

from dataclasses import dataclass

import numpy as np

from policyfuzz.episode_error import NUMBERS, RAISED
from policyfuzz.oracles.verdicts import NONE, Composable, Trajectories, Verdicts


@dataclass(frozen=True)
class NotANumber(Composable):
    """Fires where a reward or an observation is NaN."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("NaN",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return _with_error(trajectories, NUMBERS)


@dataclass(frozen=True)
class Raised(Composable):
    """Fires where an exception came out of the environment."""

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("exception",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        return _with_error(trajectories, RAISED)


def _with_error(trajectories: Trajectories, kind: str) -> Verdicts:
    """Fires at the step of an error of this `kind`."""
    steps = np.full(len(trajectories.lengths), NONE)
    for row, error in trajectories.errors.items():
        if error.kind == kind:
            steps[row] = error.step
    return Verdicts(kinds=np.where(steps == NONE, NONE, 0), steps=steps)
