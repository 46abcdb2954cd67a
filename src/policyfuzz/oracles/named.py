"""A name of the user's own for what an oracle finds."""

from dataclasses import dataclass

import numpy as np

from policyfuzz.oracles.verdicts import NONE, Composable, Oracle, Trajectories, Verdicts


@dataclass(frozen=True)
class Named(Composable):
    """Fires when `oracle` does; whatever it finds is one kind, called `kind`."""

    oracle: Oracle
    kind: str

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.kind,)

    def judge(self, trajectories: Trajectories) -> Verdicts:
        verdicts = self.oracle.judge(trajectories)
        return Verdicts(np.where(verdicts.crashed, 0, NONE), verdicts.steps, verdicts.margins)
