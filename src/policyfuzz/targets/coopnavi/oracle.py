"""What counts as a crash in cooperative navigation."""

from dataclasses import dataclass

import numpy as np

from policyfuzz.oracles import NONE, Trajectories, Verdicts
from policyfuzz.oracles.verdicts import Composable


@dataclass(frozen=True)
class Collisions(Composable):
    """Fires when agents collide in more than `limit` pair-steps; its step is the one that goes beyond.

    With `excuses_finished` an episode in which all agents arrive at landmarks is no crash.
    """

    limit: int
    excuses_finished: bool

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("collision",)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        counted = trajectories.counted
        collisions = trajectories.signal("collisions")
        too_many = counted & (collisions > self.limit)
        crashed = too_many.any(axis=1)
        margins = self.limit + 1 - np.where(counted, collisions, 0.0).max(axis=1)
        if self.excuses_finished:
            finished = (counted & (trajectories.signal("finished") > 0)).any(axis=1)
            crashed &= ~finished
            # excused is as far from a crash as without any collision
            margins = np.where(finished, np.maximum(margins, self.limit + 1), margins)
        return Verdicts(
            kinds=np.where(crashed, 0, NONE),
            steps=np.where(crashed, too_many.argmax(axis=1), NONE),
            margins=margins,
        )
